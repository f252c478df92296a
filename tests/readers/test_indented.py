import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from itembank_harnesses.readers.indented import read_indented

TEXT = """\
# a comment
name: "a: b"
empty:
flag: true
list:
- x
- 'y'
deep:
    inner:
        - 1
    more: z
text: |
  left
  out
last: end
"""


def write(folder, text):
    path = folder / "metadata.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_keys_lists_and_inner_keys(tmp_path):
    content = read_indented(write(tmp_path, TEXT))
    assert content.pop("text") == "|"
    assert content == {
        "name": "a: b", "flag": "true", "list": ["x", "y"], "deep": {"inner": ["1"], "more": "z"}, "last": "end",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "- only\n- a list\n", "no colon\n", "\t\tx: y\n"])
def test_what_holds_no_keys_gives_none_or_little(text, tmp_path):
    assert set(read_indented(write(tmp_path, text))) <= {"x"}


def test_deep_nesting_ends(tmp_path):
    assert set(read_indented(write(tmp_path, "\n".join(" " * depth + f"k{depth}:" for depth in range(1000))))) == {"k0"}


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="ab:- '\"#\n", max_size=60))
def test_any_text_ends_in_keys(text):
    with tempfile.TemporaryDirectory() as folder:
        assert isinstance(read_indented(write(Path(folder), text)), dict)
