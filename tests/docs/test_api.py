from pathlib import Path
from types import ModuleType

import itembank

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"


def public_names():
    """All names of the package and of what stands below it, as a user writes them."""
    here = {name: getattr(itembank, name) for name in itembank.__all__}
    spaces = {name: one.__all__ for name, one in here.items() if hasattr(one, "__all__")}
    top = [f"itembank.{name}" for name, one in here.items() if not isinstance(one, ModuleType)]
    return [*top, *(f"itembank.{space}.{name}" for space, names in spaces.items() for name in names)]


def test_every_public_name_is_on_the_page():
    words = PAGE.read_text(encoding="utf-8").split()
    assert [name for name in public_names() if name not in words] == []


def test_every_name_on_the_page_exists():
    words = {word for word in PAGE.read_text(encoding="utf-8").split() if word.startswith("itembank.")}
    assert len(words) > 100
    deeper = {word for word in words if word.count(".") > 2}  # what results are made of
    assert words - deeper - set(public_names()) == set()
