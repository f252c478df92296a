"""Files read in several processes give what they give in one, and their errors speak the words of the caller."""

import json
import os
import sys
from functools import partial
from types import ModuleType, SimpleNamespace

import joblib
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import DataError, DataWarning, command_line_words, remedy
from itembank.files.memory import allowing, most_memory
from itembank.readers import collecting
from itembank.readers.collecting import collect
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.sources import Source, reader_function, source_of_record, sources
from itembank.responses.response_files import write_responses
from tests.bank.banks import make_bank
from tests.readers import test_evalscope, test_helm, test_opencompass, test_trials
from tests.readers.logs import answers, write_run
from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl, write_live_code_bench
from tests.readers.reading import put, refuses, warns
from tests.readers.reading import read as read_file


def length(files, number):
    if number % 3 == 1:
        raise DataError(f"{number} is bad: {remedy('python', '--command-line')}")
    return number, files[number], most_memory()


def test_processes_change_nothing():
    read = partial(length, {k: 10 * k for k in range(7)})
    said = []
    with allowing(1e6), command_line_words():
        here = collect(range(7), read, lambda *_: None, name=str, in_processes=True)
        with joblib.parallel_config(n_jobs=2):
            elsewhere = collect(range(7), read, lambda *one: said.append(one), name=str, in_processes=True)
    assert (elsewhere, here[1]) == (here, ["1 is bad: --command-line", "4 is bad: --command-line"])
    assert here[0][0] == (0, 0, 1e6)
    assert said[-1] == ("reading files (7 of 7)", 1.0)
    assert [share for _, share in said] == pytest.approx([k / 7 for k in range(8)])


AUTO = ReadingSpec()


def mixed(folder):
    write_run(folder / "lm,eval=1", "org/a", {"arc": answers(1, 0)})
    test_helm.write_run(folder, "x:y=1,model=org/a", [test_helm.entry("i", exact_match=1.0)])
    test_evalscope.write(folder, "reviews", "org_a", "gsm8k_main", [test_evalscope.review(0, {"acc": 1.0})])
    test_opencompass.write(folder / "oc", "results", "m", "d", {"details": test_opencompass.details(True)})
    (folder / "py.jsonl").write_text('{"subject_id": "m", "responses": {"p": 1}}\n')
    (folder / "notes.md").write_text("words")
    (folder / "other.json").write_text('{"a": 1}')
    os.mkfifo(folder / "pipe.jsonl")


def test_mixed_folders_are_told_file_by_file(tmp_path):
    mixed(tmp_path)
    found = collecting.find_sources([tmp_path], AUTO)
    assert found.n_files == {"lm-eval": 1, "py-irt": 1, "opencompass": 1, "evalscope": 1, "helm": 1}
    assert sorted(path.name for path in found.unknown) == ["notes.md", "other.json", "pipe.jsonl"]
    matrix = warns("1 of 6 items have no scenario", read_responses, tmp_path)
    assert (matrix.n_models, matrix.n_items) == (3, 6)
    write(
        tmp_path / "b" / "reports" / "a.run.json", {"submitted_ids": ["x"], "resolved_ids": ["x"], "unresolved_ids": []}
    )
    write(tmp_path / "b" / "evaluation" / "lite" / "20240101_b" / "results" / "results.json", {"resolved": ["x"]})
    write(tmp_path / "b" / "coco" / "annotations.json", [{"image_id": 1}])  # such a name tells nothing
    write(
        tmp_path / "b" / "a_eval_results.json",
        {"eval": {"HumanEval/0": [{"base_status": "pass", "plus_status": "pass"}]}},
    )
    write_alpaca_eval(tmp_path / "b", {"a": [1.0, 2.0]}, win_rates={"a": 50.0})
    write_bfcl(tmp_path / "b", {"a": [0]})
    write_live_code_bench(tmp_path / "b" / "output", {"a": {"p": [True, False]}}, stated=0.5)
    found = collecting.find_sources([tmp_path / "b"], AUTO)
    assert found.n_files == {"alpaca-eval": 1, "bfcl": 1, "evalplus": 1, "livecodebench": 1, "swe-bench": 2}
    assert [path.parent.name for path in found.unknown] == ["coco"]
    matrix = read_responses(tmp_path / "b" / "evaluation", items=put(tmp_path / "b" / "items.csv", "item_id\nx\ny\n"))
    assert matrix.responses.tolist() == [[1.0, 0.0]]


