import csv
import io
import shlex
from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

import itembank as ib
from itembank.calibration.build import calibrate  # `ib.calibrate` is patched here
from itembank.calibration.calibration_specs import Variational
from itembank.cli import quickstart
from itembank.cli.quickstart import split_runs
from itembank.errors import missing_package
from itembank.estimation.folds import folds
from itembank.readers.builtin import NEW_MODEL, load_builtin, sample_data
from itembank_studies.simulation.simulate import load_truth, simulate
from itembank_studies.simulation.simulation_specs import SimulationSpec
from tests.bank.few_items import load_few
from tests.cli.conftest import spec_file
from tests.cli.contract.calls import run as call
from tests.conftest import Outcome

ARGUMENTS = ("quickstart",)
STRATEGIES = ["random sampling", "anchor points", "gp-IRT", "V-optimal", "itembank's default"]
FEW = partial(load_few, every_item=14)


def small(monkeypatch):
    """Take few items and folds, and a fit of a second."""
    spec = Variational("2pl", n_dims=1, tolerance=1e-3)
    monkeypatch.setattr(ib, "calibrate", lambda past, asked=None, **choices: calibrate(past, asked or spec, **choices))
    monkeypatch.setattr(ib, "load_builtin", FEW)
    monkeypatch.setattr("itembank.cli.quickstart.N_ITEMS", 40)
    monkeypatch.setattr("itembank.cli.quickstart.N_DRAWS", 2)
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_MANY", 3)
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # it takes seconds to bundle


