"""A bank of MMLU-Pro's own result files runs on another copy of the task: other names, other order, native ids."""

import json

import numpy as np
import pytest

from itembank.bank.bank_files import load_bank
from itembank.bank.selections import Selection
from itembank.sessions.journal_sessions import read_session
from tests.harnesses.lm_eval.conftest import QUICK, invoked
from tests.harnesses.lm_eval.test_run_command import ARGS, WAYS, own_tasks_only  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.harness, pytest.mark.filterwarnings("ignore")]
LETTERS = "ABCD"
N_MODELS = 15
TASK = """\
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {folder}/{name}.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: options
doc_to_target: answer_index
metric_list: [{{metric: acc}}]
"""
PROGRAM = """\
.[] | {model_id: $stem, item_id: .question_id, scenario: .category, response: (.pred == .answer),
       content: {question, options, answer}}"""


def questions():
    """Rows as the benchmark has them: ids have gaps, and say nothing of the place."""
    rows = []
    for k in range(60):
        right = 13 + k + 7
        options = [str(right + more) for more in np.roll([-1, 0, 1, 10], k % 4)]
        index = options.index(str(right))
        rows.append(
            {
                "question_id": 70 + 3 * k,
                "question": f"What is {13 + k} + 7? Answer:",
                "options": options,
                "answer": LETTERS[index],
                "answer_index": index,
                "category": "law" if k % 2 else "computer science",
                "src": "made",
            }
        )
    return rows


def write_tasks(folder, rows, rng):
    """A group of two tasks with shuffled rows, under names that the bank does not know."""
    folder.mkdir(exist_ok=True)
    names = {"law": "my_copy_law", "computer science": "my_copy_cs"}
    for category, name in names.items():
        own = [row for row in rows if row["category"] == category]
        rng.shuffle(own)
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in own))
        (folder / f"{name}.yaml").write_text(TASK.format(name=name, folder=folder))
    (folder / "my_copy.yaml").write_text(f"group: my_copy\ntask: [{', '.join(names.values())}]\n")


@pytest.fixture(scope="module")
def bank_path(tmp_path_factory):
    """The bank of result files of simulated models, a file a model."""
    folder, rng, rows = tmp_path_factory.mktemp("pro"), np.random.default_rng(3), questions()
    difficulty = rng.normal(size=len(rows))
    for k, skill in enumerate(rng.normal(size=N_MODELS)):
        is_right = rng.random(len(rows)) < 1 / (1 + np.exp(difficulty - skill))
        shift = np.where(is_right, 0, 1)
        preds = [LETTERS[row["answer_index"] - more] for row, more in zip(rows, shift, strict=True)]
        told = [{**row, "pred": pred, "model_outputs": "..."} for row, pred in zip(rows, preds, strict=True)]
        (folder / f"model-{k}.json").write_text(json.dumps(told))
    pytest.importorskip("jq", reason="needs the extra jq")
    invoked("import", *sorted(folder.glob("*.json")), "--jq", PROGRAM, "-o", folder / "past.parquet")
    invoked("calibrate", folder / "past.parquet", "-o", folder / "bank", *QUICK)
    return folder / "bank"


@pytest.fixture
def place(tmp_path, simulated, monkeypatch):
    """A folder with the copied tasks, to work in."""
    write_tasks(tmp_path / "tasks", questions(), np.random.default_rng(4))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(folder):
    """Question ids of the documents of the logs."""
    lines = [line for path in folder.rglob("samples_*.jsonl") for line in path.read_text().splitlines()]
    return [str(json.loads(line)["doc"]["question_id"]) for line in lines]


GIVEN = ("--", *ARGS, "--include_path", "tasks", "--tasks", "my_copy")


