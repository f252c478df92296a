import tomllib

import pytest

from itembank.estimation.estimator_specs import METHODS as ESTIMATORS
from itembank.methods import entry_points_of
from itembank.selection.selector_specs import METHODS as SELECTORS
from tests.conftest import REPOSITORY
from tests.packages import forget, name_entry_points

RIVALS = REPOSITORY / "benchmarks" / "rivals" / "methods" / "pyproject.toml"


@pytest.fixture(scope="module")
def rival_methods(tmp_path_factory):
    """Have the entry points of the package of rivals for the tests of a module, whether it is installed or not."""
    project = tomllib.loads(RIVALS.read_text(encoding="utf-8"))["project"]
    groups = {
        group: [f"{name} = {place}" for name, place in lines.items()]
        for group, lines in project["entry-points"].items()
    }
    with pytest.MonkeyPatch.context() as patch:
        forget(patch, ESTIMATORS, SELECTORS)
        name_entry_points(patch, tmp_path_factory.mktemp("rivals"), project["name"].replace("-", "_"), groups)
        yield
    entry_points_of.cache_clear()
