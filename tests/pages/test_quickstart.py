import dataclasses
import sys
from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from itembank.bank.bank_files import load_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.calibration.build import build_bank
from itembank.calibration.calibration_specs import Variational
from itembank.errors import ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.folds import folds
from itembank.pages import quickstart
from itembank.pages.quickstart import (
    DEFAULT,
    STRATEGIES,
    QuickstartResult,
    Round,
    StrategyErrors,
    _counted,
    quickstart_page,
    run_quickstart,
)
from itembank.planning.select import select
from itembank.readers.read import read_responses
from itembank.responses.score_names import OVERALL
from tests.bank import few_items
from tests.bank.banks import make_bank
from tests.pages.reading import answers, chart, column, words

pytestmark = pytest.mark.filterwarnings("ignore:.*answered unlike the bank")  # whole training runs are new

load_few = partial(few_items.load_few, every_item=14)
QUICK = Variational("2pl", n_dims=1, tolerance=1e-3)  # four fits in a second
N_FOLDS = 3


def quick_bank(past, *, rng):
    return build_bank(past, QUICK, rng=rng)


@pytest.fixture(autouse=True)
def _quick(request, monkeypatch):
    if "slow" not in request.keywords:
        monkeypatch.setattr(quickstart, "build_bank", quick_bank)
        monkeypatch.setattr(quickstart, "load_builtin", load_few)
        monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_MANY", N_FOLDS)


def small_quickstart(folder, **choices):
    """Run it on few models, with a quick fit."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(quickstart, "build_bank", quick_bank)
        patched.setattr(quickstart, "load_builtin", load_few)
        patched.setattr("itembank.estimation.folds.N_FOLDS_MANY", N_FOLDS)
        return run_quickstart(folder, n_items=60, n_repeats=1, rng=3, **choices)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return small_quickstart(tmp_path_factory.mktemp("quickstart"))


@pytest.fixture(scope="module")
def table(result):
    return pl.read_csv(result.files["estimates"])


def test_held_out_models_are_a_quarter_and_unknown_to_the_bank(result):
    bank = load_bank(result.files["bank"])
    held_out = read_responses([result.files["responses"]]).model_ids
    assert len(held_out) == round(load_few("bytelms").n_models / 4)
    assert set(held_out).isdisjoint(bank.responses.model_ids)
    assert set(held_out) | set(bank.responses.model_ids) == set(load_few("bytelms").model_ids)


def test_no_checkpoint_of_a_held_out_run_is_in_the_bank(result):
    runs_past, runs_new = (
        {name.rpartition("/")[0] for name in one}
        for one in (result.first.bank.responses.model_ids, result.first.held_out.model_ids)
    )
    assert runs_past.isdisjoint(runs_new)
    assert (len(runs_past), len(runs_new)) == (42, 14)


def test_only_the_chosen_items_of_the_held_out_models_are_written(result):
    selection = Selection.load(result.files["selection"])
    assert selection.n_items == 60
    assert sorted(read_responses([result.files["responses"]]).item_ids) == sorted(selection.item_ids)


def test_written_estimates_follow_from_the_written_bank_responses_and_selection(result, table):
    bank = load_bank(result.files["bank"])
    responses = read_responses([result.files["responses"]])
    again = estimate(bank, responses, selection=Selection.load(result.files["selection"]))
    expected = pl.DataFrame(again.rows()).select("model_id", "target", again="estimate", low_again="low")
    joined = table.filter(strategy=DEFAULT.name).join(expected, on=["model_id", "target"])
    assert joined.height == len(again.rows())
    np.testing.assert_allclose(joined["estimate"], joined["again"], atol=1e-12)
    np.testing.assert_allclose(joined["low"], joined["low_again"], atol=1e-12)


def test_the_written_bank_needs_no_fit_for_its_first_estimate(result):
    bank = load_bank(result.files["bank"])
    told = []
    assert len(folds(bank, progress=lambda text, _: told.append(text))) == N_FOLDS
    selection = Selection.load(result.files["selection"])
    before = {path.name for path in (result.files["bank"] / "cache").iterdir()}
    estimate(bank, read_responses([result.files["responses"]]), selection=selection)
    assert told == []
    assert {path.name for path in (result.files["bank"] / "cache").iterdir()} == before


def test_the_default_says_what_was_chosen(result):
    selection = Selection.load(result.files["selection"])
    default = result.errors[-1]
    assert default.strategy == DEFAULT == STRATEGIES[-1]
    assert (DEFAULT.selection, DEFAULT.method) == ("auto", "auto")
    assert default.selections_used == {selection.method: 1}
    assert default.methods_used == {"stacked": 1}
    row = default.row()
    assert (row["selections_used"], row["methods_used"]) == (selection.method, "stacked")
    assert selection.explanation
    for other in result.errors[:-1]:
        assert set(other.selections_used) == {other.strategy.selection}
        assert set(other.methods_used) == {other.strategy.method}


def test_several_choices_are_counted():
    assert _counted({"stratified": 1, "v-optimal": 4}) == "4 v-optimal, 1 stratified"
    assert _counted({"v-optimal": 5}) == "v-optimal"


def test_true_scores_are_means_of_all_responses(table):
    responses = load_few("bytelms")
    model = table["model_id"][0]
    row = pl.DataFrame(
        {"scenario": responses.items["scenario"], "y": responses.responses[responses.model_indices([model])[0]]}
    )
    means = dict(row.group_by("scenario").agg(pl.col("y").mean()).iter_rows())
    means["overall"] = sum(means.values()) / len(means)
    found = dict(table.filter(model_id=model, strategy="gp-IRT").select("target", "true").iter_rows())
    assert found == pytest.approx(means)


def test_errors_are_those_of_the_written_estimates(result, table):
    for errors in result.errors:
        overall = table.filter(strategy=errors.strategy.name, target="overall")
        points = 100.0 * np.abs((overall["estimate"] - overall["true"]).to_numpy())
        assert errors.mean_absolute_error == pytest.approx(points.mean())
        assert errors.worst_error == pytest.approx(points.max())
        ranked = (overall[name].round(12) for name in ("estimate", "true"))  # ties are ties, whatever the rounding
        assert errors.spearman == pytest.approx(spearmanr(*ranked).statistic)
        inside = overall.select((pl.col("low") <= pl.col("true")) & (pl.col("true") <= pl.col("high"))).to_series()
        assert errors.coverage == pytest.approx(inside.mean())


def test_strategies_are_those_of_the_first_paper_and_the_default(result):
    assert [one.strategy for one in result.errors] == list(STRATEGIES)
    assert [one.name for one in STRATEGIES] == ["random sampling", "anchor points", "gp-IRT", "itembank's default"]
    assert result.files["figure"].read_bytes().startswith(b"\x89PNG")
    assert result.notes == ()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_and_progress_rises_to_the_end(result, tmp_path):
    told = []
    again = small_quickstart(tmp_path, progress=lambda _, share: told.append(share))
    assert [one.row() for one in again.errors] == [one.row() for one in result.errors]
    assert again.first.bank.bank_id == result.first.bank.bank_id
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_without_vl_convert_all_but_the_figure_is_there(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    result = run_quickstart(tmp_path, n_items=40, n_repeats=1, rng=0)
    assert set(result.files) == {"bank", "selection", "responses", "estimates"}
    assert all(path.exists() for path in result.files.values())
    assert "pip install vl-convert-python" in result.notes[0]


@pytest.mark.parametrize("name", ["bank/letter.txt", "selection.json"])
def test_files_of_something_else_are_never_overwritten(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("keep me")
    with pytest.raises(ParameterError, match=r"must be a new folder or that of an earlier quickstart, but it holds '"):
        run_quickstart(tmp_path, n_repeats=1, rng=0)
    assert (tmp_path / name).read_text() == "keep me"


def test_at_least_one_repeat_is_needed(tmp_path):
    with pytest.raises(ParameterError, match="n_repeats must be a whole number >= 1, got 0"):
        run_quickstart(tmp_path, n_repeats=0)


@pytest.mark.slow
def test_anchors_beat_random_sampling_the_item_model_improves_on_them_and_the_default_on_all(tmp_path):
    """tinyBenchmarks's order at 100 items. Five repeats of seed 0 give 3.3, 3.2, 2.0 and 1.4 points."""
    random, anchors, gp_irt, default = run_quickstart(tmp_path, n_repeats=5, rng=1).errors
    assert gp_irt.mean_absolute_error < 0.8 * anchors.mean_absolute_error
    assert anchors.mean_absolute_error < 1.1 * random.mean_absolute_error
    assert default.mean_absolute_error < 0.9 * gp_irt.mean_absolute_error
    assert default.worst_error < gp_irt.worst_error
    assert default.spearman > gp_irt.spearman > 0.9
    assert 0.88 <= default.coverage <= 0.99
    assert gp_irt.coverage >= 0.88


