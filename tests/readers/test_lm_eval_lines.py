"""Lines read without their long fields say what the whole lines say, or are not read so."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.readers.lm_eval_samples import _metric_names, _n_generated, short_samples
from tests.readers.logs import sample

KEPT = ("doc_id", "filter", "doc_hash", "metrics")
# Texts and keys that look like the places between which lines are cut.
WORDS = st.sampled_from(
    [
        "a",
        '", "filter": "',
        ', "filter": "none", "metrics": [], "doc_hash": "x"}',
        '{"doc_id": 7, ',
        "\\",
        "\n",
        "é",
        "]]",
    ]
)
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


def test_the_harness_own_files_are_read_short():
    files = sorted((Path(__file__).parent / "lm_eval_0_4_13").glob("samples_*.jsonl"))
    assert files
    assert all(check_same(file.read_text(encoding="utf-8").splitlines()) for file in files)


def test_lines_of_the_harness_are_read_short():
    texts = line(resps=[["one", "two"]])
    assert check_same([line(), texts, line(doc_hash="é")])
    assert _n_generated(short_samples([texts])[0]) == 2


@pytest.mark.parametrize(
    "text",
    [
        line()[:-1],
        line().replace('"doc_hash"', '"hash"'),
        line(metrics=["acc", "target"]),
        line(metrics=["acc", ["acc"]]),
        line(metrics="acc"),
        json.dumps(row(doc_hash="\ud800")),
        json.dumps(row(), separators=(",", ":")),
        json.dumps(dict(sorted(row().items()))),
        json.dumps(sample(3, acc=1.0, metrics=False)),
        json.dumps({"doc_id": 1, "resps": [["a", {"a": 1, "filtered_resps": 2, **row()}]]}),
        "",
    ],
)
def test_other_lines_are_left_to_be_read_whole(text):
    assert not check_same([line(), text])
