"""`itembank import` and `itembank download`."""

import os
import re
import shlex
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.calibration.fit_item_model import MINIMUM_MODELS
from itembank.cli.import_results import FEWEST_MODELS
from itembank.errors import DataError
from itembank_harnesses.public.stores import SOURCES
from tests.cli.conftest import holds, spec_file
from tests.readers.bad_files import LONG, WRONG, lines
from tests.readers.logs import answers, sample, write_run
from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl


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
    holds(told, "the mean of all answers (micro)", "its 2 scenario scores (macro), 50.0 points here")
    assert "(macro), 50.0 points here" in run("info", output).err
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert "micro" not in run("import", tmp_path / "t.csv", "-o", output).err


def test_a_table_is_imported_and_summed_up(run, table, output):
    outcome = run.ok("import", table, "-o", output, "--format", "json")
    counts = {"n_models": 2, "n_items": 2, "n_scenarios": 1, "n_responses": 3, "n_missing": 1, "n_lost": 0}
    shares = {"density": 0.75, "mean_response": 0.5, "is_binary": False}
    unknown = dict.fromkeys(("errors", "n_trials", "costs"))
    assert outcome.json["rows"] == [{"file": str(output), **counts, **shares, **unknown}]
    assert f"itembank estimate BANK {output}" in outcome.err
    np.testing.assert_array_equal(ib.read_responses(output).responses, [[1, 0], [0.5, np.nan]])
    assert run("--quiet", "import", table, "-o", output).err == ""
    table.write_text(LONG + "a,x,0\n")
    assert re.search(r"mean_response +0\.0 points", run.ok("import", table, "-o", output).out)


def test_auto_says_what_it_found_and_reads_it(run, tmp_path, output):
    write_run(tmp_path / "in", "org/a", {"arc": answers(1, 0), "quiz": answers(1)})
    write_run(tmp_path / "in", "org/b", {"arc": answers(0, 0), "quiz": answers(1)})
    (tmp_path / "in" / "py.jsonl").write_text(lines({"subject_id": "org/a", "responses": {"x": 1}}))
    (tmp_path / "in" / "[red]notes.md").write_text("words")
    outcome = run.ok("import", tmp_path / "in", "-o", output, "--format", "json")
    assert outcome.json["rows"][0]["n_items"] == 4
    for said in (
        r"Found 4 lm_eval samples files .*: 2 models, 2 tasks, 6 responses",
        r"Found .*py.jsonl: 1 model, 1 task, 1 response",
        r"1 file has no results that itembank knows, and is ignored: .*\[red\]notes",
    ):
        assert re.search(said, outcome.err)


def test_auto_takes_choices_that_only_other_folders_need(run, tmp_path, output):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "r.csv").write_text(LONG + "a,x,1\na,y,0\n")
    (tmp_path / "in" / "broken.csv").write_text(LONG + "b,x,words\n")
    command = ("import", tmp_path / "in", "-o", output)
    advice = "To leave out what cannot be read, add: skip_unusable = true in the file of --spec"
    run.fails(1, ("broken.csv", advice), *command)
    for more in ("skip_unusable = true", 'exclude_files = ["broken*"]'):
        run.ok(*command, *spec_file(tmp_path, f'exclude_tasks = ["mmlu*"]\n{more}\n'))
        assert ib.read_responses(output).item_ids == ["x", "y"]


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        ("a,x", "import results of more models: an item model needs 3."),
        ("a,x b,x c,x", "itembank calibrate {} -o bank"),
        ("a,x b,x c,y", "import each of these sets into its own file"),
    ],
)
def test_what_comes_next_fits_what_was_imported(run, tmp_path, output, pairs, says):
    assert FEWEST_MODELS == MINIMUM_MODELS
    (tmp_path / "r.csv").write_text(LONG + "".join(f"{pair},1\n" for pair in pairs.split()))
    said = run("import", tmp_path / "r.csv", "-o", output).err.partition("Next: ")[2]
    assert said.startswith(says.format(output))


