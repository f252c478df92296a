import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit

from benchmarks.problems import held_out_log_likelihood, simulate
from benchmarks.rivals import adapters, fit_one, fits, floors, growth, priors
from benchmarks.rivals.fits import Runner, Shape
from benchmarks.rivals.priors import PRIORS, JointPrior, averaged_chances, joint_map, loss_and_gradient
from benchmarks.rivals.tools import TOOLS, tool_named
from itembank.calibration.fit_item_model import fit_item_model
from itembank.calibration.variational.blocks import Blocks, UncopiedBlocks
from itembank.calibration.variational.cells import normal_expectation
from itembank.responses.responses import ResponseMatrix


def test_tools_find_abilities_and_probabilities_or_say_that_they_are_not_installed():
    made = simulate(40, 50, 1)
    cost, fitted = fit_one.fit(tool_named("itembank"), made.responses, 1)
    theta, chances = fitted
    assert theta.shape == (40, 1)
    assert chances.shape == (40, 50)
    assert cost["peak_megabytes"] > 10.0
    assert cost["cpu_seconds"] > 0.0
    # What stands for each item at its own mean is worse than a fit.
    mean = np.broadcast_to(np.nanmean(made.responses, axis=0), chances.shape)
    found, trivial = (held_out_log_likelihood(made.hidden, made.masked, p) for p in (chances, mean))
    assert found > trivial
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


def test_growth_counts_the_cells_of_all_passes(monkeypatch):
    for blocks, name in ((Blocks, "slices"), (UncopiedBlocks, "parts")):
        monkeypatch.setattr(blocks, name, getattr(blocks, name))  # to have it back afterwards
    row = growth.measure(30, 60, 1)
    assert row["cells_passed"] % (30 * 60) == 0
    assert row["cells_passed"] >= 10 * 30 * 60
    assert row["r_ability"] > 0.9
    json.dumps(row)


def r_that_writes(folder, monkeypatch, files):
    """Have an Rscript of its own, which says its version and else does this."""
    (folder / "Rscript").write_text(f'#!/bin/sh\ncase "$1" in -e) printf 1.47;; *) {files};; esac\n', encoding="ascii")
    (folder / "Rscript").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_what_r_finds_is_put_together(tmp_path, monkeypatch):
    """An item that all answered alike goes to no fit: mirt refuses it."""
    found = r"""cp "$2/responses.csv" "$SEEN"
printf '0.5\n-0.5\n0\n' > "$2/theta.csv"; printf '2,1\n1,0\n' > "$2/items.csv" """
    r_that_writes(tmp_path, monkeypatch, found)
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
    # with thousands of items mirt's likelihoods are too small for its numbers
    r_that_writes(tmp_path, monkeypatch, r"""printf 'NA\nNA\n' > "$2/theta.csv"; printf '1,0\n' > "$2/items.csv" """)
    with pytest.raises(ArithmeticError, match="all NA"):
        adapters.fit_r_mirt(np.array([[1.0, 1.0], [0.0, 0.0]]), 1)


def problem(seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((6, 4)) < 0.2, np.nan, rng.integers(0, 2, (6, 4))), rng.normal(size=6 + 2 * 4)


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_the_gradient_is_that_of_the_loss(prior):
    responses, point = problem(0)
    _, gradient = loss_and_gradient(point, responses, prior)
    numeric = approx_fprime(point, lambda x: loss_and_gradient(x, responses, prior)[0], 1e-6)
    assert gradient == pytest.approx(numeric, abs=1e-4)


def test_the_prior_of_jml_is_its_penalty():
    """The density is its loss a cell, times the number of cells: mean loss + 0.01 * mean of squared parameters."""
    responses, point = problem(1)
    theta, difficulty, slope = point[:6, None], point[6:10], np.exp(point[10:])
    p = expit(slope * (theta - difficulty))
    cells = np.where(responses == 1.0, np.log(p), np.log1p(-p))[~np.isnan(responses)]
    expected = cells.size * (-cells.mean() + 0.01 * np.mean(point**2))
    found, _ = loss_and_gradient(point, responses, priors.torch_measure_prior(responses))
    assert found == pytest.approx(expected)


def test_the_maximum_recovers_the_truth_and_averaged_probabilities_are_those_of_posterior_draws():
    made = simulate(60, 80, 1)
    theta, chances = joint_map(made.responses, JointPrior())
    assert np.corrcoef(theta[:, 0], made.theta[:, 0])[0, 1] > 0.9
    assert np.sqrt(np.mean((chances - made.chances) ** 2)) < 0.1
    rng = np.random.default_rng(2)
    found = fit_item_model(ResponseMatrix.create(simulate(30, 12, 1).hidden), "variational")
    items = np.column_stack([found.parameters.loadings, found.parameters.intercept])
    chances = np.zeros((30, 12))
    n_draws = 2_000
    spread = np.sqrt(found.ability_covariance[:, 0, 0])
    factors = np.linalg.cholesky(found.item_covariance)
    for _ in range(n_draws):
        slope, intercept = (items + np.einsum("iab,ib->ia", factors, rng.normal(size=items.shape))).T
        chances += expit((found.abilities[:, 0] + spread * rng.normal(size=30))[:, None] * slope + intercept) / n_draws
    # A product of normals is not quite normal: more than the 0.005 of the draws.
    assert averaged_chances(found) == pytest.approx(chances, abs=0.03)
