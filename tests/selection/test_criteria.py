import pytest

from itembank.errors import ParameterError
from itembank.selection.criteria import (
    CRITERIA,
    INFORMATION,
    DOptimality,
    Fisher,
    MinimumCost,
    VOptimality,
    check_criterion,
    criterion_of,
    uses_cost,
    uses_information,
)

ALL = ("fisher", "trace", "d-optimal", "a-optimal", "v-optimal", "kl", "random", "uniform", "min-cost")


def test_names_stand_for_specs():
    assert tuple(CRITERIA.kinds) == ALL
    for name in ALL:
        assert CRITERIA.name_of(criterion_of(name)) == name
    assert INFORMATION == tuple(name for name in ALL if uses_information(criterion_of(name))) == ALL[:6]


@pytest.mark.parametrize("name", INFORMATION)
def test_every_criterion_of_information_can_be_divided_by_cost(name):
    divided = criterion_of(name, per_cost=True)
    assert divided.per_cost
    assert uses_cost(divided)
    assert not uses_cost(criterion_of(name))
    assert criterion_of(divided, per_cost=False) == criterion_of(name)
    assert criterion_of(divided) is divided


@pytest.mark.parametrize("name", ALL[6:])
def test_what_is_not_information_cannot_be_divided(name):
    with pytest.raises(ParameterError, match=f"only information can be divided by cost, got criterion '{name}'"):
        criterion_of(name, per_cost=True)
    assert criterion_of(name, per_cost=False) == criterion_of(name)
    assert uses_cost(criterion_of(name)) == (name == "min-cost")


def test_choices_of_v_optimality():
    assert criterion_of("v-optimal") == VOptimality("logits", per_cost=False)
    assert criterion_of("v-optimal", of="score", per_cost=True) == VOptimality("score", per_cost=True)
    assert criterion_of(VOptimality(per_cost=True), of="score") == VOptimality("score", per_cost=True)
    with pytest.raises(ParameterError, match="of must be one of 'logits', 'probabilities', 'score', got 'points'"):
        criterion_of("v-optimal", of="points")
    with pytest.raises(ParameterError, match="of is a choice of 'v-optimal', got criterion 'kl'"):
        criterion_of("kl", of="score")


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"criterion method must be one of 'fisher', .*'min-cost', got 'best'"):
        criterion_of("best")


def test_fisher_information_is_for_one_dimension():
    check_criterion(Fisher(), 1)
    check_criterion(DOptimality(), 3)
    check_criterion(MinimumCost(), 3)
    with pytest.raises(ParameterError, match=r"for one ability, got 3 dimensions.*'trace', 'd-optimal'"):
        check_criterion(Fisher(), 3)
