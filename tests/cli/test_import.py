import os
import re
import shlex
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from itembank.calibration.fit_item_model import MINIMUM_MODELS
from itembank.cli.import_results import FEWEST_MODELS
from itembank.errors import DataError
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.cli.conftest import spec_file
from tests.readers.bad_files import LONG, WRONG, lines
from tests.readers.logs import answers, sample, write_run


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(LONG + "a,x,1\na,y,0\nb,x,0.5\n")
    return path


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out" / "responses.parquet"


def test_two_means_are_told_apart_where_scenarios_differ_in_size(run, tmp_path, output):
    lines = ["model_id,item_id,scenario,response", *(f"{m},q{k},large,1" for m in "abc" for k in range(3))]
    (tmp_path / "t.csv").write_text("\n".join([*lines, *(f"{m},x,small,0" for m in "abc")]))
    told = run("import", tmp_path / "t.csv", "-o", output).err
    assert "the mean of all answers (micro)" in told
    assert "its 2 scenario scores (macro), 50.0 points here" in told
    assert "(macro), 50.0 points here" in run("info", output).err
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert "micro" not in run("import", tmp_path / "t.csv", "-o", output).err


def test_a_table_is_imported_and_summed_up(run, table, output):
    outcome = run.ok("import", table, "-o", output, "--format", "json")
    assert outcome.json["rows"] == [
        {
            "file": str(output),
            "n_models": 2,
            "n_items": 2,
            "n_scenarios": 1,
            "n_responses": 3,
            "n_missing": 1,
            "n_lost": 0,
            "errors": None,
            "density": 0.75,
            "mean_response": 0.5,
            "is_binary": False,
            "n_trials": None,
            "costs": None,
        }
    ]
    assert f"itembank estimate BANK {output}" in outcome.err
    matrix = read_responses(output)
    np.testing.assert_array_equal(matrix.responses, [[1, 0], [0.5, np.nan]])


def test_a_mean_of_zero_is_told(run, tmp_path, output):
    (tmp_path / "t.csv").write_text(LONG + "a,x,0\n")
    assert re.search(r"mean_response +0\.0 points", run.ok("import", tmp_path / "t.csv", "-o", output).out)


def test_quiet_says_nothing_on_standard_error(run, table, output):
    assert run("--quiet", "import", table, "-o", output).err == ""


def test_auto_says_what_it_found_and_reads_it(run, tmp_path, output):
    write_run(tmp_path / "in", "org/a", {"arc": answers(1, 0), "quiz": answers(1)})
    write_run(tmp_path / "in", "org/b", {"arc": answers(0, 0), "quiz": answers(1)})
    (tmp_path / "in" / "py.jsonl").write_text(lines({"subject_id": "org/a", "responses": {"x": 1}}))
    (tmp_path / "in" / "[red]notes.md").write_text("words")
    outcome = run.ok("import", tmp_path / "in", "-o", output, "--format", "json")
    assert outcome.json["rows"][0]["n_items"] == 4
    assert re.search(r"Found 4 lm_eval samples files .*: 2 models, 2 tasks, 6 responses", outcome.err)
    assert re.search(r"Found .*py.jsonl: 1 models, 1 tasks, 1 responses", outcome.err)
    assert re.search(r"1 file has no results that itembank knows, and is ignored: .*\[red\]notes", outcome.err)


def test_auto_takes_choices_that_only_other_folders_need(run, tmp_path, output):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "r.csv").write_text(LONG + "a,x,1\na,y,0\n")
    (tmp_path / "in" / "broken.csv").write_text(LONG + "b,x,words\n")
    command = ("import", tmp_path / "in", "-o", output)
    refused = run(*command)
    assert refused.code == 1
    assert "broken.csv" in refused.err
    assert "To leave out what cannot be read, add: skip_unusable = true in the file of --spec" in refused.err
    for more in ("skip_unusable = true", 'exclude_files = ["broken*"]'):
        (tmp_path / "spec.toml").write_text(f'exclude_tasks = ["mmlu*"]\n{more}\n')
        run.ok(*command, "--spec", tmp_path / "spec.toml")
        assert read_responses(output).item_ids == ["x", "y"]


def test_what_comes_next_fits_what_was_imported(run, tmp_path, output):
    assert FEWEST_MODELS == MINIMUM_MODELS
    rows = {"one": ["a,x"], "three": ["a,x", "b,x", "c,x"], "apart": ["a,x", "b,x", "c,y"]}
    said = {}
    for name, pairs in rows.items():
        (tmp_path / f"{name}.csv").write_text(LONG + "".join(f"{pair},1\n" for pair in pairs))
        said[name] = run("import", tmp_path / f"{name}.csv", "-o", output).err.partition("Next: ")[2]
    assert said["one"].startswith("import results of more models: an item model needs 3.")
    assert said["three"].startswith(f"itembank calibrate {output} -o bank")
    assert said["apart"].startswith("import each of these sets into its own file")


def test_auto_refuses_a_folder_without_results(run, tmp_path, output):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.md").write_text("words")
    outcome = run("import", tmp_path / "in", "-o", output)
    assert outcome.code == 1
    assert "holds 1 files, and none with results that itembank knows: 'notes.md'" in outcome.err
    assert "lm_eval" not in outcome.err


