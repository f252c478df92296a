"""Every entry of the table is whole: what it names exists, and its addresses may be fetched."""

from dataclasses import fields
from importlib import import_module

import pytest

from itembank.errors import ParameterError
from itembank.readers.public.fetch import check_address
from itembank.readers.public.sources import SOURCES, Archive, public_source
from itembank.readers.reading_specs import ReadingSpec

NEEDED = {
    "swebench-verified", "open-llm-leaderboard-v1", "open-llm-leaderboard-v2", "alpaca-eval", "bfcl", "evalplus",
    "livecodebench", "helm", "every-eval-ever",
}  # fmt: skip


def test_the_sources_that_must_be_there_are():
    assert set(SOURCES) >= NEEDED


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_what_an_entry_names_exists(source):
    for name in filter(None, (source.reader, source.published)):
        if ":" in name:
            module, _, function = name.partition(":")
            assert callable(getattr(import_module(module), function))
    assert set(source.choices) | set(source.takes) <= {one.name for one in fields(ReadingSpec)}
    assert (source.checked == "-") == (not source.published)
    check_address(source.address.partition(" ")[0])
    if isinstance(source.download, Archive):
        check_address(source.download.url)


def test_an_unknown_name_gets_a_near_one():
    with pytest.raises(ParameterError, match="Did you mean 'alpaca-eval'"):
        public_source("alpaca_eval")
