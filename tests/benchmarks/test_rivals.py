import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from benchmarks.problems import held_out_log_likelihood, simulate
from benchmarks.rivals import adapters, fit_one, fits, floors, growth, steps
from benchmarks.rivals.__main__ import _kept, main
from benchmarks.rivals.adapters import _sigmoid
from benchmarks.rivals.figure import ONE, chart, draw
from benchmarks.rivals.fits import Runner, Shape
from benchmarks.rivals.tools import TOOLS, tool_named
from itembank.calibration.variational.blocks import Blocks, CodedBlocks
from itembank.calibration.variational.cells import normal_expectation
from itembank.responses import coded_responses

FITTED = {"import_seconds": 0.1, "peak_megabytes": 1_200.4, "r_ability": 0.95, "version": "1.2"}


def test_a_tool_in_its_process_finds_abilities_and_probabilities():
    problem = simulate(40, 50, 1)
    cost, fitted = fit_one.fit(tool_named("itembank"), problem.responses, 1)
    theta, chances = fitted
    assert theta.shape == (40, 1)
    assert chances.shape == (40, 50)
    assert cost["peak_megabytes"] > 10.0
    assert cost["cpu_seconds"] > 0.0
    # What stands for each item at its own mean is worse than a fit.
    mean = np.broadcast_to(np.nanmean(problem.responses, axis=0), chances.shape)
    found, trivial = (held_out_log_likelihood(problem.hidden, problem.masked, p) for p in (chances, mean))
    assert found > trivial


def test_a_tool_that_is_not_installed_says_so():
    missing = replace(TOOLS[2], module="no_such_package")
    assert fit_one.fit(missing, np.zeros((3, 3)), 1) == ({"skipped": "not installed"}, None)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("kill -XCPU $$", "no end in 7 CPU-s"),
        ("echo 'package.Error: too large' >&2; exit 1", "too large"),
        ("exit 1", "failed"),
        ('echo \'{"skipped": "not installed"}\'', "not installed"),
    ],
)
def test_what_a_process_could_not_do_is_a_row(tmp_path, script, reason):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    python.chmod(0o755)
    assert Runner(str(python), 7).fit(tool_named("PyPI mirt"), simulate(3, 4, 1), 1) == {"skipped": reason}


def test_every_tool_gets_the_shapes_that_it_can_fit_and_what_is_known_is_kept():
    asked = []

    class Counting(Runner):
        def fit(self, tool, problem, n_dims):
            asked.append((tool.name, n_dims))
            return {"skipped": "not installed"}

    done = [{"shape": "5 x 6, 1 dimension", "tool": "py-irt", "kept": True}]
    rows = list(fits.run(Counting("python", 1), (Shape(5, 6, 1), Shape(5, 6, 2)), done))
    assert [name for name, n_dims in asked if n_dims == 1] == [tool.name for tool in TOOLS if tool.name != "py-irt"]
    assert [name for name, n_dims in asked if n_dims == 2] == [tool.name for tool in TOOLS if tool.most_dims is None]
    assert done[0] in rows
    assert sum(row["tool"] == "truth" for row in rows) == 2


def test_the_table_has_truth_ratios_and_reasons():
    rows = [
        {"shape": "S", "tool": "truth", "held_out_log_likelihood": -0.5, "r_ability": 1.0},
        {"shape": "S", "tool": "itembank", "cpu_seconds": 2.0, "held_out_log_likelihood": -0.512345, **FITTED},
        {"shape": "S", "tool": "other", "cpu_seconds": 9.0, "held_out_log_likelihood": float("nan"), **FITTED},
        {"shape": "S", "tool": "third", "skipped": "not installed"},
    ]
    lines = list(fits.table(rows))
    assert lines[3] == "| truth | | | | -.50000 | 1.0000 |"
    assert lines[4] == "| itembank 1.2 | 2.0 | 0.1 | 1,200 | -.51235 | 0.9500 |"
    assert lines[5] == "| other 1.2 | 9.0 (4.5x) | 0.1 | 1,200 | NaN | 0.9500 |"
    assert lines[6] == "| third | not installed | | | | |"


def test_steps_are_measured_and_compared():
    found = steps.measure(60, 4)
    assert 0.0 < found["median_seconds"] <= found["largest_seconds"]
    rows = [
        {"tool": "itembank", "n_items": 5_000, "median_seconds": 0.001},
        {"tool": "catsim", "version": "0.21", "n_items": 5_000, "median_seconds": 0.0065},
        {"tool": "fluid", "n_items": 5_000, "skipped": "not installed"},
    ]
    lines = list(steps.table(rows))
    assert lines[3] == "| catsim 0.21 | 5,000 | 6.50 | 6.5 |"
    assert lines[4] == "| fluid | 5,000 | not installed | |"