def test_progress_over_many_files_is_a_few_lines(run, tmp_path, output):
    for k in range(30):
        write_run(tmp_path / "logs", f"org/m{k}", {"arc": [sample(0, acc=1.0)]})
    outcome = run.ok("import", tmp_path / "logs", "-o", output)
    assert 1 < outcome.err.count("reading files") <= 5


@pytest.mark.parametrize("wrong", WRONG[::5], ids=lambda wrong: wrong.name)
def test_a_wrong_file_ends_with_exit_code_1_a_message_and_no_output(run, wrong, tmp_path, output):
    paths = wrong.write(tmp_path)
    way = () if wrong.command == "table" else ("--as", wrong.command)
    rare = spec_file(tmp_path, 'missing = "forbid"') if "missing" in wrong.spec else ()
    outcome = run("import", *way, *paths, "-o", output, *wrong.options, *rare)
    assert (outcome.code, outcome.out) == (1, "")
    assert "Error: " in outcome.err
    assert "Traceback" not in outcome.err
    assert "--debug" not in outcome.err
    for text in wrong.says:
        assert re.search(text, outcome.err), f"{text!r} not in {outcome.err}"
    assert not output.parent.exists()


def test_logs_without_samples_name_the_option_that_keeps_them(run, shared_dir, output):
    outcome = run("import", shared_dir / "logs" / "lm_eval" / "old_format_2023", "-o", output)
    assert outcome.code == 1
    assert "--log_samples" in outcome.err


def test_a_failed_import_leaves_the_response_file_that_was_there(run, table, tmp_path, output):
    run.ok("import", table, "-o", output)
    before = output.read_bytes()
    (tmp_path / "bad.csv").write_text(LONG + "a,x,7\n")
    assert run("import", tmp_path / "bad.csv", "-o", output).code == 1
    assert output.read_bytes() == before
    assert list(output.parent.iterdir()) == [output]


# true processes, as a shell starts them


def process(*arguments, folder):
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "itembank", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


def test_a_process_imports_a_table(tmp_path, table):
    done = process("import", table.name, "-o", "r.parquet", "--format", "csv", folder=tmp_path)
    assert (done.returncode, done.stdout.count("\n")) == (0, 2)
    assert pl.read_parquet(tmp_path / "r.parquet")["response"].to_list() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize("name", ["above one", "a cut Parquet"])