def test_auto_refuses_a_folder_without_results(run, tmp_path, output):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.md").write_text("words")
    says = "holds 1 file, and none with results that itembank knows: 'notes.md'"
    assert "lm_eval" not in run.fails(1, says, "import", tmp_path / "in", "-o", output).err


def test_progress_over_many_files_is_a_few_lines(run, tmp_path, output):
    for k in range(30):
        write_run(tmp_path / "logs", f"org/m{k}", {"arc": [sample(0, acc=1.0)]})
    assert 1 < run.ok("import", tmp_path / "logs", "-o", output).err.count("reading files") <= 5


@pytest.mark.parametrize("wrong", WRONG[::5], ids=lambda wrong: wrong.name)
def test_a_wrong_file_ends_with_exit_code_1_a_message_and_no_output(run, wrong, tmp_path, output):
    way = () if wrong.command == "table" else ("--as", wrong.command)
    rare = spec_file(tmp_path, 'missing = "forbid"') if "missing" in wrong.spec else ()
    outcome = run.fails(1, "Error: ", "import", *way, *wrong.write(tmp_path), "-o", output, *wrong.options, *rare)
    assert not [word for word in ("Traceback", "--debug") if word in outcome.err]
    assert [text for text in wrong.says if not re.search(text, outcome.err)] == [], outcome.err
    assert not output.parent.exists()


def test_logs_without_samples_name_the_option_that_keeps_them(run, shared_dir, output):
    run.fails(1, "--log_samples", "import", shared_dir / "logs" / "lm_eval" / "old_format_2023", "-o", output)


def test_a_failed_import_leaves_the_response_file_that_was_there(run, table, tmp_path, output):
    run.ok("import", table, "-o", output)
    before = output.read_bytes()
    (tmp_path / "bad.csv").write_text(LONG + "a,x,7\n")
    assert run("import", tmp_path / "bad.csv", "-o", output).code == 1
    assert (output.read_bytes(), list(output.parent.iterdir())) == (before, [output])


def process(*arguments, folder):
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "itembank", "import", *map(str, arguments), "-o", "made.parquet"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


def test_a_process_imports_a_table(tmp_path, table):
    done = process(table.name, "--format", "csv", folder=tmp_path)
    assert (done.returncode, done.stdout.count("\n")) == (0, 2)
    assert pl.read_parquet(tmp_path / "made.parquet")["response"].to_list() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize("name", ["above one", "a cut Parquet"])
def test_a_process_given_a_wrong_file_fails_cleanly(tmp_path, name):
    wrong = next(wrong for wrong in WRONG if wrong.name == name)
    (path,) = wrong.write(tmp_path)
    done = process(path.name, folder=tmp_path)
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (1, "", False)
    assert re.search(wrong.says[-1], done.stderr)
    assert list(tmp_path.iterdir()) == [path]


def followed(line, folder):
    """Do what a remedy says: add its options, and put its fields into the file of --spec."""
    words, _, fields = f", and {line}".rpartition(", and ") if " in the file" in line else (line, "", "")
    if not fields:
        return shlex.split(words)
    fields = re.sub(r", (?=\w+ = )", "\n", fields.removesuffix(" in the file of --spec"))
    return [*shlex.split(words.removeprefix(", and ")), *spec_file(folder, fields)]


def test_the_remedy_for_a_mixed_folder_works_when_followed(run, tmp_path, output):
    for model in ("org/a", "org/b"):
        tasks = {"arc": [sample(0, acc=1.0)], "en it": [sample(0, bleu=0.5, chrf=0.4)], "words": [sample(0, text="x")]}
        write_run(tmp_path / "logs", model, tasks)
    command = ("import", tmp_path / "logs", "-o", output)
    refused = run(*command)
    (line,) = re.findall(r"^To read the rest, add: (.*)$", refused.err, re.M)
    assert (refused.code, "metric=" in refused.err) == (1, False)
    assert line == "--metric 'en it=bleu', and exclude_tasks = [\"words\"] in the file of --spec"
    run.ok(*command, *followed(line, tmp_path))
    assert ib.read_responses(output).item_ids == ["arc/0", "en it/0"]
    (line,) = re.findall(r"^To leave out what cannot be read, add: (.*)$", refused.err, re.M)
    skipped = run.ok(*command, *followed(line, tmp_path))
    assert "left out: task 'en it' has several metrics" in skipped.err
    assert ib.read_responses(output).item_ids == ["arc/0"]


