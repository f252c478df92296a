"""What cannot be read: refused, left out on request, and advised in words that work when they are pasted."""

import json
import re
import shlex

import pytest

from itembank.errors import DataError, DataWarning, command_line_words
from itembank.readers.agreement import read_new_responses
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers import test_evalscope, test_opencompass
from tests.readers.inspect_writing import header, write_eval
from tests.readers.inspect_writing import sample as inspect_sample
from tests.readers.logs import DATE, answers, read_lm_eval, sample, write_run
from tests.readers.public.stores import write_alpaca_eval, write_bfcl
from tests.readers.reading import put, read, refuses, warns

LONG = "model_id,item_id,response\n"


def spoiled(folder):
    """A folder in which each of several programs has a file that cannot be read, and lm_eval one that can."""
    write_run(folder, "org/a", {"arc": answers(1, 0)})
    (folder / "old.json").write_text('{"results": {"arc": {"acc": 0.5}}, "versions": {"arc": 0}}')
    write_bfcl(folder / "bfcl", {"b": [0]})
    next((folder / "bfcl").rglob("*_result.json")).unlink()
    test_opencompass.write(folder / "oc", "results", "m", "d", test_opencompass.PREDICTION)
    (folder / "cut.eval").write_bytes(b"PK\x03\x04 and no more")
    (folder / "cut.csv").write_bytes(LONG.encode() + b"a,x,1\nb,x,\xff\n")
    (folder / "whole.csv").write_text(LONG + "org/a,x,1\n")
    test_evalscope.write(folder, "reviews", "m", "gsm8k_main", [{"index": 1}])


@pytest.mark.filterwarnings("ignore:1 run has no samples")
def test_every_reader_leaves_out_what_it_cannot_read(tmp_path):
    spoiled(tmp_path)
    refuses(r"(?s)_score.json.*To leave out what .* be read, add: spec=.*skip_unusable", read, tmp_path)
    with pytest.warns(DataWarning) as caught:
        matrix = read(tmp_path, skip_unusable=True)
    assert set(matrix.item_ids) == {"arc/0", "arc/1", "x"}
    said = [str(one.message) for one in caught if str(one.message).startswith("left out: ")]
    assert any("1 run has no samples and is left out: 'old.json'" in str(one.message) for one in caught)
    causes = ("_score.json", "m/d.json", "cut.eval", "cut.csv", "gsm8k_main.jsonl")
    assert all(sum(cause in one for one in said) == 1 for cause in causes)
    assert len(said) == len(causes)


@pytest.mark.parametrize(
    "left_out", [("old.json", "cut.*", "bfcl", "oc/*", "reviews"), ("*.eval", "c*.csv", "*d.json", "b*", "*main.jsonl")]
)
def test_files_are_left_out_by_pattern(tmp_path, left_out):
    spoiled(tmp_path)
    matrix = warns("1 of 3 items have no scenario", read_responses, tmp_path, spec=ReadingSpec(exclude_files=left_out))
    assert set(matrix.item_ids) == {"arc/0", "arc/1", "x"}
    with pytest.raises(DataError, match=r"there must be a file to read, got none but those of 'whole\.csv'"):
        read(tmp_path / "whole.csv", exclude_files=("whole.csv",))


def test_files_and_tables_are_left_out_on_request(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"{LONG}{name},x,1\n")
    (tmp_path / "c.csv").write_text(LONG + "c,x,7\n")
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    refuses(r"c\.csv: response must lie in \[0, 1\]", read, paths)
    assert warns(r"left out: .*c\.csv: response must lie in", read, paths, skip_unusable=True).model_ids == ["a", "b"]
    refuses(r"c\.csv: response must lie", read, paths[2], skip_unusable=True)
    write_run(tmp_path / "b", "org/a", {"arc": [sample(0, acc=1.0)]})
    write_run(tmp_path / "b", "org/b", {"arc": [sample(0, acc=1.0)]}, results=False).rename(tmp_path / "b" / "nameless")
    cut = write_run(tmp_path / "b", "org/c", {"arc": [sample(0, acc=1.0)]})
    (next(cut.glob("samples_*"))).write_text('{"doc_id": 0, "acc"')
    write_run(tmp_path / "b", "org/a", {"wmt": [sample(0, bleu=0.5, chrf=0.4)]})
    refuses(r"(?s)the model is unknown.*To leave out .*add: spec=.*skip_unusable=True", read, tmp_path / "b")
    with pytest.warns(DataWarning) as caught:
        matrix = read(tmp_path / "b", skip_unusable=True)
    said = [str(one.message) for one in caught]
    assert all(one.startswith("left out: ") for one in said)
    assert [word in one for word, one in zip(("nameless", "org__c", "wmt"), said, strict=True)] == [True] * 3
    assert matrix.model_ids == ["org/a"]


