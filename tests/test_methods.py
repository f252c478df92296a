from dataclasses import dataclass

import pytest

from itembank.calibration.specs import METHODS as CALIBRATION
from itembank.errors import ParameterError
from itembank.estimation.specs import METHODS as ESTIMATION
from itembank.methods import MethodTable
from itembank.scoring.specs import METHODS as SCORING
from itembank.selection.specs import METHODS as SELECTION


@dataclass(frozen=True)
class Fast:
    n_steps: int = 1


@dataclass(frozen=True)
class Slow:
    n_steps: int = 9


TABLE: MethodTable = MethodTable("test", {"fast": Fast, "slow": Slow})


def test_a_name_stands_for_the_defaults_and_a_spec_for_itself():
    assert TABLE.resolve("slow") == Slow()
    assert TABLE.resolve(Fast(3)) == Fast(3)
    assert TABLE.name_of(Fast(3)) == "fast"


@pytest.mark.parametrize("method", ["quick", "", None, 3])
def test_anything_else_is_refused_with_the_names(method):
    with pytest.raises(ParameterError, match="test method must be one of 'fast', 'slow'"):
        TABLE.resolve(method)


@pytest.mark.parametrize("table", [CALIBRATION, ESTIMATION, SCORING, SELECTION], ids=lambda table: table.purpose)
def test_every_name_of_a_table_leads_to_its_spec_and_back(table):
    for name in table.kinds:
        assert table.name_of(table.resolve(name)) == name


def test_a_label_tells_what_differs_from_the_default():
    assert TABLE.label(Fast()) == "fast"
    assert TABLE.label(Fast(3)).startswith("fast (")