def test_the_remedy_for_real_mixed_logs_works_when_followed(run, shared_dir, output, tmp_path):
    command = ("import", shared_dir / "logs" / "lm_eval", "--as", "lm-eval", "-o", output)
    for given in ((), ("--metric", "bleu_score")):
        (line,) = re.findall(r"^To read them, add: (.*)$", run(*command, *given).err, re.M)
        accepted = run.ok(*command, *given, *followed(line, tmp_path))
        assert "3 models answered 114 items, but no item was answered by more than one model" in accepted.err


@pytest.fixture
def files(tmp_path):
    rng, paths = np.random.default_rng(0), []
    for name, models in (("a", ["gpt-4o", "claude-3"]), ("b", ["GPT-4O", "Claude-3-Opus", "Qwen2-7B"])):
        answers = (rng.random((len(models), 4)) < 0.5).astype(float)
        paths.append(tmp_path / f"{name}.parquet")
        items = [f"{name}/{j}" for j in range(4)]
        ib.write_responses(ib.ResponseMatrix.create(answers, model_ids=models, item_ids=items), paths[-1])
    return paths


def test_models_under_two_names_are_joined_by_a_table_of_the_file(run, files, tmp_path):
    words = spec_file(tmp_path, '[model_names]\n"GPT-4O" = "gpt-4o"')
    run.ok("import", *files, *words, "-o", tmp_path / "joined.parquet")
    joined = ib.read_responses(tmp_path / "joined.parquet")
    assert joined.model_ids == ["gpt-4o", "claude-3", "Claude-3-Opus", "Qwen2-7B"]
    np.testing.assert_array_equal(joined.responses[0, 4:], ib.read_responses(files[1]).responses[0])
    nowhere = r"renamed \(model_names\) must be in a table .*got 'gpt4o'.*mean 'gpt-4o'"
    mixed = "models of one file must keep different names, but 'GPT-4O'"
    for paths, names, says in (
        (files, {"gpt4o": "x"}, nowhere),
        (files[0], {"gpt4o": "x"}, nowhere),
        (files[1], {"GPT-4O": "x", "Claude-3-Opus": "x"}, mixed),
    ):
        with pytest.raises(DataError, match=says):
            ib.read_responses(paths, spec=ib.ReadingSpec(model_names=names))


def with_columns(path, **columns):
    """Answers of two models to 12 items as a table with more columns, each by the number of the item."""
    rows = [{"model": model, "question": f"q{k}", "correct": k % 2} for model in "ab" for k in range(12)]
    more = [pl.Series(name, [make(k) for _ in "ab" for k in range(12)]) for name, make in columns.items()]
    pl.DataFrame(rows).with_columns(more).write_csv(path)
    return path


def test_columns_that_are_not_read_and_may_be_scenarios_are_named(run, tmp_path, output):
    """A benchmark's categories were dropped without a word."""
    path = with_columns(tmp_path / "r.csv", latency=lambda k: k / 8, category=lambda k: ("math", "law")[k % 2])
    says = "not read: 'latency', 'category'. If 'category' is the scenario of an item, add: "
    assert says in run.ok("import", path, "-o", output).err
    first = says.replace("add: ", "import the file first, with --column scenario=category")
    assert first in run.ok("calibrate", path, "-o", tmp_path / "bank").err
    assert "not read" not in run.ok("import", path, "-o", output, "--column", "scenario=category").err
    assert sorted(set(ib.read_responses(output).items["scenario"])) == ["law", "math"]
    (tmp_path / "other.csv").write_text("model_id,item_id,scenario,response\na,x,arc,1\nb,x,arc,0\n")
    assert "add: --column scenario=category" in run.ok("import", path, tmp_path / "other.csv", "-o", output).err


