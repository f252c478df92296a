import pytest

from itembank.errors import ParameterError
from itembank.irt.ability_specs import METHODS, ExpectedAPosteriori


@pytest.mark.parametrize("name", METHODS.kinds)
def test_short_names_and_specs_are_equal(name):
    spec = METHODS.resolve(name)
    assert isinstance(spec, METHODS.kinds[name])
    assert METHODS.resolve(spec) is spec


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"one of 'ml', 'map', 'eap', 'wle', got 'mle'"):
        METHODS.resolve("mle")


@pytest.mark.parametrize("options", [{"n_quadrature": 1}, {"bounds": (3.0, 3.0)}, {"bounds": (4.0, -4.0)}])
def test_impossible_grids_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        ExpectedAPosteriori(**options)