def test_the_advice_for_logs_of_several_programs_holds_for_all_of_them(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0), "wmt": answers(0.5, metric="bleu")})
    test_evalscope.write(tmp_path, "reviews", "m", "q_all", [test_evalscope.review(0, {"f1": 1.0})])
    write_eval(tmp_path / "a.eval", [inspect_sample("q", scorer="match")], header("toy", n_items=1))
    write_alpaca_eval(tmp_path, {"a": [1.0, 2.0]}, win_rates={"a": 50.0})
    with pytest.raises(DataError) as error, command_line_words():
        read_responses(tmp_path, metric="acc")
    (line,) = re.findall(r"^To read them, add: (.*)$", str(error.value), re.M)
    words = shlex.split(line)
    assert words[::2] == ["--metric"] * 4
    assert {"toy=match", "wmt=bleu", "q_all=f1"} < {*words[1::2]}
    assert read_responses(tmp_path, metric=["acc", *words[1::2]]).n_items == 7


def test_choices_are_advised_beside_what_no_choice_mends(tmp_path):
    tasks = {"arc": answers(1, 0), "q1": answers(1, metric="f1", bleu=0.5), "q2": answers(1, metric="f1", bleu=0.5)}
    (cut,) = write_run(tmp_path, "org/a", tasks).glob("samples_arc_*")
    (tmp_path / "r.csv").write_text(f"{LONG}c,x,7\n")

    def choose():
        with pytest.raises(DataError) as error, command_line_words():
            read(tmp_path)
        (line,) = re.findall(r"^To choose, add: (.*)$", str(error.value), re.M)
        assert str(error.value).endswith(" skip_unusable = true in the file of --spec")
        return shlex.split(line)[1::2]

    chosen = choose()
    assert len(chosen) == 2
    (tmp_path / "r.csv").unlink()
    whole = cut.read_text()
    cut.write_text(whole + "{")
    write_run(tmp_path, "org/b", {"wmt": answers(1)})
    assert choose() == chosen
    cut.write_text(whole)
    assert read_responses(tmp_path, metric=chosen).n_items == 5


def test_what_a_task_lacks_leaves_it_out(tmp_path):
    write_eval(tmp_path / "1.eval", [inspect_sample("q", scorer="match")], header("toy", n_items=1))
    write_eval(tmp_path / "2.eval", [inspect_sample("q", scorer="graded")], header("essay", n_items=1))
    refuses(r"(?s)unknown scorer 'match' .*metric=\('match', 'essay=graded'", read_responses, tmp_path, metric="match")
    with pytest.warns(DataWarning, match="left out: unknown scorer 'match' for task 'essay'"):
        matrix = read(tmp_path, metric=("match",), skip_unusable=True)
    assert matrix.item_ids == ["toy/q"]
    write_eval(tmp_path / "b" / "1.eval", [inspect_sample("q")], header("toy", n_items=1))
    write_eval(tmp_path / "b" / "2.eval", [inspect_sample("q", "splendid")], header("essay", n_items=1))
    refuses("a score must be a number", read, tmp_path / "b")
    assert warns("left out: .*essay/q", read, tmp_path / "b", skip_unusable=True).item_ids == ["toy/q"]
    write_run(tmp_path / "c", "org/a", {"arc": answers(1, 0)})
    put(tmp_path / "c" / "r.csv", "model_id,item_id,scenario,response\na,x,law,1\na,y,quiz,0\n")
    found = warns("left out: no task matches 'quiz'; there are 'arc'", read, tmp_path / "c", tasks=("quiz",))
    assert found.item_ids == ["y"]
    assert sorted(read(tmp_path / "c", exclude_tasks=("law",)).item_ids) == ["arc/0", "arc/1", "y"]
    refuses("no task matches 'nowhere'", read, tmp_path / "c", tasks=("nowhere",))


def mixed(folder):
    """Write two models whose suite holds a task that is fine and four that are not."""
    attempts = [sample(0, filter_name=name, exact_match=1.0) for name in ("maj@8", "maj@64")]
    for model in ("org/a", "org/b"):
        tasks = {
            "arc": [sample(0, acc=1.0), sample(1, acc=0.0)], "wmt[1]": [sample(0, bleu=0.5, chrf=0.6)],
            "qa": [sample(0, f1=0.5, rouge=0.1)], "gsm8k": attempts, "words": [sample(0, text="yes")],
        }  # fmt: skip
        write_run(folder, model, tasks)
    return folder