def test_a_column_of_the_table_of_items_that_may_be_the_scenario_is_named(run, tmp_path, output):
    path, items = with_columns(tmp_path / "r.csv"), tmp_path / "items.csv"
    table = pl.DataFrame({"item_id": [f"q{k}" for k in range(12)], "year": 2026, "category": ["math", "law"] * 6})
    table.write_csv(items)
    says = f"If 'category' of {items} is the scenario of an item, call that column scenario."
    assert says in run.ok("import", path, "--items", items, "-o", output).err
    assert says in run.ok("calibrate", "--items", items, "-o", tmp_path / "bank").err
    table.rename({"category": "scenario"}).write_csv(items)
    assert "is the scenario of an item" not in run.ok("import", path, "--items", items, "-o", output).err
    assert ib.read_responses(output).items["scenario"].n_unique() == 2


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
    assert "not read" not in run.ok("import", with_columns(tmp_path / "r.csv", **make), "-o", output).err


def test_a_metric_in_json_is_one_that_the_program_names(run, tmp_path, output):
    pytest.importorskip("jq", reason="needs the extra jq")
    (tmp_path / "r.json").write_text('[{"q": "x", "r": 1, "m": "acc"}, {"q": "x", "r": 0.5, "m": "f1"}]')
    program = ".[] | {item_id: .q, response: .r"
    command = ("import", tmp_path / "r.json", "--model-id", "a", "-o", output, "--metric")
    run.fails(1, "a metric must be named by a column", *command, "acc", "--jq", program + "}")
    run.ok(*command, "f1", "--jq", program + ", metric: .m}")
    assert ib.read_responses(output).responses.tolist() == [[0.5]]


def test_the_list_of_downloads_says_what_each_source_is(run):
    rows = run.json("download")["rows"]
    assert [row["name"] for row in rows] == list(SOURCES)
    assert all(row["holds"] and row["licence"] and row["address"] for row in rows)
    told = {row["name"]: (row["version"], row["most_gigabytes"]) for row in rows}
    wanted = {"bfcl": ("refs/heads/main", 4), "every-eval-ever": ("refs/heads/main", 20), "evalplus": (None, None)}
    assert told.items() >= wanted.items()
    table = run("download")
    assert table.out.count("refs/heads/main") == sum(version is not None for version, _ in told.values())
    assert "A download takes the newest commit" in table.err


def test_a_source_is_read_and_compared_with_published_scores(run, tmp_path, output):
    def said(store, folder):
        return " ".join(run.ok("download", store, "--from", tmp_path / folder, "-o", output).err.split())

    write_bfcl(tmp_path / "bfcl", {"a": [0], "b": []})
    assert "Published scores: 2 compared, 0 differ; largest difference 0." in said("bfcl", "bfcl")
    assert ib.read_responses(output).responses.tolist() == [[0, 1, 1, 1], [1, 1, 1, 1]]
    write_alpaca_eval(tmp_path / "a", {"m": [1.0, 2.0]})
    assert "no published scores to compare with" in said("alpaca-eval", "a")
    write_alpaca_eval(tmp_path / "b", {"m": [1.0, 2.0]}, win_rates={"m": 75.0})
    told = "1 compared, 1 differ; largest difference 0.25.", "'m' on alpaca_eval: 0.5000, published 0.7500"
    holds(said("alpaca-eval", "b"), *told)


def test_swe_bench_says_what_errors_count_as(run, tmp_path, output):
    content = {"submitted_ids": ["o__t-1", "o__t-2"], "resolved_ids": ["o__t-1"], "error_ids": ["o__t-2"]}
    report = write(tmp_path / "agent.run.json", content)
    said = "count as missing, not wrong: 1 of 'agent' (1 error). To count them otherwise: --errors wrong or bounds."
    assert said in " ".join(run.ok("import", report, "-o", output).err.split())
    run("import", report, "--errors", "wrong", "-o", output)
    assert ib.read_responses(output).responses.tolist() == [[1.0, 0.0]]
