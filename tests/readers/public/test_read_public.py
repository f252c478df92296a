"""Public sources read from folders in their own layout, and compared with the scores they state."""

import json
import zipfile
from dataclasses import fields

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataWarning, ParameterError
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import reader_function, sources
from itembank.responses.responses import ResponseMatrix
from itembank_harnesses.public.fetch import check_address
from itembank_harnesses.public.read_public import check_published, read_public
from itembank_harnesses.public.sources import Archive
from itembank_harnesses.public.stores import SOURCES, public_source
from tests.readers.logs import sample, write_run
from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl, write_live_code_bench
from tests.readers.reading import put, refuses, warns


def test_swe_bench_counts_errors_as_the_leaderboard_does(tmp_path):
    ids = [f"o__t-{k}" for k in range(4)]
    for name, content in {
        "20240101_a": {"resolved": ids[:2], "no_generation": [], "no_logs": [ids[2]]},
        "20250101_b": {"resolved": ids[:1]},
    }.items():
        write(tmp_path / "evaluation" / "verified" / name / "results" / "results.json", content)
    stated = [{"folder": "20240101_a", "resolved": 50.0}, {"folder": "20250101_b", "resolved": 40.0}]
    write(tmp_path / "leaderboards.json", {"leaderboards": [{"name": "Verified", "results": stated}]})
    items = tmp_path / "instances.csv"
    pl.DataFrame({"item_id": ids, "difficulty": [1, 2, 3, 4]}).write_csv(items)
    with pytest.warns(DataWarning, match="'20250101_b' on swe-bench-verified: 0.2500, published 0.4000"):
        found = read_public("swebench-verified", tmp_path, items=items)
    assert found.responses.responses.tolist() == [[1, 1, 0, 0], [1, 0, 0, 0]]
    assert found.responses.lost.n.sum(axis=1).tolist() == [1, 0]
    assert found.responses.items["difficulty"].to_list() == [1, 2, 3, 4]
    assert found.responses.models["date"].to_list() == ["2024-01-01", "2025-01-01"]
    assert (found.check.n_compared, len(found.check.differing)) == (2, 1)
    refuses("resolved instances only", read_public, "swebench-verified", tmp_path)


def test_stores_are_compared_with_what_they_state(tmp_path):
    write_alpaca_eval(tmp_path, {"a": [1.25, 1.75], "b": [2.0, 1.0]}, win_rates={"a": 50.0, "b": 51.0})
    with pytest.warns(DataWarning, match="1 of 2 scores differ .*'b' on alpaca_eval: 0.5000, published 0.5100"):
        found = read_public("alpaca-eval", tmp_path)
    assert np.sort(found.responses.responses[0]).tolist() == [0.25, 0.75]
    for category in ("simple", "rest"):
        write_bfcl(tmp_path / "b", {"a": [0], "b": [1, 2]}, category=category)
    found = read_public("bfcl", tmp_path / "b")
    assert found.responses.responses.shape == (2, 8)
    assert (found.check.n_compared, found.check.largest) == (2, 0.0)
    samples = [{"base_status": "pass", "plus_status": one} for one in ("pass", "fail")]
    content = {"eval": {"Mbpp/2": samples}, "pass_at_k": {"plus": {"pass@1": 0.5}, "base": {"pass@1": 1.0}}}
    write(tmp_path / "c" / "e" / "m_eval_results.json", content)
    found = read_public("evalplus", tmp_path / "c" / "e")
    assert (found.check.n_compared, found.check.largest) == (1, 0.0)
    write_live_code_bench(tmp_path / "c" / "l", {"m": {"q": [True, False], "r": [True, True]}}, stated=0.7)
    warns("0.7500, published 0.7000", read_public, "livecodebench", tmp_path / "c" / "l")


