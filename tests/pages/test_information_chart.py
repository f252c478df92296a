import dataclasses

import numpy as np
import pytest

from itembank.bank.selections import Selection
from itembank.errors import DataError
from itembank.irt.bernoulli import logit, probability
from itembank.irt.families import information_weights
from itembank.irt.parameters import AbilityPrior
from itembank.pages.bank_items import information_chart
from tests.bank.banks import make_bank, with_family
from tests.pages.reading import check_chart, columns_of


def lines_of(chart):
    """Lines by name, as x and y."""
    data = columns_of(chart, "information")
    names = np.array(data["line"])
    return {name: np.array([data[one][names == name] for one in ("ability", "information")]) for name in set(names)}


def selection_of(bank, ids):
    return Selection(tuple(ids), ("math",) * len(ids), np.ones(len(ids)), "anchor-irt", bank.bank_id)


def test_information_is_the_variance_of_the_score_function():
    """Each item tells ``E[(d log p(Y) / d theta)^2]``, the derivatives taken by differences."""
    bank = make_bank(n_dims=1)
    grid, information = lines_of(information_chart(bank))["all 30 items"]
    step = 1e-5
    p, after, before = (probability(bank.parameters, (grid + shift)[:, None]) for shift in (0.0, step, -step))
    right = (np.log(after) - np.log(before)) / (2 * step)
    wrong = (np.log1p(-after) - np.log1p(-before)) / (2 * step)
    expected = (p * right**2 + (1 - p) * wrong**2).sum(axis=1)
    np.testing.assert_allclose(information, expected, rtol=1e-6)


def test_the_message_says_where_the_standard_error_is_least():
    chart = information_chart(make_bank(n_dims=1))
    grid, information = lines_of(chart)["all 30 items"]
    best = information.argmax()
    assert f"ability of {grid[best]:+.1f}" in chart.title
    assert chart.title.endswith(f"all 30 items leave a standard error of {information[best] ** -0.5:.2f}")


def test_scenarios_add_up_to_the_whole():
    bank = make_bank(n_dims=2)
    lines = lines_of(information_chart(bank))
    parts = sum(lines[name][1] for name in bank.targets.scenarios)
    np.testing.assert_allclose(parts, lines["all 30 items"][1])


def test_selection_of_everything_tells_as_much_as_the_bank():
    bank = make_bank(n_dims=2)
    lines = lines_of(information_chart(bank, selection=selection_of(bank, bank.item_ids)))
    np.testing.assert_allclose(lines["selection of 30 (anchor-irt)"][1], lines["all 30 items"][1])


def test_scale_of_ability_does_not_matter():
    """Doubling abilities and the prior's spread while halving the loadings changes no line."""
    bank = make_bank(n_dims=2)
    calibration = bank.calibration
    parameters = dataclasses.replace(calibration.parameters, loadings=calibration.parameters.loadings / 2.0)
    wider = dataclasses.replace(
        calibration,
        parameters=parameters,
        abilities=2.0 * calibration.abilities,
        prior=AbilityPrior(np.zeros(2), 4.0 * np.eye(2)),
    )
    before = lines_of(information_chart(bank))["all 30 items"]
    after = lines_of(information_chart(dataclasses.replace(bank, calibration=wider)))["all 30 items"]
    np.testing.assert_allclose(after, before)


def test_every_calibration_model_has_its_tick():
    bank = make_bank(n_dims=1)
    chart = information_chart(bank)
    np.testing.assert_allclose(columns_of(chart, "models")["place"], bank.calibration.abilities[:, 0])
    check_chart(chart)


def test_selection_from_another_bank_is_refused():
    bank = make_bank(n_dims=1)
    with pytest.raises(DataError, match="'elsewhere/1'"):
        information_chart(bank, selection=selection_of(bank, ["elsewhere/1"]))


@pytest.mark.parametrize("family", ["binomial", "beta", "beta-binomial"])
def test_information_is_that_of_the_family(family):
    bank = with_family(make_bank(n_dims=1), family, precision=30.0)
    grid, drawn = lines_of(information_chart(bank))["all 30 items"]
    parameters = bank.parameters
    weights = information_weights(parameters, logit(parameters, grid[:, None]))
    np.testing.assert_allclose(drawn, (weights * parameters.loadings[:, 0] ** 2).sum(axis=1), rtol=1e-10)
    plain = lines_of(information_chart(make_bank(n_dims=1)))["all 30 items"][1]
    assert np.all(drawn > plain) == (family == "beta")
