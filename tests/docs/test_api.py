from pathlib import Path

import itembank

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def test_every_public_name_is_on_the_page():
    words = PAGE.read_text(encoding="utf-8").split()
    assert [name for name in itembank.__all__ if f"itembank.{name}" not in words] == []


def test_every_name_on_the_page_exists():
    words = PAGE.read_text(encoding="utf-8").split()
    named = [word.removeprefix("itembank.") for word in words if word.startswith("itembank.") and word.count(".") == 1]
    assert len(named) > 10
    assert [name for name in named if name not in itembank.__all__] == []
