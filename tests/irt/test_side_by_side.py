import numpy as np
import pytest

from itembank.irt.families import ResponseModel
from itembank.irt.newton import can_stand_side_by_side, map_abilities, map_side_by_side
from itembank.irt.parameters import AbilityPrior, ItemParameters


@pytest.mark.parametrize("n_dims", [1, 3])
@pytest.mark.parametrize("n_answers", [1, 17])
def test_each_model_has_the_ability_that_it_has_alone(rng, n_dims, n_answers):
    parameters = ItemParameters.create(rng.lognormal(size=(60, n_dims)), rng.normal(size=60))
    positions = np.sort([rng.permutation(60)[:n_answers] for _ in range(5)])
    responses = rng.integers(0, 2, (5, n_answers)).astype(float)
    responses[3] = 1.0  # all right: the prior alone keeps the ability finite
    common = AbilityPrior.standard(n_dims)
    own = AbilityPrior(rng.normal(size=n_dims), 0.5 * np.eye(n_dims))
    priors = [common, common, own, common, own]
    found = map_side_by_side(
        parameters.loadings[positions],
        parameters.intercept[positions],
        responses,
        ResponseModel.of(parameters),
        priors,
    )
    assert found.converged.all()
    for row, prior in enumerate(priors):
        alone = map_abilities(parameters.take(positions[row]), responses[row : row + 1], prior)
        one = found.row(row)
        np.testing.assert_allclose(one.theta, alone.theta, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(one.covariance, alone.covariance, rtol=1e-12)
        assert (one.method, one.n_models) == ("map", 1)


def test_curves_with_a_chance_to_guess_stand_alone():
    slopes = np.ones((2, 1))
    assert can_stand_side_by_side(ResponseModel.of(ItemParameters.create(slopes, np.zeros(2))))
    assert not can_stand_side_by_side(ResponseModel.of(ItemParameters.create(slopes, np.zeros(2), 0.2)))
    graded = ItemParameters.create(slopes, np.zeros(2), family="beta", precision=np.ones(2))
    assert not can_stand_side_by_side(ResponseModel.of(graded))
