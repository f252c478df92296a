"""Which Inspect is asked for where there is none, or an old one; these tests need none."""

import sys
from types import ModuleType

import pytest

from itembank.errors import MissingDependencyError
from itembank.harnesses.inspect import samples
from itembank.harnesses.inspect.samples import check_release


def test_the_package_is_named_where_inspect_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(MissingDependencyError, match=r"pip install inspect_ai$"):
        check_release()


@pytest.mark.parametrize(
    ("version", "is_fit"),
    [("0.3.249", False), ("0.3.250", True), ("0.3.285.dev4+gabc", True), ("0.4.0", True), ("0.2.999", False)],
)
def test_a_release_that_cannot_be_fed_samples_is_refused(monkeypatch, version, is_fit):
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setattr(samples, "version", lambda _name: version)
    if is_fit:
        check_release()
    else:
        with pytest.raises(MissingDependencyError, match=rf"0\.3\.250 or newer, got {version}.*itembank import"):
            check_release()
