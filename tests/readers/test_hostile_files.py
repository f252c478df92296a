"""Files that ask for too much, or are none: refused at once, in words."""

import copy
import gzip
import itertools
import json
import os
import warnings
from pathlib import Path

import polars as pl
import pytest

from itembank.errors import DataError
from itembank.files import memory
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import zstandard
from itembank_scaling.compute import read_model_table
from tests.readers import test_evalscope, test_every_eval_ever, test_helm, test_opencompass

ROW = b"model-1,item-1,1\n"


@pytest.fixture
def small_machine(monkeypatch):
    monkeypatch.setattr(memory, "_machine_memory", lambda: 32_000_000.0)


@pytest.mark.parametrize("name", ["bomb.csv.gz", "bomb.csv.zst"])
def test_a_table_that_grows_when_unpacked_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.setattr(memory, "ALWAYS_ALLOWED", 2_000_000)
    path, content = tmp_path / name, b"model_id,item_id,response\n" + ROW * 300_000
    if name.endswith("zst"):
        path.write_bytes(zstandard().compress(content))
    else:
        path.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=r"unpacked, the file grows beyond .*max_memory=8e9"):
        read_responses(path)
    matrix = read_responses(path, spec=ReadingSpec(max_memory=2e9, repeats="last"))
    assert matrix.responses.tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["line.jsonl", "line.jsonl.gz", "array.json"])
def test_one_endless_line_is_refused(tmp_path, small_machine, name):
    content = b'[{"model_id": "' + b"a" * 3_000_000
    with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wb") as file:
        file.write(content if name == "array.json" else content[1:])
    with pytest.raises(DataError, match="a line, or a JSON document, must have at most"):
        read_responses(tmp_path / name)


def test_a_json_array_over_many_lines_is_refused_where_it_is_too_large(tmp_path, small_machine):
    rows = ',\n{"model_id": "a", "item_id": "b", "response": 1}' * 40_000
    (tmp_path / "array.json").write_text('[{"model_id": "a", "item_id": "b", "response": 1}' + rows + "]")
    with pytest.raises(DataError, match="a JSON document, must have at most"):
        read_responses(tmp_path / "array.json")


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.parquet", "r.csv.gz"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path, name, kind):
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(DataError, match=f"must be an ordinary file, got a {kind}"):
        read_responses(tmp_path / name)


@pytest.mark.parametrize(
    "line",
    ['{"model_id": "a", "item_id": "\\ud800", "response": 1}', '{"subject_id": "a", "responses": {"\\ud800": 1}}'],
)
def test_half_a_character_is_refused_with_its_line(tmp_path, line):
    fine = line.replace("\\ud800", "fine")
    (tmp_path / "r.jsonl").write_text(f"{fine}\n{line}\n")
    with pytest.raises(DataError, match=r"line 2 must be one JSON object.*half a character, \\ud800"):
        read_responses(tmp_path / "r.jsonl")


def test_half_a_character_in_a_table_of_models_is_refused(tmp_path):
    (tmp_path / "models.jsonl").write_text('{"model_id": "\\udfff", "flops": 1e20}\n')
    with pytest.raises(DataError, match="half a character"):
        read_model_table(tmp_path / "models.jsonl")


def test_a_number_of_four_hundred_digits_is_no_response(tmp_path):
    (tmp_path / "r.jsonl").write_text('{"subject_id": "a", "responses": {"x": 1' + "0" * 400 + "}}\n")
    with pytest.raises(DataError, match=r"response must lie in \[0, 1\]"):
        read_responses(tmp_path / "r.jsonl")


OTHERS = (None, [], {}, "x", 10**400, [{}], True)
TOKENS = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
OUTPUT = {"usage": TOKENS, "time": 1.5, "error": None}
CHOICE = {"index": 0, "review": {"gold": "A", "result": 1}}


def _helm(folder, entries):
    test_helm.write_run(folder, "b:a=1,model=m", entries, questions={"i": "q"})