def errors_of(strategy, mean):
    return StrategyErrors(strategy, {"random": 1}, {"mean": 1}, mean, 3.0 * mean, 0.9, 0.96, 0.95)


@pytest.fixture(scope="module")
def shown_result(tmp_path_factory):
    bank: Bank = make_bank()
    held_out = make_bank(n_models=5, seed=3).responses
    selection = select(bank, 12, method="random", rng=1)
    found = estimate(bank, held_out, selection=selection, method="weighted", interval="model-based")
    flags = np.array([0.5, 0.01, 0.5, 0.5, 0.5])
    found = dataclasses.replace(found, typicality=found.typicality._replace(typicality=flags))
    true = bank.targets.with_overall(bank.targets.scenario_means(held_out.responses))
    selections = {strategy.selection: selection for strategy in STRATEGIES}
    first = Round(bank, held_out, true, selections, (found,) * len(STRATEGIES))
    folder = tmp_path_factory.mktemp("quickstart")
    files = {name: folder / name for name in ("bank", "selection", "responses")}
    means = (2.9, 2.6, 1.7, 1.4)
    made = tuple(errors_of(strategy, mean) for strategy, mean in zip(STRATEGIES, means, strict=True))
    return QuickstartResult(made, first, 2, files, ())


def test_problem_and_gain_stand_at_once(shown_result):
    page = quickstart_page(shown_result)
    assert page.title == "12 of 30 questions: 2.9 points off by chance, 1.4 points by itembank"
    assert [one.value for one in answers(page)] == ["2.9 points", "1.4 points", "96 %"]
    assert "Errors are over 2 such splits" in words(page)


def test_every_held_out_model_is_drawn_against_the_truth_in_both_panels(shown_result):
    page = quickstart_page(shown_result)
    data = chart(page, "random sampling is off by 2.9 points").data[0].columns
    true = shown_result.first.true[:, -1]
    np.testing.assert_allclose(data["true"], [*true, *true])
    np.testing.assert_allclose(data["estimate"][:5], shown_result.first.estimates[0].column(OVERALL))
    assert [bool(one) for one in data["is_flagged"]] == [False, True, False, False, False] * 2
    assert column(page, "Held-out models", "model") == [*shown_result.first.held_out.model_ids] * 2


def test_all_ways_and_the_next_commands_are_listed(shown_result):
    page = quickstart_page(shown_result)
    assert column(page, "Errors of the overall score", "mean") == [2.9, 2.6, 1.7, 1.4]
    assert f"itembank estimate {shown_result.files['bank']} {shown_result.files['responses']} --selection" in words(
        page
    )
