"""The linear-Gaussian model of responses near an ability."""

import numpy as np

from itembank.irt.linear_gaussian import fit_factor_model
from itembank.selection.later_stages import _residual_model
from itembank.selection.selector_specs import VOptimal


def test_residuals_are_fitted_in_their_own_unit():
    """A factor model of a linear function of responses is that function of their factor model."""
    rng = np.random.default_rng(0)
    residual = np.clip(
        rng.normal(size=(40, 2)) @ rng.normal(scale=0.2, size=(2, 60)) + rng.normal(0, 0.1, (40, 60)), -1, 1
    )
    found, direct = _residual_model(residual, VOptimal()), fit_factor_model(residual, n_factors=VOptimal().n_factors)
    np.testing.assert_allclose(found.mean, direct.mean, atol=1e-12)
    np.testing.assert_allclose(found.noise, direct.noise, rtol=1e-9)
    np.testing.assert_allclose(found.loadings @ found.loadings.T, direct.loadings @ direct.loadings.T, atol=1e-9)
