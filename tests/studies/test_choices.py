import pytest

from itembank.errors import ParameterError
from itembank.estimation.estimator_specs import GPIRT
from itembank.estimation.estimator_specs import METHODS as ESTIMATIONS
from itembank.selection.selector_specs import METHODS, AnchorIRT, Random
from itembank.studies.choices import MethodChoice, resolve_choice


def choice(thing, table=METHODS):
    return MethodChoice.of(thing, table, purpose="selector")


def test_a_method_can_be_told_in_four_ways():
    wanted = AnchorIRT(n_restarts=10)
    for thing in (
        {"method": "anchor-irt", "n_restarts": 10},
        wanted,
        MethodChoice("anchor-irt", {"n_restarts": 10}),
    ):
        assert resolve_choice(choice(thing), METHODS) == wanted
        assert choice(thing).label == "anchor-irt (n_restarts=10)"
    assert resolve_choice(choice("random"), METHODS) == Random()


def test_a_choice_is_labelled_by_its_name():
    named = choice({"method": "gp-irt", "name": "measured", "anchor_variance_factor": "estimated"}, ESTIMATIONS)
    assert named.label == "measured"
    assert resolve_choice(named, ESTIMATIONS) == GPIRT(anchor_variance_factor="estimated")


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        ("anchr", "'random', 'stratified', 'anchor-correctness', 'anchor-irt'.*got 'anchr'"),
        ({"method": "anchor-irt", "restarts": 3}, "'n_restarts', 'standardise', 'allow_degenerate'.*'restarts'"),
        ({"method": "anchor-irt", "n_restarts": 0}, "n_restarts must be a whole number >= 1, got 0"),
        ({"method": "anchor-irt", "n_restarts": "many"}, "anchor-irt"),
        ({"n_restarts": 3}, "must have a text 'method'"),
        (3, "selector must be a short name"),
    ],
)
def test_what_is_no_choice_says_what_is(thing, message):
    with pytest.raises(ParameterError, match=message):
        resolve_choice(choice(thing), METHODS)
