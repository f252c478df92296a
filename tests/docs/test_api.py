from pathlib import Path
from types import ModuleType

import itembank
from itembank.moved_names import NAMESPACES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def public_names():
    """All names of the package and of what stands below it, as a user writes them."""
    top = [f"itembank.{name}" for name in itembank.__all__ if not isinstance(getattr(itembank, name), ModuleType)]
    spaces = {name: getattr(itembank, name) for name in (*NAMESPACES, "plots")}
    return [*top, *(f"itembank.{space}.{name}" for space, home in spaces.items() for name in home.__all__)]


def test_every_public_name_is_on_the_page():
    words = PAGE.read_text(encoding="utf-8").split()
    assert [name for name in public_names() if name not in words] == []


def test_every_name_on_the_page_exists():
    words = {word for word in PAGE.read_text(encoding="utf-8").split() if word.startswith("itembank.")}
    assert len(words) > 100
    deeper = {word for word in words if word.count(".") > 2}  # what results are made of
    assert words - deeper - set(public_names()) == set()
