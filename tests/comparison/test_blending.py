import numpy as np
import pytest

from itembank.comparison.blending import blended_errors, estimator_share


def test_share_makes_differences_most_accurate(rng):
    raw = rng.normal(size=30)
    own = 0.4 * raw + 0.6 * rng.normal(size=30) + 5.0  # a common bias cancels
    shares = np.linspace(0.0, 1.0, 10_001)
    spread = [np.var((1 - c) * raw + c * own) for c in shares]
    assert estimator_share(raw, own) == pytest.approx(shares[np.argmin(spread)], abs=1e-4)


def test_share_stays_between_raw_and_estimator(rng):
    raw = rng.normal(size=30)
    assert estimator_share(raw, 3.0 * raw) == 0.0
    assert estimator_share(3.0 * raw, raw) == 1.0
    assert estimator_share(raw, raw) == 0.0


def test_blended_errors_take_the_share_of_the_other_models(rng):
    raw, own = rng.normal(size=(2, 12))
    found = blended_errors(raw, own)
    for model in range(12):
        others = np.arange(12) != model
        c = estimator_share(raw[others], own[others])
        assert found[model] == pytest.approx((1 - c) * raw[model] + c * own[model])
