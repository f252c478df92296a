import sys
from dataclasses import dataclass

import pytest

from itembank.calibration.calibration_specs import METHODS as CALIBRATION
from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import METHODS as ESTIMATION
from itembank.estimation.estimator_specs import PIRT, Factor, Stacked
from itembank.irt.ability_specs import METHODS as SCORING
from itembank.methods import Method, MethodTable, entry_points_of
from itembank.selection.selector_specs import METHODS as SELECTION
from tests.packages import install


@dataclass(frozen=True)
class Fast:
    n_steps: int = 1


@dataclass(frozen=True)
class Slow:
    n_steps: int = 9


TABLE: MethodTable = MethodTable("test", {"fast": Fast, "slow": Slow})


def test_a_name_stands_for_the_defaults_and_a_spec_for_itself():
    assert (TABLE.resolve("slow"), TABLE.resolve(Fast(3))) == (Slow(), Fast(3))
    assert (TABLE.name_of(Fast(3)), TABLE.label(Fast())) == ("fast", "fast")
    assert TABLE.label(Fast(3)).startswith("fast (")


@pytest.mark.parametrize("method", ["quick", "", None, 3])
def test_anything_else_is_refused_with_the_names(method):
    with pytest.raises(ParameterError, match="test method must be one of 'fast', 'slow'"):
        TABLE.resolve(method)


@pytest.mark.parametrize("table", [CALIBRATION, ESTIMATION, SCORING, SELECTION], ids=lambda table: table.purpose)
def test_every_name_of_a_table_leads_to_its_spec_and_back(table):
    assert [table.name_of(table.resolve(name)) for name in table.kinds] == [*table.kinds]


def test_plain_data_name_the_methods_within_a_spec_too():
    plain = ESTIMATION.to_plain(Stacked((PIRT(), Factor(discrepancy=0.1)), prior_models=3.0), "method")
    factor = {"method": "factor", "n_factors": "auto", "discrepancy": 0.1}
    assert plain == {"method": "stacked", "members": ({"method": "p-irt"}, factor), "prior_models": 3.0}


SOURCE = """
from dataclasses import dataclass
from itembank.methods import Method

@dataclass(frozen=True)
class Faster:
    n_steps: int = 0

@dataclass(frozen=True)
class Needy:
    n_steps: int

FASTER, NEEDY, NOTHING = Method(Faster, "stranger:run"), Method(Needy, print), 3

def run(spec):
    return -spec.n_steps
"""
GROUP = "itembank.tests"


def table():
    return MethodTable("test", {"fast": Method(Fast, abs), "slow": Slow}, base=object, group=GROUP, reserved=("usual",))


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """A function that installs a package of one module with these entry points."""
    yield lambda *lines: install(monkeypatch, tmp_path, "stranger", SOURCE, {GROUP: lines})
    sys.modules.pop("stranger", None)
    entry_points_of.cache_clear()


def test_methods_of_installed_packages_are_found_by_name_and_by_spec(installed):
    installed("faster = stranger:FASTER")
    one, other = table(), table()
    assert one.names() == ("fast", "slow", "faster")
    spec = one.resolve("faster")
    assert (one.name_of(spec), one.kernel(spec)(spec)) == ("faster", 0)
    assert other.resolve(spec) == spec


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("broken = stranger:ABSENT", "'broken' of the installed package 'stranger' could not be loaded"),
        ("broken = nowhere:METHOD", "No module named 'nowhere'"),
        ("broken = stranger:NOTHING", "must be an itembank.methods.Method, got 3"),
        ("broken = stranger:NEEDY", "must have a default for every choice"),
        ("slow = stranger:FASTER", "'stranger' brings 'slow' .* which is itembank's"),
    ],
)
def test_a_package_that_brings_no_method_is_named(installed, line, message):
    installed(line)
    with pytest.raises(ParameterError, match=message):
        table().resolve("broken")
    assert table().resolve("fast") == Fast()


def test_a_method_that_is_registered_is_one_like_the_others():
    @dataclass(frozen=True)
    class Slower:
        n_steps: int = 99

    own = table()
    own.register("slower", Slower, lambda spec: spec.n_steps + 1)
    assert own.kernel(own.resolve("slower"))(Slower(4)) == 5
    assert own.label(Slower(4)) == "slower (n_steps 4)"
    derived = MethodTable("test", {}, base=Fast)
    for one, name, words in (
        (own, "fast", "must be free, got 'fast'"),
        (own, "usual", "must be free, got 'usual'"),
        (derived, "slower", r"must be a dataclass derived from tests\.test_methods\.Fast"),
    ):
        with pytest.raises(ParameterError, match=words):
            one.register(name, Slower, abs)


def test_a_spec_derived_from_anothers_is_not_taken_for_it():
    @dataclass(frozen=True)
    class Quicker(Fast):
        pass

    own = table()
    with pytest.raises(ParameterError, match="must be one of"):
        own.resolve(Quicker())
    own.register("quicker", Quicker, abs)
    assert own.name_of(Quicker()) == "quicker"
