import shutil

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.readers.read import read_responses as load_responses
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def bank_folder(tmp_path_factory):
    """A bank with models enough to calibrate intervals; what is derived from it stays in its folder."""
    folder = tmp_path_factory.mktemp("compare") / "bank"
    save_bank(make_bank(n_models=20), folder)
    return folder


@pytest.fixture
def results(bank_folder, tmp_path):
    """Three models that answered half of the items."""
    bank = load_bank(bank_folder)
    responses = (np.random.default_rng(9).random((3, 30)) < [[0.9], [0.5], [0.4]]).astype(float)
    matrix = ResponseMatrix.create(responses, model_ids=["old", "new", "next"], items=bank.responses.items)
    write_responses(matrix.take(items=np.arange(18)), tmp_path / "results.parquet")
    return tmp_path / "results.parquet"


def test_rows_have_what_the_documentation_promises(run, bank_folder, results):
    outcome = run.json("compare", bank_folder, results, "--model", "old", "--model", "new", "--target", "all")
    rows = outcome["rows"]
    assert [row["target"] for row in rows] == ["math", "code", "law", "overall"]
    for row in rows:
        assert (row["model_a"], row["model_b"], row["level"], row["method"]) == ("old", "new", 0.95, "stacked")
        assert row["low"] <= row["difference"] <= row["high"]
        assert 0.0 <= row["probability_b_better"] < 0.5
        assert {"standard_error", "smallest_detectable_difference", "p_value", "p_holm", "mcnemar_p"} <= set(row)
        assert {"paired_t_p", "n_shared_items", "n_items_a", "n_items_b", "note"} <= set(row)


def test_models_are_compared_in_the_order_in_which_they_are_named(run, bank_folder, results):
    rows = run.json("compare", bank_folder, results, "--model=next", "--model", "old")["rows"]
    assert [(row["model_a"], row["model_b"]) for row in rows] == [("next", "old")]


def test_all_pairs_by_default_on_the_overall_score(run, bank_folder, results):
    rows = run.json("compare", bank_folder, results)["rows"]
    assert [(row["model_a"], row["model_b"]) for row in rows] == [("old", "new"), ("old", "next"), ("new", "next")]
    assert {row["target"] for row in rows} == {"overall"}


def test_the_table_shows_the_interval_and_adjusted_p(run, bank_folder, results):
    outcome = run("compare", bank_folder, results)
    rows = run.json("compare", bank_folder, results)["rows"]
    clear = sum(row["p_holm"] < 0.05 for row in rows)
    assert outcome.out.startswith(f"{clear} of 3 differences of 3 models are clear; overall score, B - A, in points")
    assert "95 % interval" in outcome.out
    assert "p (Holm)" in outcome.out
    assert all(f"{100 * row['joint_low']:+.1f} to {100 * row['joint_high']:+.1f}" in outcome.out for row in rows)
    assert "of this bank" not in outcome.err
    assert load_bank(bank_folder).bank_id not in outcome.out


@pytest.mark.usefixtures("without_library")
def test_a_page_has_every_score_whatever_was_compared(run, bank_folder, results, tmp_path):
    page = tmp_path / "compare.html"
    outcome = run.ok("compare", bank_folder, results, "--model", "old", "--model", "new", "--report", page)
    assert "To see this as a page" not in outcome.err
    text = page.read_text(encoding="utf-8")
    assert "old against new" in text
    assert "Scenario by scenario" in text
    assert "as a page: --report FILE.html" in run("-v", "compare", bank_folder, results).err
    assert "as a page" not in run("-v", "compare", bank_folder, results, "--format", "csv").err


@pytest.mark.usefixtures("without_library")
def test_a_page_of_two_models_on_drawn_items(run, bank_folder, tmp_path):
    """It asked for every score by 'design-based', which is no method that can be asked for."""
    bank, drawn, page = load_bank(bank_folder), tmp_path / "drawn.json", tmp_path / "compare.html"
    answers = (np.random.default_rng(9).random((2, 30)) < 0.6).astype(float)
    write_responses(ResponseMatrix.create(answers, items=bank.responses.items), tmp_path / "two.parquet")
    run.ok("select", bank_folder, "-n", 12, "-o", drawn)
    run.ok("compare", bank_folder, tmp_path / "two.parquet", "--selection", drawn, "--report", page)
    assert "Scenario by scenario" in page.read_text(encoding="utf-8")


