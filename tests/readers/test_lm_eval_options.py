"""Scores of answer options, against those the harness logged itself."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.readers.agreement import spec_like
from itembank.readers.reading_specs import ReadingSpec
from itembank_harnesses.readers.lm_eval_samples import _metric_names, _n_generated, row_options, short_samples
from tests.readers.logs import read_lm_eval, sample, write_run
from tests.readers.reading import refuses, warns

LOG = Path(__file__).parent / "lm_eval_0_4_13"


def lines(task):
    """Return the samples of a task of the log."""
    (path,) = LOG.glob(f"samples_{task}_*.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read(path, task, **choices):
    """Read one task."""
    return read_lm_eval(path, spec=ReadingSpec(tasks=(task,), **choices))


@pytest.mark.parametrize(("task", "response", "metric"), [
    ("capitals", "accuracy", "acc"), ("capitals", "accuracy-per-character", "acc_norm"), ("digits", "accuracy", "acc"),
    ("several_right", "accuracy", "acc"),
    ("several_right", "accuracy-per-character", "acc_norm"),
    ("in_context", "accuracy", "acc"),
])  # fmt: skip
def test_accuracy_is_the_one_the_harness_logged(task, response, metric):
    made, logged = read(LOG, task, response=response), read(LOG, task, metric=(metric,))
    np.testing.assert_array_equal(made.responses, logged.responses)
    assert (made.item_ids, set(np.unique(logged.responses))) == (logged.item_ids, {0.0, 1.0})


def test_probabilities_are_those_of_the_log():
    logged = []
    for row in lines("digits"):
        right, printed = row["brier_score"]
        logged.append([float(number) for number in printed.strip("[]").split()][right])
    made = read(LOG, "digits", response="probability")
    np.testing.assert_allclose(made.responses[0], logged, atol=6e-9)  # printed with eight decimals
    assert made.items["metric"].unique().to_list() == ["choice_probability"]
    made = read(LOG, "capitals", response="probability-per-character")
    for row, found in zip(lines("capitals"), made.responses[0].tolist(), strict=True):
        index = int(row["target"])
        text = row["arguments"][f"gen_args_{index}"]["arg_1"].removeprefix(" ")
        assert found == pytest.approx(math.exp(float(row["resps"][index][0][0]) / len(text)), rel=1e-12)


def test_what_has_no_options_or_counts():
    made = read(LOG, "last_word", response="probability-per-character")
    assert 0.0 < made.responses.min() < made.responses.max() < 1.0
    with pytest.raises(DataError, match=r"'last_word': .* compares options.*\n.*metric=\('last_word=acc',\)"):
        read(LOG, "last_word", response="probability")
    with pytest.raises(DataError, match=r"do not hold \(generated text.*\n.*metric=\('majority=exact_match',\)"):
        read(LOG, "majority", response="probability")
    assert read(LOG, "in_context").items["metric"].unique().to_list() == ["acc"]
    made = read(LOG, "programs")
    assert set(made.n_trials.ravel()) == {5}
    np.testing.assert_allclose(made.responses, 0.4)
    with pytest.warns(DataWarning, match=r"of which the log scores one: 'majority' \(4 texts, 'exact_match' after"):
        made = read(LOG, "majority", filter_name=("first",), repeats="count")
    assert set(made.n_trials.ravel()) == {1}
    spec = ReadingSpec(tasks=("digits", "programs"), response="probability", metric=("programs=pass@1",))
    by_task = dict(read_lm_eval(LOG, spec=spec).items.select("task", "metric").unique().iter_rows())
    assert by_task == {"digits": "choice_probability", "programs": "pass@1"}
    known = read(LOG, "digits", response="probability")
    spec = spec_like(known.items, ReadingSpec(tasks=("digits",)))
    np.testing.assert_array_equal(read_lm_eval(LOG, spec=spec).responses, known.responses)


def test_attempts_and_runs_are_counted_and_copies_are_not(tmp_path):
    write_run(tmp_path, "org/a", {"qa": [sample(0, acc=[1, 0, 1, 1]), sample(1, acc=[0, 0])]})
    made = read(tmp_path, "qa", metric=("acc",), repeats="count")
    assert (made.n_trials.tolist(), made.responses.tolist()) == ([[4, 2]], [[0.75, 0.0]])
    write_run(tmp_path, "org/a", {"qa": [sample(0, acc=[1, 0.5, 0.2])]})
    refuses("Scores between 0 and 1 are no counts", read, tmp_path, "qa", metric=("acc",), repeats="count")
    for folder, date, values in (("1", "01", (1.0, 0.0)), ("2", "02", (1.0, 1.0)), ("copy", "02", (1.0, 1.0))):
        rows = [sample(0, exact_match=values[0]), sample(1, exact_match=values[1])]
        write_run(tmp_path / "b" / folder, "org/a", {"qa": rows}, date=f"2025-03-{date}T10-00-00.000001")
    made = warns("2 rows repeat an earlier row", read, tmp_path / "b", "qa", repeats="count")
    assert (made.n_trials.tolist(), made.responses.tolist()) == ([[2, 2]], [[1.0, 0.5]])


def choices(*pairs, target="0", **more):
    """Make a sample with these (log-likelihood, text) options."""
    arguments = {f"gen_args_{k}": {"arg_0": "Q", "arg_1": f" {text}"} for k, (_, text) in enumerate(pairs)}
    row = sample(0, **{"acc": 1.0} | more) | {"target": target, "arguments": arguments}
    return row | {"resps": [[[str(value), "False"]] for value, _ in pairs]}


def test_older_releases_impossible_options_and_choices_that_contradict(tmp_path):
    row = {"target": 1, "arguments": [["Q", " one"], ["Q", " three"]], "resps": [[[-2.0, False]], [[-1.0, True]]]}
    found = row_options(row, " ")
    assert found.log_likelihoods == (-2.0, -1.0)
    assert found.texts == ("one", "three")
    assert found.by_index == (1,)
    rows = [choices((-1, "x"), (-math.inf, "y")), choices((-1, "x"), (math.nan, "y")) | {"doc_id": 1}]
    write_run(tmp_path / "b", "org/a", {"qa": rows})
    made = warns(
        "1 of 'org/a' .1 without a response", read_lm_eval, tmp_path / "b", spec=ReadingSpec(response="probability")
    )
    np.testing.assert_array_equal(made.responses, [[1.0, np.nan]])
    refuses("metric, got metric 'acc'", ReadingSpec, response="probability", metric=("acc",), error=ParameterError)
    refuses("max_response must be 1", ReadingSpec, response="probability", max_response=100, error=ParameterError)
    refuses("response must be one of", ReadingSpec, response="likelihood", error=ParameterError)


@pytest.mark.parametrize(
    ("made", "response", "says"),
    [
        (
            choices((-1, "x"), (-2, "y"), (-3, "z"), target="w", acc=0.0),
            "probability",
            r"which target does not name for 1 of 1: lines '1'",
        ),
        # as of TruthfulQA's second variant, where acc is the share of several true options
        (
            choices((-1, "x"), (-2, "y"), acc=0.7),
            "probability",
            r"differs for 1 of 1 samples .* differently\): lines '1'",
        ),
        (choices((0.5, "x"), (-2, "y")), "probability", r"log-likelihoods of at most 0, got 1 above, up to 0\.5"),
        (choices((-1, "x"), (-2, "")), "probability-per-character", "the text of every option, and some are empty"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path, made, response, says):
    write_run(tmp_path, "org/a", {"qa": [made]})
    refuses(says, read, tmp_path, "qa", response=response)


@pytest.mark.filterwarnings("ignore:1 model was run on a part")
def test_real_logs_agree_with_their_accuracy(shared_dir):
    logs = shared_dir / "logs" / "lm_eval" / "outputs__qwen3-8b__negotiationtom__Qwen__Qwen3-8B"
    for task in ("negotiationtom_belief", "negotiationtom_desire"):
        made, logged = read(logs, task, response="accuracy"), read(logs, task, metric=("acc",))
        np.testing.assert_array_equal(made.responses, logged.responses)
        assert ((read(logs, task, response="probability").responses > 0.5) <= (logged.responses == 1.0)).all()


KEPT = ("doc_id", "filter", "doc_hash", "metrics")
# Texts and keys that look like the places between which lines are cut.
WORDS = st.sampled_from(
    ["a", '", "filter": "', ', "filter": "none", "metrics": [], "doc_hash": "x"}', '{"doc_id": 7, ', "\\", "\n", "é",
        "]]"]
)  # fmt: skip
KEYS = st.sampled_from(["q", "filter", "resps", "filtered_resps", "doc_hash", "metrics", "doc_id", "acc"])
VALUES = st.recursive(
    WORDS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def told(record):
    """What responses are made of."""
    metrics = {name: record[name] for name in _metric_names(record)}
    return {name: record.get(name) for name in KEPT}, metrics, _n_generated(record)


def check_same(lines):
    """Whether the lines were read short; then they say the same."""
    short = short_samples(lines)
    if short is not None:
        assert [told(one) for one in short] == [told(json.loads(line)) for line in lines]
    return short is not None


ORDER = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash")


def row(**changes):
    """A sample in the order in which the harness writes it."""
    found = {**sample(3, acc=1.0, acc_norm=0.5), **changes}
    return {**{name: found[name] for name in ORDER}, **found}


def line(**changes):
    return json.dumps(row(**changes), ensure_ascii=False)


@settings(max_examples=40, deadline=None)
@given(doc=VALUES, resps=VALUES, filtered=VALUES, acc=VALUES)
def test_what_stands_in_long_fields_and_metrics_misleads_nobody(doc, resps, filtered, acc):
    check_same([line(doc=doc, resps=resps, filtered_resps=filtered, acc=acc), line()])


def test_files_and_lines_of_the_harness_are_read_short():
    files = sorted((Path(__file__).parent / "lm_eval_0_4_13").glob("samples_*.jsonl"))
    assert files
    assert all(check_same(file.read_text(encoding="utf-8").splitlines()) for file in files)
    texts = line(resps=[["one", "two"]])
    assert check_same([line(), texts, line(doc_hash="é")])
    assert _n_generated(short_samples([texts])[0]) == 2


@pytest.mark.parametrize("text", [
    line()[:-1], line().replace('"doc_hash"', '"hash"'), line(metrics=["acc", "target"]),
    line(metrics=["acc", ["acc"]]), line(metrics="acc"), json.dumps(row(doc_hash="\ud800")),
    json.dumps(row(), separators=(",", ":")), json.dumps(dict(sorted(row().items()))),
    json.dumps(sample(3, acc=1.0, metrics=False)),
    json.dumps({"doc_id": 1, "resps": [["a", {"a": 1, "filtered_resps": 2, **row()}]]}),
    "",
])  # fmt: skip
def test_other_lines_are_left_to_be_read_whole(text):
    assert not check_same([line(), text])