@pytest.mark.parametrize(
    ("way", "match"),
    [*((way, ()) for way in WAYS), *(("selection", ("--match", rule)) for rule in ("hash", "question_id"))],
)
def test_every_item_is_found_and_results_come_back_under_the_bank_s_ids(run, place, bank_path, way, match):
    words = ("run", "lm-eval", bank_path, *WAYS[way], *match, "-o", "out", "--format", "json")
    run.ok(*words, "--dry-run", *GIVEN)
    done = run.ok(*words, *GIVEN)
    found = asked(place / "out")
    bank = load_bank(bank_path)
    is_session = way == "adaptive"
    told = read_session("out/session.jsonl", bank).told if is_session else Selection.load("out/selection.json").whole
    chosen = list(told) if is_session else told.item_ids
    assert sorted(found) == sorted(chosen)
    assert set(found) <= set(bank.item_ids)
    again = run(*words, *GIVEN)
    assert (again.code, again.out) == (0, done.out), again.err
    selection = () if way == "adaptive" else ("--selection", "out/selection.json")
    read = run.ok("estimate", bank_path, "out", *selection, *match, "--format", "json")
    rows = read.json["rows"]
    assert rows[-1]["n_items"] == len(chosen)
    if way == "selection":
        assert [row["estimate"] for row in rows] == [row["estimate"] for row in done.json["scores"]]


def test_a_changed_question_is_refused_before_a_request_and_in_logs(run, place, bank_path, simulated):
    words = ("run", "lm-eval", bank_path, "--selection", "chosen.json", "--import", "simulated_lm", "-o")
    run.ok("select", bank_path, "-n", 10, "--method", "random", "-o", "chosen.json")
    changed, *_ = Selection.load("chosen.json").item_ids
    rows = questions()
    rows[(int(changed) - 70) // 3]["question"] = "What is 1 + 1? Answer:"
    write_tasks(place / "tasks", rows, np.random.default_rng(4))
    done = run(*words, "out", *GIVEN)
    told = f"1 of 10 of task 'my_copy_cs', 'my_copy_law' with another content: '{changed}'"
    assert (done.code, told in done.err) == (4, True), done.err
    assert not list(place.rglob("samples_*"))
    write_tasks(place / "tasks", questions(), np.random.default_rng(4))
    run.ok(*words, "out", *GIVEN)
    question = json.dumps(questions()[(int(changed) - 70) // 3]["question"])
    for log in (place / "out").rglob("samples_*.jsonl"):
        log.write_text(log.read_text().replace(question, '"another"'))
    read = run("estimate", bank_path, "out")
    assert (read.code, f"another: '{changed}'" in read.err) == (1, True), read.err


def without_ids(rows):
    return [{name: value for name, value in row.items() if name != "question_id"} for row in rows]


def twice(rows):
    return [{**row, "question_id": 70} for row in rows]


def renamed_field(rows):
    return [{"number" if name == "question_id" else name: value for name, value in row.items()} for row in rows]


def other_text(rows):
    return [{**row, "src": "anew", "options": [*row["options"], "none"]} for row in rows]


NONE = "60 of 60 that are in none"


@pytest.mark.parametrize(
    ("change", "more", "told"),
    [
        (without_ids, (), ()),  # found by content alone
        (lambda rows: other_text(without_ids(rows)), (), (NONE, "place, hash", "look like '70'", "question='What is")),
        (lambda rows: other_text(renamed_field(rows)), (), ("are in the field 'number'", "--match doc.number")),
        (lambda rows: other_text(twice(rows)), (), ("59 of 60 that are in none", "more than once: '70'")),
        (lambda rows: rows[1:], (), ("1 of 60 that are in none: '70'",)),
        (lambda rows: rows, ("--match", "doc.question"), (NONE, "--match doc.question_id")),
        (lambda rows: rows, ("--match", "doc.question_if"), ("must name a field", "Did you mean 'question_id'")),
    ],
)
def test_what_is_not_found_is_told_with_the_way_out(run, place, bank_path, change, more, told):
    write_tasks(place / "tasks", change(questions()), np.random.default_rng(4))
    words = ("run", "lm-eval", bank_path, "-n", 60, *more, "--import", "simulated_lm", "-o", "out", "--dry-run", *GIVEN)
    done = run(*words)
    assert done.code == (0 if not told else 1 if "must name a field" in told else 4), done.err
    assert all(one in done.err for one in told), done.err


def test_tasks_must_be_named_where_nothing_tells_them(run, place, bank_path):
    done = run("run", "lm-eval", bank_path, "-n", 5, "-o", "out", "--", *ARGS, "--include_path", "tasks")
    assert (done.code, "-- --tasks NAME" in done.err) == (2, True), done.err