def _helm_questions(folder, state):
    place = test_helm.write_run(folder, "b:model=m", [test_helm.entry("i", exact_match=1.0)])
    (place / "scenario_state.json").write_text(json.dumps(state))


def _reviews(folder, reviews):
    test_evalscope.write(folder, "reviews", "m", "t", reviews)


def _predictions(folder, predictions):
    _reviews(folder, [test_evalscope.review(0, {"acc": 1.0})])
    test_evalscope.write(folder, "predictions", "m", "t", predictions)


def _aggregate(folder, aggregate):
    samples = test_every_eval_ever.write(folder, 1, [test_every_eval_ever.line("1", 1.0)])
    samples.with_name(test_every_eval_ever.UUID.format(1) + ".json").write_text(json.dumps(aggregate))


def _opencompass(folder, content):
    test_opencompass.write(folder, "results", "m", "t", content)


LINE = test_every_eval_ever.line("1", 1.0, token_usage=TOKENS, performance={"latency_ms": 3})
RESULT = {"evaluation_result_id": "gsm8k/acc", "metric_config": {"metric_name": "a", "lower_is_better": False}}
LOGS = {
    "helm": (_helm, [test_helm.entry("i", exact_match=1.0, num_prompt_tokens=3)]),
    "helm, questions": (_helm_questions, {"request_states": [{"instance": {"id": "i", "input": {"text": "q"}}}]}),
    "evalscope": (_reviews, [test_evalscope.review(0, {"acc": 1.0}, status="success")]),
    "evalscope, old": (_reviews, [{"review_id": "r", "choices": [CHOICE], "usage": TOKENS, "raw_input": {"q": 1}}]),
    "evalscope, predictions": (_predictions, [{"index": 0, "model_output": OUTPUT}]),
    "eee": (lambda folder, lines: test_every_eval_ever.write(folder, 1, lines), [LINE]),
    "eee, aggregate": (_aggregate, {"evaluation_id": "x", "evaluation_results": [RESULT]}),
    "opencompass": (_opencompass, {"accuracy": 100.0, "details": test_opencompass.details(True)}),
}


def places(value, place=()):
    """Give every place in a JSON value but the value itself."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*place, key)
        yield from places(inner, (*place, key))


def changed(value, place, other):
    """Put something else into one place."""
    value = inner = copy.deepcopy(value)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = other
    return value


@pytest.mark.parametrize("name", LOGS)
def test_other_values_are_refused_or_read(tmp_path, name):
    write, content = LOGS[name]
    spec = ReadingSpec(format=name.split(",", maxsplit=1)[0])
    for number, (place, other) in enumerate(zip(places(content), itertools.cycle(OTHERS), strict=False)):
        write(tmp_path / str(number), changed(content, place, other))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read_responses(tmp_path / str(number), spec=spec)
            except DataError:
                continue


@pytest.mark.parametrize("name", ["r[1]", "r*", "~/r", "r\udcff"])
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".csv.gz"])
def test_a_name_that_is_a_pattern_or_no_text_is_of_this_file_alone(tmp_path, monkeypatch, name, ending):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "~").mkdir()
    other = pl.DataFrame({"item_id": ["m", "n"], "model_id": ["i", "i"], "response": [1.0, 1.0]})
    own = pl.DataFrame({"model_id": ["m", "n"], "item_id": ["i", "i"], "response": [0.0, 1.0]})
    for table, path in ((other, "r1"), (other, "r"), (own, name)):
        with (gzip.open if ending.endswith("gz") else open)(f"{path}{ending}", "wb") as file:
            table.write_parquet(file) if ending == ".parquet" else table.write_csv(file)
    for source in (Path(f"{name}{ending}"), Path(f"{name}{ending}").absolute()):
        found = read_responses(source)
        assert ([*found.model_ids], [*found.item_ids], found.responses.tolist()) == (["m", "n"], ["i"], [[0.0], [1.0]])