def test_probabilities_of_one_in_single_precision_have_a_likelihood():
    """They had none once, and a tool that predicts them was shown with NaN."""
    chances = np.ones((1, 2), dtype=np.float32)
    value = held_out_log_likelihood(np.array([[1.0, 0.0]]), np.ones((1, 2), dtype=bool), chances)
    assert value == pytest.approx(np.log(1e-9) / 2.0, rel=1e-6)


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler")
def test_the_floor_does_the_arithmetic_of_a_pass():
    rng = np.random.default_rng(0)
    answers = rng.choice(np.array([0, 1, 255], dtype=np.uint8), (7, 30))
    abilities = np.stack([rng.normal(size=30), rng.uniform(0.01, 0.3, 30)]).astype(np.float32)
    theta, uncertainty = abilities
    items = np.column_stack([rng.normal(size=(7, 2)), *rng.uniform(0.01, 0.1, (3, 7))]).astype(np.float32)
    sums = floors.item_pass(answers, abilities, items)()
    assert np.finfo(np.float64).tiny / 2.0 > 0.0  # compiled code leaves the arithmetic of this process alone
    a, c, of_slope, of_both, of_intercept = (column[:, None] for column in items.T.astype(float))
    mean = a * theta + c
    variance = of_slope * theta**2 + 2.0 * of_both * theta + of_intercept + (a**2 + of_slope) * uncertainty
    correction, curvature, log_cosh = normal_expectation(mean, variance)
    known, centred = answers != 255, answers - 0.5
    linear = known * (centred + correction)
    curvature = known * curvature
    value = known * (centred * mean - log_cosh)
    terms = (curvature, curvature * theta, curvature * (theta**2 + uncertainty), linear, linear * theta, value)
    assert sums == pytest.approx(np.stack([term.sum(axis=1) for term in terms], axis=1), abs=2e-4)


def test_products_of_one_ability_are_counted_by_hand():
    # mean a theta + c 2, variance 3 + 1, sums of outer products 3, linear sums 2: each a product and a sum
    assert floors.product_operations(1) == 2 * (2 + 4 + 3 + 2)
    floor = floors.Floors(cell_ns=3.0, read_ns=0.1, product_gigaflops=50.0)
    assert floor.pass_ns(1) == 3.0
    assert floor.pass_ns(2) == pytest.approx(3.0 + floors.product_operations(2) / 50.0)


def test_growth_counts_the_cells_of_all_passes(monkeypatch):
    monkeypatch.setattr(Blocks, "slices", Blocks.slices)  # to have it back afterwards
    row = growth.measure(30, 60, 1)
    assert row["cells_passed"] % (30 * 60) == 0
    assert row["cells_passed"] >= 10 * 30 * 60
    assert row["r_ability"] > 0.9
    json.dumps(row)


def test_growth_counts_passes_over_codes_too(monkeypatch):
    for blocks, name in ((Blocks, "slices"), (CodedBlocks, "parts")):
        monkeypatch.setattr(blocks, name, getattr(blocks, name))  # to have it back afterwards
    monkeypatch.setattr(coded_responses, "NUMBERS_UP_TO", 1_000)
    row = growth.measure(30, 60, 1)
    assert row["cells_passed"] % (30 * 60) == 0
    assert row["cells_passed"] >= 10 * 30 * 60


def test_growth_draws_what_the_problems_draw():
    responses, theta = growth.responses_and_truth(300, 200, 2)
    assert responses.dtype == np.float32
    assert np.isnan(responses).mean() == pytest.approx(0.1, abs=0.01)
    assert np.nanmean(responses) == pytest.approx(0.5, abs=0.05)
    assert growth.multiple_correlation(theta @ [[1.0, 1.0], [1.0, -1.0]], theta) == pytest.approx(1.0)
    score = np.nanmean(responses, axis=1)
    assert np.corrcoef(score, theta.sum(axis=1))[0, 1] > 0.9  # loadings are positive


def test_growth_ends_where_it_is_told(monkeypatch):
    monkeypatch.setattr(growth, "_in_process", lambda *arguments: {"asked": arguments})
    rows = list(growth.run(2e6, [{"name": "floors", "cell_ns": 1.0}]))
    assert rows[0] == {"name": "floors", "cell_ns": 1.0}
    assert [row["asked"] for row in rows[1:]] == [
        ("400", "250", "1"), ("400", "1000", "1"), ("400", "5000", "1"), ("400", "250", "5"), ("400", "1000", "5"),
    ]  # fmt: skip


