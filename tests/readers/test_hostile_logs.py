"""Logs with something else where a value should be: refused in words, or read; never another error."""

import copy
import itertools
import json
import warnings

import pytest

from itembank.errors import DataError
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers import test_evalscope, test_every_eval_ever, test_helm, test_opencompass

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
    spec = ReadingSpec(format=name.split(",", maxsplit=1)[0], empty="keep")
    for number, (place, other) in enumerate(zip(places(content), itertools.cycle(OTHERS), strict=False)):
        write(tmp_path / str(number), changed(content, place, other))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read_responses(tmp_path / str(number), spec=spec)
            except DataError:
                continue