def test_ranking(run, bank_folder, results):
    outcome = run("compare", bank_folder, results, "--ranking", "--format", "json")
    rows = outcome.json["rows"]
    assert rows[0]["model_id"] == "old"
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert "Of group 1 no model is clearly better than another" in outcome.err
    pairs = {(row["model_a"], row["model_b"]): row for row in run.json("compare", bank_folder, results)["rows"]}
    for row in rows[1:]:
        one, sign = ("model_a", 1) if (row["model_id"], "old") in pairs else ("model_b", -1)
        pair = pairs[(row["model_id"], "old") if one == "model_a" else ("old", row["model_id"])]
        ends = sorted(sign * pair[name] for name in ("joint_low", "joint_high"))
        assert [row[name] for name in ("behind_best", "behind_lower", "behind_upper")] == [
            sign * pair["difference"], *ends
        ]  # fmt: skip


def test_two_models_are_compared_in_a_sentence(run, bank_folder, results):
    pair = ("compare", bank_folder, results, "--model", "old", "--model", "new")
    row = run.json(*pair)["rows"][0]
    sentence = run(*pair).out.splitlines()[0]
    assert f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}" in sentence
    assert sentence.startswith("No sure difference") == (row["low"] <= 0.0 <= row["high"])


def test_files_are_compared_without_a_bank(run, results, tmp_path):
    """Two files of one model, one of several, and runs of the same name; what a bank alone gives is refused."""
    matrix = load_responses(results)
    for name in matrix.model_ids:
        write_responses(matrix.take(models=matrix.model_indices([name])), tmp_path / f"{name}.parquet")
    two = ("compare", tmp_path / "old.parquet", tmp_path / "new.parquet", "--format", "json")
    (row,) = run(*two).json["rows"]
    gate = run("gate", *two[1:], "--margin", "0.3").json
    assert [row[name] for name in ("difference", "low", "high")] == pytest.approx(
        [gate[name] for name in ("difference", "low", "high")]
    )
    assert (row["bank"], row["method"], row["estimand"]) == ("", "paired", "questions")
    ranking = run.ok("compare", results, "--ranking", "--report", tmp_path / "ranking.html")
    assert "places" in ranking.out
    assert "Differences are of questions like these" in ranking.err
    page = (tmp_path / "ranking.html").read_text(encoding="utf-8")
    assert "3 models ranked" in page
    assert "How far each model is behind old" in page
    same = tmp_path / "old.parquet"
    twice = run.json("compare", same, same)["rows"]
    assert [(one["model_a"], one["model_b"], one["difference"]) for one in twice] == [("old (1)", "old (2)", 0.0)]
    for words in (("--method", "weighted"), ("--match", "hash"), ("--ignore-unknown",)):
        outcome = run("compare", results, *words)
        assert outcome.code == 2
        assert "a bank before the results" in outcome.err
    assert "RESPONSES" in run("compare").err
    assert "it is called 'repeated' now" in run("compare", results, "--estimand", "expected").err.lower()


def test_models_that_calibrated_the_bank_are_named(run, bank_folder, results):
    own = load_bank(bank_folder).responses
    write_responses(own.take(models=np.arange(2), items=np.arange(18)), results)
    outcome = run.ok("compare", bank_folder, results, "--format", "json")
    assert "Note: 'org/model-0', 'org/model-1': among the past models of this bank" in outcome.err
    assert ".." not in outcome.err
    assert "among the past models of this bank" in outcome.json["rows"][0]["note"]  # as in Python
    assert "of this bank" not in run("--quiet", "compare", bank_folder, results).err


def test_fits_that_take_time_are_shown(run, bank_folder, results, user_cache):
    for place in (bank_folder / "cache", user_cache):
        shutil.rmtree(place, ignore_errors=True)
    assert "compare: fitting without models" in run("compare", bank_folder, results).err
    again = run.ok("compare", bank_folder, results)
    assert "fitting without models" not in again.err


def test_a_difference_that_no_scores_have_is_not_detectable(run, tmp_path):
    matrix = ResponseMatrix.create([[1.0, 1.0], [0.0, 0.0]])
    write_responses(matrix, tmp_path / "two.parquet")
    outcome = run.ok("compare", tmp_path / "two.parquet", "--report", tmp_path / "page.html")
    assert [line.split()[-1] for line in outcome.out.splitlines() if "detectable" in line] == ["none"]
    assert "too few to show any difference" in (tmp_path / "page.html").read_text()