def pasted(error):
    """Make the spec that a message advises."""
    (text,) = re.findall(r"^To read (?:them|the rest), add: spec=(.*)$", str(error.value), re.M)
    return eval(text, {"ReadingSpec": ReadingSpec})  # noqa: S307 (our own message)


@pytest.mark.parametrize(
    "choices", [{}, {"metric": ("bleu",)}, {"metric": ("acc", "qa=nonsense")}, {"filter_name": ("maj@64", "wrong")}]
)
def test_the_advice_makes_the_logs_readable(tmp_path, choices):
    with pytest.raises(DataError) as error:
        read(mixed(tmp_path), **choices)
    spec = pasted(error)
    assert spec.exclude_tasks == ("words",)
    assert set(read_responses(tmp_path, spec=spec).items["task"]) == {"arc", "wmt[1]", "qa", "gsm8k"}


def test_the_advice_names_a_metric_once_and_works_beside_options(tmp_path):
    tasks = {f"mmlu_{number}": [sample(0, acc=1.0)] for number in range(20)}
    write_run(tmp_path, "org/a", {**tasks, "wmt": [sample(0, bleu=0.5, chrf=0.6)]})
    with pytest.raises(DataError) as error:
        read_responses(tmp_path, metric="bleu")
    assert pasted(error).metric == ("bleu", "acc")
    assert read_responses(tmp_path, spec=pasted(error)).n_items == 21
    write_run(tmp_path / "b", "org/a", {name: [sample(0, acc=1.0)] for name in ("law", "code", "maths")})
    with pytest.raises(DataError, match="compares options") as error:
        read(tmp_path / "b", response="probability")
    assert read_responses(tmp_path / "b", spec=pasted(error)).n_items == 3


def test_the_advice_keeps_the_metrics_of_the_known_items(tmp_path):
    rows = [sample(0, acc=1.0, acc_norm=0.0), sample(1, acc=1.0, acc_norm=0.5)]
    write_run(tmp_path / "old", "org/a", {"arc": rows})
    suite = {name: [sample(0, bleu=0.5, chrf=0.4)] for name in ("wmt", "flores")}
    write_run(tmp_path / "new", "org/b", {"arc": rows, **suite})
    known = read_responses(tmp_path / "old", metric="acc_norm").items
    with pytest.raises(DataError) as error, command_line_words():
        read_new_responses([tmp_path / "new"], known)
    (line,) = re.findall(r"^To read them, add: (.*)$", str(error.value), re.M)
    metrics = tuple(line.split()[1::2])
    assert metrics == ("flores=bleu", "wmt=bleu")
    found = read_new_responses([tmp_path / "new"], known, spec=ReadingSpec(metric=metrics))
    assert found.responses[0, found.item_indices(["arc/0", "arc/1"])].tolist() == [0.0, 0.5]


def test_tasks_are_left_out_on_request(tmp_path):
    mixed(tmp_path)
    with pytest.warns(DataWarning) as caught:
        matrix = read(tmp_path, skip_unusable=True)
    said = " ".join(str(one.message) for one in caught)
    assert said.count("left out: ") == 4
    assert all(f"task '{name}" in said for name in ("gsm8k", "qa", "wmt", "words"))
    assert matrix.item_ids == ["arc/0", "arc/1"]
    for model, text in (("org/a", "old"), ("org/b", "new")):
        write_run(tmp_path / "b", model, {"arc": [sample(0, doc=text, acc=1.0)], "law": [sample(0, acc=1.0)]})
    matrix = warns("left out: task 'arc': 1 item has another content", read, tmp_path / "b", skip_unusable=True)
    assert matrix.item_ids == ["law/0"]
    mixed(tmp_path / "c")
    assert set(read(tmp_path / "c", exclude_tasks=("w*", "qa", "gsm8k")).items["task"]) == {"arc"}
    with pytest.raises(DataError, match=r"no task is left of those that match 'w\*' when 'w\*' are left out"):
        read(tmp_path / "c", tasks=("w*",), exclude_tasks=("w*",))
    refuses(r"no task matches 'gsm8kk'.*Did you mean 'gsm8k'", read, tmp_path / "c", tasks=("gsm8kk",))