LONG = "model_id,item_id,response\n"


@pytest.mark.parametrize(("name", "text"), [
    ("items.csv", "item_id,scenario,subscenario,n_options,weight\n1,s,,,1\n2,t,,,0\n"),
    ("items.jsonl", '{"item_id": "1", "p_value": 0.5, "difficulty": 0.25}\n'),
    ("models.csv", "model_id,is_final\na,true\nb,false\n"),
    ("models.csv", "Model,is_open,has-vision\na,1,0\nb,0,1\n"),
    ("summary.csv", "model_id,accuracy,n_correct\na,0.5,1\nb,0,0\n"),
    ("settings.json", '{"model": "a", "temperature": 0.0, "top_p": 1.0}'),
])  # fmt: skip
def test_what_is_known_of_items_and_models_is_no_response(name, text, tmp_path):
    (tmp_path / "a.csv").write_text(f"{LONG}a,1,1\nb,2,0\n")
    (tmp_path / name).write_text(text)
    found = collecting.find_sources([tmp_path], AUTO)
    assert (found.paths, found.unknown) == ({"auto": [tmp_path / "a.csv"]}, [tmp_path / name])


def test_a_wide_table_with_a_slip_is_refused_and_not_ignored(tmp_path):
    header = ",".join(["model_id", *(f"q{place}" for place in range(12))])
    (tmp_path / "whole.csv").write_text(f"{header}\na{',1' * 12}\n")
    (tmp_path / "models.csv").write_text("model_id,org,licence,q0,q1\na,x,mit,1,0\n")
    assert read_responses(tmp_path).model_ids == ["a"]
    for row, says in (
        (f"b{',1' * 11},?", r"wide\.csv: every column .* got 1 that hold something else: 'q11' \('\?'\)"),
        (f"b{',1' * 11},7", r"wide\.csv: response.* in \[0, 1\]"),
        (f"b{',1' * 13}", r"wide\.csv: .*line 2 has more fields"),
    ):
        (tmp_path / "wide.csv").write_text(f"{header}\n{row}\n")
        refuses(says, read_responses, tmp_path)


