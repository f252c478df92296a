import sys

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from itembank.data.bank_files import load_bank
from itembank.data.builtin import load_builtin
from itembank.data.readers.read import read_responses
from itembank.data.selections import Selection
from itembank.errors import BankError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.reports.quickstart import STRATEGIES, run_quickstart


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run_quickstart(tmp_path_factory.mktemp("quickstart"), n_items=60, n_repeats=1, rng=3)


@pytest.fixture(scope="module")
def table(result):
    return pl.read_csv(result.files["estimates"])


def test_held_out_models_are_a_quarter_and_unknown_to_the_bank(result):
    bank = load_bank(result.files["bank"])
    held_out = read_responses([result.files["responses"]]).model_ids
    assert len(held_out) == round(load_builtin().n_models / 4)
    assert set(held_out).isdisjoint(bank.responses.model_ids)
    assert set(held_out) | set(bank.responses.model_ids) == set(load_builtin().model_ids)


def test_only_the_chosen_items_of_the_held_out_models_are_written(result):
    selection = Selection.load(result.files["selection"])
    assert selection.n_items == 60
    assert sorted(read_responses([result.files["responses"]]).item_ids) == sorted(selection.item_ids)


def test_written_estimates_follow_from_the_written_bank_responses_and_selection(result, table):
    bank = load_bank(result.files["bank"])
    responses = read_responses([result.files["responses"]])
    again = estimate(bank, responses, selection=Selection.load(result.files["selection"]), method="gp-irt")
    expected = pl.DataFrame(again.rows()).select("model_id", "target", again="estimate")
    joined = table.filter(strategy="gp-IRT").join(expected, on=["model_id", "target"])
    assert joined.height == len(again.rows())
    np.testing.assert_allclose(joined["estimate"], joined["again"], atol=1e-12)


def test_true_scores_are_means_of_all_responses(table):
    responses = load_builtin()
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
        assert errors.spearman == pytest.approx(spearmanr(overall["estimate"], overall["true"]).statistic)
        inside = overall.select((pl.col("low") <= pl.col("true")) & (pl.col("true") <= pl.col("high"))).to_series()
        assert errors.coverage == pytest.approx(inside.mean())


def test_strategies_are_those_of_the_first_paper(result):
    assert [one.strategy for one in result.errors] == list(STRATEGIES)
    assert result.files["figure"].read_bytes().startswith(b"\x89PNG")
    assert result.notes == ()


def test_the_same_seed_gives_the_same_numbers_and_progress_rises_to_the_end(result, tmp_path):
    told = []
    again = run_quickstart(tmp_path, n_items=60, n_repeats=1, rng=3, progress=lambda _, share: told.append(share))
    assert [one.row() for one in again.errors] == [one.row() for one in result.errors]
    assert again.first.bank.bank_id == result.first.bank.bank_id
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_without_matplotlib_all_but_the_figure_is_there(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run_quickstart(tmp_path, n_items=40, n_repeats=1, rng=0)
    assert set(result.files) == {"bank", "selection", "responses", "estimates"}
    assert all(path.exists() for path in result.files.values())
    assert "itembank[plot]" in result.notes[0]


def test_a_foreign_folder_is_not_overwritten(tmp_path):
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "letter.txt").write_text("keep me")
    with pytest.raises(BankError, match="is not a bank"):
        run_quickstart(tmp_path, n_repeats=1, rng=0)
    assert (tmp_path / "bank" / "letter.txt").read_text() == "keep me"


def test_at_least_one_repeat_is_needed(tmp_path):
    with pytest.raises(ParameterError, match="n_repeats must be at least 1, got 0"):
        run_quickstart(tmp_path, n_repeats=0)


@pytest.mark.slow
def test_anchors_beat_random_sampling_and_the_item_model_improves_on_them(tmp_path):
    """P1's order at 100 items. Over seeds, ten repeats give 2.2 to 2.5, 1.9 to 2.1 and 1.7 to 2.0 points."""
    random, anchors, gp_irt = run_quickstart(tmp_path, rng=1).errors
    assert gp_irt.mean_absolute_error < anchors.mean_absolute_error < random.mean_absolute_error
    assert gp_irt.mean_absolute_error < 2.3
    assert gp_irt.spearman > 0.92
    assert 0.88 <= gp_irt.coverage <= 0.99
