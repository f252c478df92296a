"""Programs of jq that are advised for JSON that is no table read what lies there."""

import json

import pytest

from itembank.errors import DataWarning
from itembank.readers import jq_programs
from itembank.readers.jq_programs import program_for
from tests.readers.test_table import read, refused


def test_a_list_of_objects_is_read_by_a_program_that_knows_the_model_beside_it(tmp_path):
    record = {"model": "org/a", "n_examples": 2, "examples": [{"id": "x", "score": 1}, {"id": "y", "score": 0}]}
    program = ".model as $model | .examples[] | . + {model_id: $model, item_id: .id, response: .score}"
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps(record), "r.json")
    pytest.importorskip("jq", reason="needs the extra jq")
    matrix = read(tmp_path, json.dumps(record), "r.json", jq=program)
    assert (matrix.model_ids, matrix.responses.tolist()) == (["org/a"], [[1.0, 0.0]])


@pytest.mark.parametrize("inside", ["", ".results"])
def test_lists_of_objects_by_model_are_read_by_a_program_that_reads_every_model(tmp_path, inside):
    rows = {"a": [{"id": "x", "way": "p", "score": 1}], "b": [{"id": "x", "way": "q", "score": 0, "note": "z"}]}
    record = {name: {"results": own, "n": 1} for name, own in rows.items()} if inside else rows
    row = ". + {model_id: $model, item_id: .id, response: .score}"
    program = f"to_entries[] | .key as $model | .value | {inside or '.'}[] | {row}"
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps(record), "r.json")
    pytest.importorskip("jq", reason="needs the extra jq")
    matrix = read(tmp_path, json.dumps(record), "r.json", jq=program)
    assert (matrix.model_ids, matrix.responses.tolist()) == (["a", "b"], [[1.0], [0.0]])


def test_rows_of_an_advised_program_are_told_apart_by_what_else_they_tell(tmp_path):
    rows = [
        {"id": k, "sampler": way, "correct": k == 1, "p": {"x": 0.1}} for k in range(3) for way in ("top", "greedy")
    ]
    program = ".results[] | . + {model_id: $stem, item_id: .id, response: .correct}"
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps({"results": rows}), "r.json")
    pytest.importorskip("jq", reason="needs the extra jq")
    assert "'sampler' ('top', 'greedy') tells them apart" in refused(
        tmp_path, json.dumps({"results": rows}), "r.json", jq=program
    )


ROWS = [{"id": one, "correct": one == 1} for one in (1, 2)]
BY_ID = "to_entries[] | .key as $item | .value"


