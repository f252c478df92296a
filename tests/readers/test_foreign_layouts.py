"""Files of other tools with something else in one place: rows or a clear error, whatever stands there."""

import json
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank.errors import DataError
from itembank.readers.collecting import laid_out, rows_of_source
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl, write_live_code_bench

ODD = st.sampled_from([None, True, 0, -1, 1e308, float("nan"), "", "x", [], [None], [[1]], {}, {"x": 1}, 2**70])


def write_swe_bench(folder):
    ids = ["a__b-1", "a__b-2"]
    content = {"submitted_ids": ids, "resolved_ids": ids[:1], "unresolved_ids": ids[1:], "total_instances": 2}
    write(folder / "m.run.json", content)


def write_evalplus(folder):
    samples = [{"task_id": "X/1", "base_status": "pass", "plus_status": "fail"}]
    old = {"nfiles": 1, "base": [["pass", []]], "plus": [["pass", []]]}
    write(folder / "m_eval_results.json", {"eval": {"X/1": samples, "X/2": old}, "pass_at_k": {}})


KINDS = {
    "swe-bench": write_swe_bench,
    "evalplus": write_evalplus,
    "bfcl": lambda folder: write_bfcl(folder, {"m": [0]}),
    "alpaca-eval": lambda folder: write_alpaca_eval(folder, {"m": [1.0, 1.5]}),
    "livecodebench": lambda folder: write_live_code_bench(folder, {"m": {"q": [True]}}),
}


def places(value, path=()):
    """Every place in a document."""
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


def changed(value, path, odd):
    """The document with something else in a place."""
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], odd)
    return copy


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_an_odd_value_anywhere_gives_rows_or_a_clear_error(kind, data):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        KINDS[kind](folder)
        path = data.draw(st.sampled_from(sorted(one for one in folder.rglob("*.json"))))
        lines = path.read_text().splitlines()
        content = [json.loads(line) for line in lines]
        place = data.draw(st.sampled_from(list(places(content))[1:]))
        path.write_text("\n".join(map(json.dumps, changed(content, place, data.draw(ODD)))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(DataError):  # any other error fails
                assert rows_of_source(kind, [folder], ReadingSpec()).n_rows > 0


def test_an_error_names_the_file_and_the_layout(tmp_path):
    with (
        pytest.raises(DataError, match=r"x.json: must be laid out as theirs, .*KeyError"),
        laid_out(tmp_path / "x.json", "theirs"),
    ):
        {}["a"]