def test_a_process_given_a_wrong_file_fails_cleanly(tmp_path, name):
    wrong = next(wrong for wrong in WRONG if wrong.name == name)
    (path,) = wrong.write(tmp_path)
    done = process("import", path.name, "-o", "r.parquet", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert re.search(wrong.says[-1], done.stderr)
    assert list(tmp_path.iterdir()) == [path]


def followed(line, folder):
    """Do what a remedy says: add its options, and put its fields into the file of --spec."""
    words, _, fields = f", and {line}".rpartition(", and ") if " in the file" in line else (line, "", "")
    if not fields:
        return shlex.split(words)
    fields = re.sub(r", (?=\w+ = )", "\n", fields.removesuffix(" in the file of --spec"))
    (folder / "spec.toml").write_text(fields)
    return [*shlex.split(words.removeprefix(", and ")), "--spec", folder / "spec.toml"]


def test_the_remedy_for_a_mixed_folder_works_when_followed(run, tmp_path, output):
    for model in ("org/a", "org/b"):
        tasks = {"arc": [sample(0, acc=1.0)], "en it": [sample(0, bleu=0.5, chrf=0.4)], "words": [sample(0, text="x")]}
        write_run(tmp_path / "logs", model, tasks)
    command = ("import", tmp_path / "logs", "-o", output)
    refused = run(*command)
    assert refused.code == 1
    (line,) = re.findall(r"^To read the rest, add: (.*)$", refused.err, re.M)
    assert line == "--metric 'en it=bleu', and exclude_tasks = [\"words\"] in the file of --spec"
    assert "metric=" not in refused.err
    run.ok(*command, *followed(line, tmp_path))
    assert read_responses(output).item_ids == ["arc/0", "en it/0"]
    (line,) = re.findall(r"^To leave out what cannot be read, add: (.*)$", refused.err, re.M)
    skipped = run.ok(*command, *followed(line, tmp_path))
    assert "left out: task 'en it' has several metrics" in skipped.err
    assert read_responses(output).item_ids == ["arc/0"]


def test_the_remedy_for_real_mixed_logs_works_when_followed(run, shared_dir, output, tmp_path):
    command = ("import", shared_dir / "logs" / "lm_eval", "--as", "lm-eval", "-o", output)
    for given in ((), ("--metric", "bleu_score")):
        refused = run(*command, *given)
        (line,) = re.findall(r"^To read them, add: (.*)$", refused.err, re.M)
        accepted = run.ok(*command, *given, *followed(line, tmp_path))
        assert "3 models answered 114 items, but no item was answered by more than one model" in accepted.err


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    paths = []
    for name, models in (("a", ["gpt-4o", "claude-3"]), ("b", ["GPT-4O", "Claude-3-Opus", "Qwen2-7B"])):
        answers = (rng.random((len(models), 4)) < 0.5).astype(float)
        items = [f"{name}/{j}" for j in range(4)]
        paths.append(tmp_path / f"{name}.parquet")
        write_responses(ResponseMatrix.create(answers, model_ids=models, item_ids=items), paths[-1])
    return paths


def test_models_under_two_names_are_joined_by_a_table_of_the_file(run, files, tmp_path):
    words = spec_file(tmp_path, '[model_names]\n"GPT-4O" = "gpt-4o"')
    run.ok("import", *files, *words, "-o", tmp_path / "joined.parquet")
    joined = read_responses(tmp_path / "joined.parquet")
    assert joined.model_ids == ["gpt-4o", "claude-3", "Claude-3-Opus", "Qwen2-7B"]
    np.testing.assert_array_equal(joined.responses[0, 4:], read_responses(files[1]).responses[0])


def test_a_renamed_model_that_is_nowhere_is_refused(files):
    for paths in (files, files[0]):
        with pytest.raises(DataError, match=r"renamed \(model_names\) must be in a table .*got 'gpt4o'.*mean 'gpt-4o'"):
            read_responses(paths, spec=ReadingSpec(model_names={"gpt4o": "x"}))


def test_names_that_would_mix_two_models_of_a_file_are_refused(files):
    spec = ReadingSpec(model_names={"GPT-4O": "x", "Claude-3-Opus": "x"})
    with pytest.raises(DataError, match="models of one file must keep different names, but 'GPT-4O'"):
        read_responses(files[1], spec=spec)


def with_columns(path, **columns):
    """Answers of two models to 12 items as a table with more columns, each by the number of the item."""
    rows = [{"model": model, "question": f"q{k}", "correct": k % 2} for model in "ab" for k in range(12)]
    frame = pl.DataFrame(rows).with_columns(
        pl.Series(name, [make(k) for _ in "ab" for k in range(12)]) for name, make in columns.items()
    )
    frame.write_csv(path)
    return path


def test_columns_that_are_not_read_and_may_be_scenarios_are_named(run, tmp_path, output):
    """A benchmark's categories were dropped without a word."""
    path = with_columns(tmp_path / "r.csv", latency=lambda k: k / 8, category=lambda k: ("math", "law")[k % 2])
    done = run.ok("import", path, "-o", output)
    assert re.search(r"not read: 'latency', 'category'\. If 'category' is the scenario of an item, add: (.*)", done.err)
    run.ok("import", path, "-o", output, "--column", "scenario=category")
    assert sorted(set(read_responses(output).items["scenario"])) == ["law", "math"]
    told = run("import", path, "-o", output, "--column", "scenario=category")
    assert "not read" not in told.err
    (tmp_path / "other.csv").write_text("model_id,item_id,scenario,response\na,x,arc,1\nb,x,arc,0\n")
    assert "add: --column scenario=category" in run.ok("import", path, tmp_path / "other.csv", "-o", output).err


def test_a_column_of_the_table_of_items_that_may_be_the_scenario_is_named(run, tmp_path, output):
    path, items = with_columns(tmp_path / "r.csv"), tmp_path / "items.csv"
    table = pl.DataFrame({"item_id": [f"q{k}" for k in range(12)], "year": 2026, "category": ["math", "law"] * 6})
    table.write_csv(items)
    says = f"If 'category' of {items} is the scenario of an item, call that column scenario."
    assert says in run.ok("import", path, "--items", items, "-o", output).err
    table.rename({"category": "scenario"}).write_csv(items)
    assert "is the scenario of an item" not in run.ok("import", path, "--items", items, "-o", output).err
    assert read_responses(output).items["scenario"].n_unique() == 2


@pytest.mark.parametrize(
    "make",
    [
        {"answer": lambda k: "ABCD"[k % 4]},
        {"target": lambda k: ("left", "right")[k % 2]},
        {"difficulty": lambda k: k % 3},
        {"text": lambda k: f"question {k}"},
        {"category": lambda _k: "math"},
    ],
)
def test_columns_that_group_no_items_are_no_scenarios(run, tmp_path, output, make):
    done = run("import", with_columns(tmp_path / "r.csv", **make), "-o", output)
    assert (done.code, "not read" in done.err) == (0, False)


def test_a_metric_in_json_is_one_that_the_program_names(run, tmp_path, output):
    pytest.importorskip("jq", reason="needs the extra jq")
    (tmp_path / "r.json").write_text('[{"q": "x", "r": 1, "m": "acc"}, {"q": "x", "r": 0.5, "m": "f1"}]')
    program = ".[] | {item_id: .q, response: .r"
    words = ("--model-id", "a", "-o", output, "--jq")
    refused = run("import", tmp_path / "r.json", "--metric", "acc", *words, program + "}")
    assert (refused.code, "a metric must be named by a column" in refused.err) == (1, True)
    run.ok("import", tmp_path / "r.json", "--metric", "f1", *words, program + ", metric: .m}")
    assert read_responses(output).responses.tolist() == [[0.5]]