@pytest.mark.parametrize(
    ("told", "program"),
    [
        (
            {"model": "a", "scores": {"1": 1, "2": 0}},
            f".model as $model | .scores | {BY_ID} | {{model_id: $model, item_id: $item, response: .}}",
        ),
        (
            [{"model": one, "results": [{"id": 1, "correct": one == "a"}]} for one in "ab"],
            ".[] | .model as $model | .results[] | . + {model_id: $model, item_id: .id, response: .correct}",
        ),
        (
            [{"model": "a", "id": one, "correct": one == 1, "messages": [{"role": "user"}]} for one in (1, 2)],
            ".[] | . + {model_id: .model, item_id: .id, response: .correct}",
        ),
        (
            {
                one: {"model": "a", "response": "B", "graded": {"correct": own}}
                for one, own in (("1", True), ("2", False))
            },
            f"{BY_ID} | . + {{model_id: .model, item_id: $item, response: .graded.correct}}",
        ),
        (
            {"all": {"rate": 0.5}, "each": {one: {"success": one == "1", "tests": [{"x": 1}]} for one in "12"}},
            f".each | {BY_ID} | . + {{model_id: $stem, item_id: $item, response: .success}}",
        ),
        (
            {"run": {"model": "a"}, "each": {"1": [{"pass": 1}], "2": [{"pass": 0}]}},
            f".run.model as $model | .each | {BY_ID} | .[] | . + {{model_id: $model, item_id: $item, response: .pass}}",
        ),
        (
            {"model": "a", "by_subject": {"law": {"correct": 1}, "art": {"correct": 1}}, "rows": ROWS},
            ".model as $model | .rows[] | . + {model_id: $model, item_id: .id, response: .correct}",
        ),
        (
            {"models": [{"name": one, "results": [{"id": 1, "correct": one == "a"}]} for one in "ab"]},
            ".models[] | .name as $model | .results[] | . + {model_id: $model, item_id: .id, response: .correct}",
        ),
        (
            {
                one: {"1": {"correct": one == "a", "seconds": 2}, "2": {"correct": one == "a", "seconds": 2}}
                for one in "ab"
            },
            f"to_entries[] | .key as $model | .value | {BY_ID} | "
            ". + {model_id: $model, item_id: $item, response: .correct}",
        ),
        (
            [{"question_id": 1, "answers": {one: {"text": "x", "correct": one == "a"} for one in "ab"}}],
            f".[] | .question_id as $item | .answers | {BY_ID.replace('item', 'model')} | "
            ". + {model_id: $model, item_id: $item, response: .correct}",
        ),
        (
            {"questions": [{"id": 1, "answers": [{"model": one, "score": int(one == "a")} for one in "ab"]}]},
            ".questions[] | .id as $item | .answers[] | . + {model_id: .model, item_id: $item, response: .score}",
        ),
        (
            [{"model": one, "score": 0.5, "details": [{"question_id": 1, "correct": one == "a"}]} for one in "ab"],
            ".[] | .model as $model | .details[] | . + {model_id: $model, item_id: .question_id, response: .correct}",
        ),
        (
            {"run": {"model": {"name": "m"}, "judge": {"model": "j"}}, "rows": {"law": ROWS, "art": ROWS}},
            ".run.model.name as $model | .rows | to_entries[] | .key as $task | .value | .[] | "
            '. + {model_id: $model, item_id: "\\($task)/\\(.id)", scenario: $task, response: .correct}',
        ),
        (
            {"model": "a", "tasks": [{"name": "law", "rows": ROWS}, {"name": "art", "rows": ROWS}]},
            ".model as $model | .tasks[] | .name as $task | .rows[] | "
            '. + {model_id: $model, item_id: "\\($task)/\\(.id)", scenario: $task, response: .correct}',
        ),
        (
            {"model": "judge", "runs": [{"model": {"name": one}, "rows": ROWS} for one in "ab"]},
            ".runs[] | .model.name as $model | .rows[] | . + {model_id: $model, item_id: .id, response: .correct}",
        ),
        (
            {one: {"law": ROWS, "art": [{"id": 3, "correct": True}]} for one in "ab"},
            "to_entries[] | .key as $model | .value | to_entries[] | .key as $task | .value | .[] | "
            '. + {model_id: $model, item_id: "\\($task)/\\(.id)", scenario: $task, response: .correct}',
        ),
        (
            {task: dict.fromkeys("ab", ROWS) for task in ("law", "art")},
            "to_entries[] | .key as $task | .value | to_entries[] | .key as $model | .value | .[] | "
            '. + {model_id: $model, item_id: "\\($task)/\\(.id)", scenario: $task, response: .correct}',
        ),
        (
            [
                {"model": "a", "task": one, "rows": [{"id": 1, "correct": one == "law"}, {"id": 2, "correct": True}]}
                for one in ("law", "art")
            ],
            ".[] | .model as $model | .task as $task | .rows[] | "
            '. + {model_id: $model, item_id: "\\($task)/\\(.id)", scenario: $task, response: .correct}',
        ),
        (
            {one: [{"id": f"{one} {k}", "correct": k == 1} for k in (1, 2)] for one in ("law", "art")},
            "to_entries[] | .key as $task | .value | .[] | "
            '. + {model_id: $stem, item_id: "\\($task)/\\(.id)", scenario: $task, response: .correct}',
        ),
        (
            {"data": {"run": {"rows": ROWS}}},
            ".data.run.rows[] | . + {model_id: $stem, item_id: .id, response: .correct}",
        ),
        (
            [
                {"id": k, "options": [{"is_correct": right, "chosen": right == (k == 1)} for right in (True, False)]}
                for k in (1, 2)
            ],
            ".[] | .id as $item | .options[] | select(.chosen) | "
            ". + {model_id: $stem, item_id: $item, response: .is_correct}",
        ),
        (
            {f"run {one}": {"model": one, "rows": ROWS} for one in "ab"},
            ".[] | .model as $model | .rows[] | . + {model_id: $model, item_id: .id, response: .correct}",
        ),
        (
            {"results": {"1": True, "2": False}},
            f".results | {BY_ID} | {{model_id: $stem, item_id: $item, response: .}}",
        ),
    ],
)
def test_the_program_for_answers_below_their_model_reads_them(tmp_path, told, program):
    assert f"--jq '{program}'" in refused(tmp_path, json.dumps(told), "r.json")
    pytest.importorskip("jq", reason="needs the extra jq")
    assert {*read(tmp_path, json.dumps(told), "r.json", jq=program).responses.ravel()} == {0.0, 1.0}