@pytest.fixture(autouse=True)
def _quick(request, monkeypatch):
    if "slow" not in request.keywords:
        small(monkeypatch)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Run it on few items, with a quick fit: what it said and wrote."""
    folder = tmp_path_factory.mktemp("quickstart")
    with pytest.MonkeyPatch.context() as patched:
        small(patched)
        return Outcome(*call(shlex.join([*ARGUMENTS, "-o", str(folder / "out")]))), folder / "out"


def test_what_was_done_is_said_and_the_next_commands_work(made, run):
    outcome, folder = made
    assert outcome.code == 0, outcome.err
    assert "70 unseen models estimated from 40 of 130 items" in outcome.out.replace("\n", " ")
    assert [name for name in STRATEGIES if name in outcome.out] == STRATEGIES
    assert "Written" not in outcome.out
    for name in ("bank", "selection.json", "new-models.parquet", "estimates.csv"):
        assert str(folder / name) in outcome.err
        assert (folder / name).exists()
    for name, title in (("estimates.html", "Estimates"), ("bank.html", "Bank")):
        assert f"Report: {folder / name}" in outcome.err
        assert title in (folder / name).read_text(encoding="utf-8")
    lines = [line.split("itembank ")[1] for line in outcome.err.splitlines() if "itembank " in line]
    assert [line.split()[0] for line in lines] == ["info", "estimate"]
    for line in lines:
        followed = run.ok(*line.split(), "--format", "csv")
        assert len(list(csv.DictReader(io.StringIO(followed.out)))) >= 5


def test_the_bank_knows_no_held_out_run_and_gives_the_written_estimates_without_a_fit(made):
    _, folder = made
    bank, asked = ib.load_bank(folder / "bank"), ib.read_responses(folder / "new-models.parquet")
    past, new = ({name.rpartition("/")[0] for name in one} for one in (bank.responses.model_ids, asked.model_ids))
    assert past.isdisjoint(new)
    assert (len(past), len(new)) == (42, 14)
    selection = ib.Selection.load(folder / "selection.json")
    assert (selection.n_items, sorted(asked.item_ids)) == (40, sorted(selection.item_ids))
    told = []
    folds(bank, progress=lambda text, _: told.append(text))
    again = ib.estimate(bank, asked, selection=ib.Selection.load(folder / "selection.json"))
    assert told == []
    written = pl.read_csv(folder / "estimates.csv")
    expected = pl.DataFrame(again.rows()).select("model_id", "target", again="estimate", low_again="low")
    joined = written.join(expected, on=["model_id", "target"])
    assert joined.height == len(again.rows())
    np.testing.assert_allclose(joined["estimate"], joined["again"], atol=1e-12)
    np.testing.assert_allclose(joined["low"], joined["low_again"], atol=1e-12)


def test_running_again_replaces_the_files_and_errors_are_those_of_the_written_estimates(made, run):
    """True scores are means of all answers; items drawn by chance are drawn again, and the first draw is written."""
    outcome, folder = made
    before, again = (folder / "estimates.csv").read_bytes(), run.json(*ARGUMENTS, "-o", folder)
    assert (folder / "estimates.csv").read_bytes() == before
    rows = again["rows"]
    assert [row["strategy"] for row in rows] == STRATEGIES
    assert [row["method"] for row in rows] == ["mean", "weighted", "gp-irt", "stacked", "design-based"]
    written = pl.read_csv(folder / "estimates.csv")
    overall, default = written.filter(target="overall"), rows[-1]
    bank, new = ib.load_bank(folder / "bank"), FEW("bytelms").take(models=overall["model_id"].to_list())
    second = ib.select(bank, 40, rng=1)
    others = ib.estimate(bank, new.take(items=new.item_indices(second.item_ids)), selection=second)
    draws = [overall.select("estimate", "low", "high").to_numpy().T]
    draws.append([one[:, -1] for one in (others.value, others.low, others.high)])
    true, found = overall["true"].to_numpy(), []
    for value, low, high in draws:
        points = 100.0 * np.abs(value - true)
        rank = spearmanr(value.round(12), true.round(12)).statistic  # ties are ties, whatever the rounding
        found.append([points.mean(), points.max(), rank, np.mean((low <= true) & (true <= high))])
    told = [default[name] for name in ("mean_absolute_error", "worst_error", "spearman", "coverage")]
    assert (told, [row["n_draws"] for row in rows]) == (pytest.approx(np.mean(found, axis=0)), [2, 1, 1, 1, 2])
    assert f" {default['worst_error']:.1f} " in outcome.out
    responses, model = FEW("bytelms"), overall["model_id"][0]
    answers = responses.responses[responses.model_indices([model])[0]]
    means = pl.DataFrame({"scenario": responses.items["scenario"], "y": answers}).group_by("scenario").mean()
    found = dict(written.filter(model_id=model).select("target", "true").iter_rows())
    assert found == pytest.approx({**dict(means.iter_rows()), "overall": means["y"].mean()})


@pytest.mark.parametrize("name", ["bank/letter.txt", "selection.json"])
def test_files_of_something_else_are_never_overwritten(run, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("keep me")
    run.fails(2, "must be a new folder or that of an earlier quickstart, but it holds '", *ARGUMENTS, "-o", tmp_path)
    assert (tmp_path / name).read_text() == "keep me"


def test_without_what_pages_need_one_line_says_so(monkeypatch, run, tmp_path):
    def refuse(*_args, **_known):
        raise missing_package("reports need jinja2", "jinja2", ImportError("no module named 'jinja2'"))

    monkeypatch.setattr("itembank.pages.estimates_page", refuse)
    assert "No pages were written: reports need jinja2" in run.ok(*ARGUMENTS, "-o", tmp_path).err
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"bank", "estimates.csv", "new-models.parquet", "selection.json"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* models answer like another one")
def test_gp_irt_improves_on_anchors_v_optimal_items_on_both_and_drawn_ones_on_random_ones():
    """The order of tinyBenchmarks at 100 items: means over five splits."""
    errors = []
    for seed in range(1, 6):
        past, new = split_runs(load_builtin("bytelms"), seed)
        bank = calibrate(past, rng=seed)
        true = bank.targets.with_overall(bank.targets.scenario_means(new.responses))[:, -1]
        chosen = {one.selection: ib.select(bank, 100, method=one.selection, rng=seed) for one in quickstart.STRATEGIES}
        found = [ib.estimate(bank, new, selection=chosen[one], method=how) for _, one, how, _ in quickstart.STRATEGIES]
        errors.append([np.abs(one.value[:, -1] - true).mean() for one in found])
    random, anchors, gp_irt, optimal, default = np.mean(errors, axis=0)
    assert gp_irt < 0.8 * anchors
    assert anchors < 1.1 * random
    assert optimal < gp_irt
    assert default < random


def test_sample_data_can_be_used_as_they_are_and_have_no_checkpoint_of_the_new_run(run, tmp_path):
    outcome = run.json("sample-data", "-o", tmp_path / "sample")
    assert [row["models"] for row in outcome["rows"]] == [110, 1]
    for name, n_models in (("past.csv", 110), ("new-model.csv", 1)):
        table = pl.read_csv(tmp_path / "sample" / name)
        assert table.columns == ["model_id", "item_id", "scenario", "response"]
        sizes = table["model_id"].n_unique(), table["item_id"].n_unique(), table.height
        assert (sizes, set(table["response"])) == ((n_models, 680, 680 * n_models), {0, 1})
    run.ok("import", tmp_path / "sample/past.csv", "-o", tmp_path / "responses.parquet")
    past, new = sample_data()
    assert new.model_ids == [NEW_MODEL]
    assert not [model for model in past.model_ids if model.startswith(NEW_MODEL.rpartition("/")[0] + "/")]
    assert past.item_ids == new.item_ids


def test_a_file_that_is_there_is_left_as_it_is(run, tmp_path):
    (tmp_path / "new-model.csv").write_text("mine", encoding="utf-8")
    run.fails(1, "new-model.csv' must not be there yet", "sample-data", "-o", tmp_path)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["mine"]


def test_the_same_command_again_ends_what_a_killed_one_began(run, tmp_path):
    run.ok("sample-data", "-o", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    (tmp_path / "new-model.csv").unlink()
    run.ok("sample-data", "-o", tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


SHAPE = ("--n-models", 6, "--n-items", 80, "--n-tasks", 3, "--n-dims", 2)


def test_responses_and_truth_are_those_of_the_library(run, tmp_path):
    outcome = run.json("simulate", "-o", tmp_path / "r.parquet", *SHAPE, "--missing", 0.2, "--seed", 4)
    made = simulate(SimulationSpec(6, 80, 3, 2, missing=0.2), 4)
    read = ib.read_responses(tmp_path / "r.parquet")
    np.testing.assert_array_equal(read.responses, made.responses.responses)
    np.testing.assert_array_equal(read.costs["output_tokens"], made.responses.costs["output_tokens"])
    assert read.item_ids == made.responses.item_ids
    truth = load_truth(tmp_path / "r.truth.safetensors")
    np.testing.assert_array_equal(truth.abilities, made.truth.abilities)
    files = {"file": str(tmp_path / "r.parquet"), "truth": str(tmp_path / "r.truth.safetensors")}
    counts = {"n_models": 6, "n_items": 80, "n_tasks": 3, "n_dims": 3, "costs": ["input_tokens", "output_tokens"]}
    n_missing, mean = int(np.isnan(made.responses.responses).sum()), made.truth.task_scores.mean()
    assert outcome["rows"] == [{**files, **counts, "n_missing": n_missing, "mean_task_score": mean}]


def test_the_same_seed_writes_the_same_files_which_can_be_calibrated(run, tmp_path):
    for name in ("a", "b"):
        run("simulate", "-o", tmp_path / f"{name}.parquet", *SHAPE)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert (tmp_path / "a.truth.safetensors").read_bytes() == (tmp_path / "b.truth.safetensors").read_bytes()
    run("simulate", "-o", tmp_path / "r.parquet", *SHAPE, "--guessing", 0.25)
    known = spec_file(tmp_path, "known_guessing = true")
    run.ok("calibrate", tmp_path / "r.parquet", "-o", tmp_path / "bank", "--dims", 1, *known)