def test_leaderboards_of_open_llm_are_compared_and_have_a_metric_of_each_task(tmp_path):
    for model, right in {"org/a": (1.0, 0.0), "org/b": (1.0, 1.0)}.items():
        samples = [sample(doc, acc_norm=value) for doc, value in enumerate(right)]
        write_run(tmp_path / model.replace("/", "__"), model, {"leaderboard_bbh_x": samples})
        results = next((tmp_path / model.replace("/", "__")).rglob("results_*.json"))
        content = json.loads(results.read_text())
        content |= {"model_name": model, "results": {"leaderboard_bbh_x": {"acc_norm,none": sum(right) / 2}}}
        put(results, content)
    found = read_public("open-llm-leaderboard-v2", tmp_path)
    assert sorted(found.responses.model_ids) == ["org/a", "org/b"]
    assert (found.check.n_compared, found.check.largest) == (2, 0.0)
    date = "2023-08-01T00-00-00.000000"
    place = tmp_path / "b" / "details_org__m" / date
    place.mkdir(parents=True)
    for task, metrics in FIRST_LEADERBOARD.items():
        frame = pl.DataFrame({"example": [f"{task} a", f"{task} b"], "query": ["a", "b"], "gold": [0, 0], **metrics})
        frame.write_parquet(place / f"details_harness|{task}_{date}.parquet")
    responses = read_public("open-llm-leaderboard-v1", tmp_path).responses
    assert sorted(responses.responses[0]) == [0.0, 0.25, 0.5, 1.0, 1.0, 1.0]


def test_folders_of_others_or_choices_of_the_caller(tmp_path):
    refuses(r"must be a folder with the files of bfcl \(<date>/score", read_public, "bfcl", tmp_path / "none")
    refuses("holds no score files of BFCL", read_public, "bfcl", tmp_path)
    refuses("must be one of swebench-verified", read_public, "nothing", tmp_path, error=ParameterError)
    write_alpaca_eval(tmp_path / "b", {"a": [2.0]}, judge="other")
    found = read_public("alpaca-eval", tmp_path / "b", spec=ReadingSpec(metric=("other",), scenario="mine"))
    assert (found.responses.items["scenario"].to_list(), found.check.n_compared) == (["mine"], 0)


ANSWER = {"question_id": 1, "category": "law", "answer": "A", "pred": "A"}


@pytest.mark.parametrize(("name", "documents", "says"), [
    ("model_outputs_m.zip", {"a.json": [ANSWER]}, "must be named model_outputs_<model>_<n>shots.zip"),
    ("model_outputs_m_5shots.zip", {"a.json": [ANSWER], "b.json": []}, "must hold one JSON file, got 2"),
    ("model_outputs_m_5shots.zip", {"a.json": [{"pred": "A"}]}, "must be laid out as outputs of MMLU-Pro"),
    ("model_outputs_m_5shots.zip", None, "cannot be read as an archive of one JSON file"),
])  # fmt: skip
def test_archives_of_mmlu_pro_that_are_none_are_refused(name, documents, says, tmp_path):
    if documents is None:
        (tmp_path / name).write_bytes(b"PK")
    else:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for one, content in documents.items():
                archive.writestr(one, json.dumps(content))
    refuses(says, read_public, "mmlu-pro", tmp_path)


def test_responses_of_openeval_must_name_their_item(tmp_path):
    (tmp_path / "response").mkdir()
    row = {"response_id": "x_1", "model": {"name": "m"}, "scores": {"metric": [{"name": "acc"}], "value": [1.0]}}
    pl.DataFrame([row]).write_parquet(tmp_path / "response" / "x.parquet")
    refuses("a response_id must begin with <benchmark>_<time>_<number>, got 'x_1'", read_public, "openeval", tmp_path)


def test_the_real_preferences_give_the_win_rates_of_the_leaderboard(shared_dir, tmp_path):
    """5 models of AlpacaEval 2, written in the store's layout: within 1e-6 of the published win rates."""
    folder = shared_dir / "data" / "alpacaeval2"
    rows = pl.read_parquet(folder / "responses.parquet")
    known = pl.read_csv(folder / "models.csv", infer_schema_length=None).filter(
        pl.col("has_item_responses") & (pl.col("n_items") == 805) & pl.col("reported_win_rate").is_not_null()
    )
    rates = dict(known.select("model_id", "reported_win_rate").head(5).iter_rows())
    preferences = {
        name: (1 + rows.filter(pl.col("model_id") == name).sort("item_id")["response"]).to_list() for name in rates
    }
    write_alpaca_eval(tmp_path, preferences, win_rates=rates)
    check = read_public("alpaca-eval", tmp_path).check
    assert (check.n_compared, check.differing) == (5, ())