def test_tables_that_are_named_are_no_results(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(f"{LONG}a,1,1\na,2,0\n")
    (tmp_path / "items.csv").write_text("item_id,easy\n1,1\n2,0\n")
    monkeypatch.chdir(tmp_path)
    matrix = read_responses(tmp_path, items="items.csv")
    assert (matrix.model_ids, matrix.items["easy"].to_list()) == (["a"], [1, 0])
    assert read_responses([tmp_path / "a.csv", "items.csv"], items="items.csv").model_ids == ["a", "easy"]


def test_files_that_cannot_be_read_are_named_once_and_all(tmp_path):
    (tmp_path / "x.json").write_text('{"a":')
    (tmp_path / "model_outputs.json").write_text("[]")
    caught = refuses(".", read_responses, tmp_path)
    assert caught.count("x.json") == 1
    put(tmp_path / "b" / "details_arc_2024-01-01T00-00-00.parquet", "words")
    refuses(r"details_arc_2024-01-01T00-00-00\.parquet: ", read_responses, tmp_path / "b")
    mixed(tmp_path / "c")
    put(tmp_path / "c" / "reviews" / "org_a" / "gsm8k_main.jsonl", {"index": 1})
    put(tmp_path / "c" / "py.jsonl", '{"subject_id": "m", "responses": {"p": "x"}}\n')
    error = refuses(".", read_responses, tmp_path / "c")
    assert "py.jsonl" in error
    assert "every line must be a review" in error
    test_opencompass.write(tmp_path / "d", "predictions", "m", "d", test_opencompass.PREDICTION)
    refuses("Predictions hold no scores: give the folder", read_responses, tmp_path / "d")


def test_a_bank_is_no_results_and_its_responses_can_be_written(tmp_path):
    bank = make_bank()
    save_bank(bank, tmp_path / "bank")
    refuses(r"is a bank, and no results\. In Python write_responses\(load_bank\('", read_responses, tmp_path / "bank")
    refuses("and none with results that itembank knows", read_responses, tmp_path)  # which holds the bank, and is none
    write_responses(load_bank(tmp_path / "bank").responses, tmp_path / "r.parquet")
    assert read_responses(tmp_path / "r.parquet").item_ids == bank.item_ids


def test_tables_are_read_whatever_they_are_called_and_run_10_after_run_9(tmp_path):
    for name in ("samples_x.jsonl", "x_samples.jsonl", "x_score.json", "results_x.json"):
        put(tmp_path / name, {"model": name, "item_id": "1", "score": 1})
    (tmp_path / "wide.csv").write_text("model,1\nwide,1\n")
    assert warns("read the column", read_responses, tmp_path).n_models == 5
    for run in (10, 2, 9):
        put(tmp_path / "b" / f"v{run}" / "a.csv", f"{LONG}a,x,{run / 10}\n")
    assert [path.parent.name for path in collecting.files_below(tmp_path / "b", AUTO)] == ["v2", "v9", "v10"]
    assert warns(r"v10/a.csv' comes last", read_file, tmp_path / "b", repeats="last").responses.item() == 1.0


def test_pointers_of_git_lfs_are_named_beside_files_of_their_program(tmp_path):
    run = tmp_path / "env--model" / "1a2b3c4d"
    run.mkdir(parents=True)
    (run / "metadata.json").write_text("{}")
    for file in (run / "results.jsonl", tmp_path / "a.eval", tmp_path / "model_outputs_m_5shots.zip"):
        file.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        refuses(rf"{file.name}: is a pointer of Git LFS .*: git lfs pull", read_responses, tmp_path)
        file.unlink()


def test_programs_have_readers_and_are_told_from_tables_and_from_each_other():
    for name in sources():
        assert callable(reader_function(name, "{}_answers")) != callable(reader_function(name, "{}_rows"))
    assert source_of_record({"model_id": "a", "item_id": "b", "response": 1}) is None
    assert source_of_record({"resolved_ids": ["x"], "unresolved_ids": [], "results": [{"task_id": "x"}]}) is None
    assert source_of_record({"resolved_ids": ["x"], "unresolved_ids": []}) == "swe-bench"
    refuses(r"must be one of 'auto', .*'helm', 'eee', .*got 'hlem'", ReadingSpec, format="hlem", error=ValueError)


def test_another_package_adds_a_source(tmp_path, monkeypatch):
    package = ModuleType("my_package.mine")
    package.mine_answers = lambda file, spec: [{"model_id": file.stem, "item_id": "x", "response": 1}]
    monkeypatch.setitem(sys.modules, "my_package.mine", package)
    entry = SimpleNamespace(
        module="my_package.table", load=lambda: {"mine": Source("results of mine", files=("*.mine",))}
    )
    monkeypatch.setattr("itembank.readers.sources.entry_points_of", lambda group: {"mine": entry})
    (tmp_path / "m.mine").write_text("")
    sources.cache_clear()
    try:
        assert list(sources()) == ["mine"]
        assert read_responses(tmp_path).model_ids == read_responses(tmp_path / "m.mine").model_ids == ["m"]
    finally:
        sources.cache_clear()


def test_hidden_files_and_links_to_folders_are_passed_by_and_named_where_they_lead_out(tmp_path):
    mixed(tmp_path / "inside")
    (tmp_path / "inside" / "loop").symlink_to(tmp_path / "inside")
    (tmp_path / "inside" / ".cache").mkdir()
    (tmp_path / "inside" / ".cache" / "hidden.json").write_text("{}")
    paths = list(collecting.files_below(tmp_path, AUTO))
    assert not any("loop" in path.parts or ".cache" in path.parts for path in paths)
    # The results behind them were not read, without a word; a link to a part of the folder loses nothing
    for name in ("runs/a", "others/b"):
        (tmp_path / "b" / name).mkdir(parents=True)
        put(tmp_path / "b" / name / "r.csv", f"model_id,item_id,response\n{name[:1]},x,1\n")
    (tmp_path / "b" / "runs" / "latest").symlink_to("a")
    assert read_responses(tmp_path / "b" / "runs").model_ids == ["r"]
    (tmp_path / "b" / "runs" / "more").symlink_to("../others/b")
    assert warns("are not followed.*/runs/more'. If it has", read_responses, tmp_path / "b" / "runs").model_ids == ["r"]
    assert read_file(tmp_path / "b" / "runs", exclude_files=("more",)).n_models == 1
    assert read_responses([tmp_path / "b" / "runs", tmp_path / "b" / "others"]).n_models == 2


def test_a_file_that_is_cut_is_named(tmp_path):
    whole, half = (test_trials.results([test_trials.simulation(0, 1.0)], llm=llm) for llm in ("whole", "half"))
    write(tmp_path / "whole.json", whole)
    (tmp_path / "half.json").write_text(json.dumps(half)[:300])
    refuses(r"^.*half\.json: .*the file cut\?.*\nTo leave out .* add: .*skip_unusable=True", read_responses, tmp_path)
    assert warns(r"left out: .*half\.json", read_file, tmp_path, skip_unusable=True).model_ids == ["whole"]
    rollouts = json.dumps({"example_id": 1, "reward": 1.0, "completion": []})
    (tmp_path / "half.json").rename(tmp_path / "results.jsonl")
    (tmp_path / "results.jsonl").write_text(f"{rollouts}\n{rollouts[:9]}")
    spec = ReadingSpec(model_id="half", format="verifiers", scenario="s")
    with pytest.warns(DataWarning, match=r"results\.jsonl: the last line was cut"):
        assert read_responses(tmp_path / "results.jsonl", spec=spec).item_ids == ["1"]


@pytest.mark.parametrize(("name", "content"), [
    ("a.csv", "model_id,x\n".encode("utf-16")), ("a.parquet", b"PAR1 PAR1x"), ("a.json", b'[{"model_id'),
    ("a.jsonl", b"\n"), ("a.json.gz", b"\x1f\x8b"),
])  # fmt: skip
def test_one_rule_says_which_files_of_a_folder_stop_it(name, content, tmp_path):
    (tmp_path / "a.txt").write_bytes(content)
    for place, other in enumerate(("[1, 2]", "3", "[]", "{}", '"a"')):
        (tmp_path / f"{place}.json").write_text(other)
    (tmp_path / "whole.csv").write_text(f"{LONG}a,1,1\n")
    assert read_responses(tmp_path).n_items == 1
    (tmp_path / "a.txt").rename(tmp_path / name)
    refuses(rf"^.*{name}: .*\nTo leave out what cannot be read, add: .*skip_unusable", read_responses, tmp_path)


def test_a_folder_without_results_says_what_can_be_read(tmp_path):
    rows = [{"task_id": "x", "reward": 1.0}]
    put(tmp_path / "run.json", {"config": {}, "trials": rows})
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError) as error, command_line_words():
        read_responses(tmp_path)
    said = str(error.value)
    assert "holds 2 files, and none with results that itembank knows: 'run.json', 't.csv'" in said
    assert "logs of lm-evaluation-harness, logs of Inspect" in said
    assert f"itembank import {tmp_path / 't.csv'} --column model_id=" in said
    assert "(a row has 'task_id', 'reward')" in said
    assert f"itembank import {tmp_path / 'run.json'} --jq '.trials[] | . + {{model_id: $stem, item_id: .task_id" in said
    row = {"llm": "a", "q": "x", "result": "failed: ...", "score": 1}
    put(tmp_path / "run.json", {"rows": [row]})
    refuses(r"'\.rows\[\] \| \. \+ {model_id: \.llm, item_id: \.\.\., response: \.score}'", read_responses, tmp_path)
    (tmp_path / "t.csv").unlink()
    put(tmp_path / "t.jsonl", row)
    refuses(r"t\.jsonl', columns={'model_id': '\.\.\.'", read_responses, tmp_path)