def measured():
    floor = {"name": "floors", "cell_ns": 2.0, "read_ns": 0.1, "product_gigaflops": 50.0}
    shared = {"n_models": 400, "peak_megabytes": 100.0, "data_megabytes": 50.0, "r_ability": 0.99}
    rows = [
        {
            **shared,
            "name": f"{n} {d}",
            "n_items": n,
            "n_dims": d,
            "cpu_seconds": d * n / 1e3,
            "cells_passed": 10_000 * n,
        }
        for d in (1, 5)
        for n in (1_000, 5_000)
    ]
    return [floor, *rows]


def test_the_growth_table_says_how_far_from_the_floor():
    lines = list(growth.table(measured()))
    assert "2.0 ns a cell and pass for arithmetic" in lines[0]
    assert lines[3] == "| 400 x 1,000 | 1 | 1.00 | 25 | 100.0 | 50.0 | 100, 50 | 0.9900 |"


def test_the_figure_says_how_far_from_the_floor(tmp_path):
    rivals = [{"tool": "other", "n_models": 400, "n_items": 1_000, "n_dims": 1, "cpu_seconds": 9.0, "version": "1"}]
    drawn = chart(measured(), rivals)
    assert drawn.title == "2 million cells take 5 CPU seconds, 50 times what their arithmetic takes alone"
    columns = drawn.data[0].columns
    points = set(zip(columns["name"], columns["cells"], columns["seconds"], strict=True))
    assert points >= {(ONE, 4e5, 1.0), (ONE, 2e6, 5.0)}
    assert points >= {("arithmetic alone", 4e5, 0.02), ("arithmetic alone", 2e6, 0.1)}  # 10,000 n_items cells of 2 ns
    assert ("other", 4e5, 9.0) in points  # not set aside
    draw(measured(), rivals, tmp_path / "speed.svg")
    assert (tmp_path / "speed.svg").stat().st_size > 5_000


def test_a_part_that_is_not_there_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["rivals", "fitts"])
    with pytest.raises(SystemExit):
        main()
    assert "a part must be one of fits, steps, growth, got fitts" in capsys.readouterr().err


def test_what_r_finds_is_put_together(tmp_path, monkeypatch):
    """An item that all answered alike goes to no fit: mirt refuses it."""
    script = """#!/bin/sh
case "$1" in -e) printf 1.47;; *) cp "$2/responses.csv" "$SEEN"
printf '0.5\\n-0.5\\n0\\n' > "$2/theta.csv"; printf '2,1\\n1,0\\n' > "$2/items.csv";; esac
"""
    (tmp_path / "Rscript").write_text(script, encoding="ascii")
    (tmp_path / "Rscript").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.csv"))
    adapters.r_mirt_version.cache_clear()
    responses = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, np.nan], [0.0, 1.0, 1.0]])
    cost, (theta, chances) = fit_one.fit(tool_named("R mirt"), responses, 1)
    adapters.r_mirt_version.cache_clear()
    assert cost["version"] == "1.47"
    assert (tmp_path / "seen.csv").read_text(encoding="ascii").split() == ["1,0", "0,", "0,1"]
    assert theta.tolist() == [[0.5], [-0.5], [0.0]]
    expected = np.column_stack([expit([2.0, 0.0, 1.0]), [3.5 / 4.0] * 3, expit([0.5, -0.5, 0.0])])
    assert chances == pytest.approx(expected)


def test_what_was_measured_before_outlives_a_stop(tmp_path):
    def stopped():
        yield {"name": "a", "new": True}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _kept(tmp_path / "rows.json", stopped(), [{"name": "a"}, {"name": "b"}])
    assert json.loads((tmp_path / "rows.json").read_text(encoding="utf-8")) == [
        {"name": "a", "new": True},
        {"name": "b"},
    ]


def test_logits_of_any_size_have_a_probability():
    logits = np.array([-1e5, -3.0, 0.0, 2.0, 1e5], dtype=np.float32)
    assert _sigmoid(logits) == pytest.approx(expit(logits.astype(float)))


def test_r_without_abilities_says_so(tmp_path, monkeypatch):
    """With thousands of items mirt's likelihoods are too small for its numbers."""
    script = """#!/bin/sh
case "$1" in -e) printf 1.47;; *) printf 'NA\\nNA\\n' > "$2/theta.csv"; printf '1,0\\n' > "$2/items.csv";; esac
"""
    (tmp_path / "Rscript").write_text(script, encoding="ascii")
    (tmp_path / "Rscript").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ArithmeticError, match="all NA"):
        adapters.fit_r_mirt(np.array([[1.0, 1.0], [0.0, 0.0]]), 1)