FIRST_LEADERBOARD = {
    "arc:challenge|25": {"acc": [0.0, 0.0], "acc_norm": [1.0, 0.0]},
    "truthfulqa:mc|0": {"mc1": [1.0, 0.0], "mc2": [0.25, 0.5]},
    "hendrycksTest-law|5": {"acc": [1.0, 1.0], "acc_norm": [0.0, 0.0]},
}


def test_a_real_run_of_helm(shared_dir):
    responses = read_public("helm", shared_dir / "logs" / "helm", spec=ReadingSpec(metric=("exact_match",))).responses
    assert responses.n_items == 50
    assert responses.responses.mean() == pytest.approx(0.9)


@pytest.fixture
def matrix():
    values = np.array([[1.0, 0.0, 1.0, np.nan], [0.0, 0.0, 0.5, 1.0]])
    return ResponseMatrix.create(values, model_ids=["a", "b"], scenarios=["s", "s", "t", "t"])


def test_scores_are_compared_with_the_published_ones(matrix):
    published = [("a", "s", 0.5), ("a", "t", 1.0), ("b", None, 0.375), ("other", None, 0.9), ("a", "u", 0.1)]
    check = check_published(matrix, published, tolerance=1e-12)
    assert (check.n_compared, check.largest, check.differing) == (3, 0.0, ())
    published = [("a", "s", 0.6), ("b", "t", 0.75)]
    with pytest.warns(DataWarning, match=r"1 of 2 scores differ .*'a' on s: 0.5000, published 0.6000"):
        check = check_published(matrix, published, tolerance=0.05)
    assert [one.model_id for one in check.differing] == ["a"]
    assert check.largest == pytest.approx(0.1)
    assert not check_published(matrix, [("b", "t", 0.7504)], tolerance=5e-4).differing
    check = check_published(matrix, [], tolerance=0.1)
    assert check.n_compared == 0
    assert np.isnan(check.largest)


NEEDED = {
    "swebench-verified", "open-llm-leaderboard-v1", "open-llm-leaderboard-v2", "alpaca-eval", "bfcl", "evalplus",
    "livecodebench", "helm", "every-eval-ever", "mmlu-pro", "wild", "measurement-db", "openeval", "irsl",
}  # fmt: skip


def test_the_sources_that_must_be_there_are_and_an_unknown_name_gets_a_near_one():
    assert set(SOURCES) >= NEEDED
    refuses("Did you mean 'alpaca-eval'", public_source, "alpaca_eval", error=ParameterError)


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_what_an_entry_names_exists(source):
    published = reader_function(source.reader, "{}_published") if source.reader in sources() else None
    assert set(source.choices) <= {one.name for one in fields(ReadingSpec)}
    assert source.checked == "-" or callable(published)
    check_address(source.address.partition(" ")[0])
    if isinstance(source.download, Archive):
        check_address(source.download.url)


@pytest.mark.filterwarnings("ignore::itembank.errors.DataWarning")
def test_samples_of_irsl_are_trials_of_the_model_that_a_file_is_called_after(tmp_path):
    for model, scores in (("a_bbq", [[1.0, 0.0], [1.0, 1.0]]), ("b_bbq", [[0.0, 0.0], [1.0, 0.0]])):
        pl.DataFrame({"question_idx": [0, 1], "scores": scores}).write_parquet(tmp_path / f"{model}.parquet")
    found = read_public("irsl", tmp_path).responses
    assert (found.model_ids, found.item_ids) == (["a_bbq", "b_bbq"], ["0", "1"])
    assert (found.responses.tolist(), found.n_trials.tolist()) == ([[0.5, 1.0], [0.0, 0.5]], [[2, 2], [2, 2]])
