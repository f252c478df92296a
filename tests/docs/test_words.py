"""README and docs use the fixed words of CONTRIBUTING.md; output and code blocks are not looked at."""

import pytest

from tests.docs.blocks import FENCE
from tests.docs.test_examples import PAGES, names

NEVER = ["calibration models", "left out in turn", "let expect", "percentage points", "runs as it stands"]


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_no_page_says_it_in_other_words(page):
    text = " ".join(FENCE.sub("", page.read_text(encoding="utf-8")).lower().split())
    assert [words for words in NEVER if words in text] == []