def test_what_holds_no_responses_is_refused_without_advice(tmp_path):
    write_run(tmp_path, "org/a", {"words": [sample(0, text="yes")]})
    for skip in (False, True):
        error = refuses("no metric that can be a response", read, tmp_path, skip_unusable=skip)
        assert "add:" not in error
    folder = write_run(tmp_path / "b", "org/a", {"arc": answers(1)})
    next(folder.glob("samples_*")).unlink()
    refuses(r"holds results of lm_eval without samples: 'results_.*--log_samples", read, tmp_path / "b")
    refuses(r"is a results file of lm_eval, without samples", read, next(folder.iterdir()))
    write_run(tmp_path / "b", "org/b", {"arc": answers(1)})
    found = warns("1 run has no samples and is left out", read, [tmp_path / "b" / "org__b", tmp_path / "b"])
    assert found.model_ids == ["org/b"]


@pytest.mark.parametrize(
    ("folder", "title"),
    [("helm", "run folders of HELM"), ("evalscope", "reviews of EvalScope"), ("inspect", "logs of Inspect")],
)
def test_logs_of_other_harnesses_name_their_reader(shared_dir, folder, title):
    with pytest.raises(DataError, match=f"holds {title} .*format='{folder}'"):
        read_lm_eval(shared_dir / "logs" / {"inspect": "inspect_ai"}.get(folder, folder))


def test_numbers_that_no_table_can_hold_are_not_told_or_refused(tmp_path):
    (path,) = write_run(tmp_path, "org/a", {"arc": answers(1)}, sizes={"arc": 1}).glob("results_*")
    content = json.loads(path.read_text(encoding="utf-8"))
    content["config"]["model_num_parameters"] = content["n-samples"]["arc"]["original"] = 10**400
    content["lm_eval_version"] = {"not": "a version"}
    path.write_text(json.dumps(content), encoding="utf-8")
    models = read(tmp_path).models
    assert "n_parameters" not in models.columns or models["n_parameters"].is_null().all()
    write_run(tmp_path / "b", "org/a", {"arc": [sample(0, acc=10**400)]})
    refuses("got values from inf to inf", read_responses, tmp_path / "b", metric="acc")


def break_file(folder, how):
    path = next(folder.glob("samples_*"))
    content = path.read_bytes()
    changed = {
        "cut": content[:-30],
        "garbage": content + b"oops\n",
        "not UTF-8": content.replace(b"question 0", b"question \xff"),
        "empty": b"",
        "other": b'{"a": 1}\n' * 2,
        "mixed ids": content.replace(b'"doc_id": 1', b'"doc_id": "one"'),
    }[how]
    path.write_bytes(changed)


@pytest.mark.parametrize(("how", "message"), [
    ("cut", "line 2 .*the file was cut"),
    ("garbage", "line 3 must be one JSON object, got 'oops'"),
    ("not UTF-8", "not UTF-8: byte 0xff at position .*, line 1"),
    ("empty", "the file is empty"),
    ("other", "every line must be a sample of lm_eval with a doc_id"),
    ("mixed ids", "doc_id must be a whole number, as lm_eval counts them, got str"),
])  # fmt: skip
def test_broken_samples(tmp_path, how, message):
    break_file(write_run(tmp_path, "org/a", {"arc": answers(1, 0)}), how)
    caught = refuses(message, read, tmp_path)
    assert "samples_arc_" in caught


def test_broken_results_every_problem_and_files_of_other_names(tmp_path):
    path = write_run(tmp_path, "org/a", {"arc": answers(1)}) / f"results_{DATE}.json"
    path.write_text(path.read_text()[:-20])
    refuses(r"results_.*\.json: the results file cannot be read", read, tmp_path)
    tasks = {"arc": [sample(0, f1=0.5, rouge=0.5)], "law": [sample(0, acc=7.0)], "gsm8k": answers(1)}
    write_run(tmp_path / "b", "org/a", tasks)
    refuses(r"(?s)task 'arc' has several metrics.*task 'law' has no metric", read, tmp_path / "b")
    folder = write_run(tmp_path / "c", "org/a", {"arc": answers(1, 0)})
    path = next(folder.glob("samples_*")).rename(folder / "mine.jsonl")
    refuses(r"mine\.jsonl: the name of a samples file must name the task", read, path)
    assert read_responses(path, scenario="arc").item_ids == ["arc/0", "arc/1"]
    put(tmp_path / "d" / "run.jsonl", '{"kind":"itembank session","model_id":"m"}\n{"item_id":"q"}\n')
    with command_line_words(), pytest.raises(DataError, match=r"journal .*: itembank import \S+ -o answers.parquet"):
        read(tmp_path / "d" / "run.jsonl")