def test_words_for_right_and_wrong_go_before_an_answer_that_is_called_a_response():
    program, _ = program_for([{"q_id": 1, "response": "B", "graded": {"correct": "no"}}])
    assert program.endswith("response: .graded.correct}")


def test_a_table_split_into_columns_and_data_is_read_by_a_program(tmp_path):
    table = json.dumps({"columns": ["model", "question_id", "score"], "data": [["a", "1", 1], ["a", "2", 0]]})
    row = ". + {model_id: .model, item_id: .question_id, response: .score}"
    program = f"{jq_programs.BY_COLUMNS[3:]}[] | {row}"
    assert f"--jq '{program}'" in refused(tmp_path, table, "r.json")
    pytest.importorskip("jq", reason="needs the extra jq")
    assert read(tmp_path, table, "r.json", jq=program).responses.tolist() == [[1, 0]]


@pytest.mark.parametrize("data", [None, 1, [], [{"a": 1}], [["a", 1]]])
def test_columns_and_data_of_other_kinds_are_no_split_table(tmp_path, data):
    assert "A program of jq makes rows" in refused(
        tmp_path, json.dumps({"columns": [{"name": "x"}], "data": data}), "r.json"
    )


def test_columns_with_dots_are_known_by_what_they_end_in(tmp_path):
    """Of flattened JSON all models were one, which had the name of the file."""
    header = "id,output,expected,metadata.model,scores.score\n"
    says = refused(tmp_path, f"{header}1,a,a,m,1\n2,a,b,n,0\n")
    program = '. + {model_id: .["metadata.model"], item_id: .id, response: .["scores.score"]}'
    assert says.endswith(f"To read the rows, add: --jq '{program}'")
    table = "config.model,sample_id,score\na,1,1\nb,2,0\n"
    with pytest.warns(DataWarning, match="If 'config.model' does, add: columns=|read the column") as told:
        assert read(tmp_path, table).model_ids == ["r"]
    assert "columns={'model_id': 'config.model'}" in str(told.list[-1].message)
    with pytest.warns(DataWarning, match="read the column|are one"):
        assert read(tmp_path, table, columns={"model_id": "config.model"}).n_models == 2


def test_what_itembank_wrote_itself_is_called_so(tmp_path):
    """A program of jq to the items of a selection was advised, which has no responses."""
    says = refused(tmp_path, '{"schema_version": "itembank.selection/1", "items": [{"item_id": "x"}]}', "s.json")
    assert "is what itembank wrote ('itembank.selection/1'), and no results" in says


def test_the_program_for_a_million_rows_is_that_for_few(monkeypatch):
    few = [{"id": k, "meta": {"correct": k % 2}} for k in range(2)]
    looked: list[object] = []
    places = jq_programs._places
    monkeypatch.setattr(jq_programs, "_places", lambda one, *more: looked.append(one) or places(one, *more))
    assert program_for([few * 500_000]) == program_for([few])
    assert len(looked) < 30_000


def test_an_object_of_many_objects_is_looked_through_once(monkeypatch):
    looked, places = [], jq_programs._places
    monkeypatch.setattr(jq_programs, "_places", lambda one, *more: looked.append(len(one)) or places(one, *more))
    program_for([{f"k{k}": {"a": {"b": k}} for k in range(1000)}])
    assert sum(looked) < 10_000
