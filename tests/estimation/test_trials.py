import dataclasses

import numpy as np
import pytest

from itembank.estimation.folds import folds, run_trial
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")
SHAPE = (1, 12, 2)


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=12, n_items=24, n_dims=1)


def mean_and_rest(fold, _):
    """How many models the fold's bank has, and the rows it left out."""
    return np.stack([np.full(fold.held_out.size, fold.bank.n_models), fold.held_out], axis=1)[None]


def test_each_model_gets_what_its_own_fold_said(bank):
    values = run_trial(bank, "rows", mean_and_rest, SHAPE)
    np.testing.assert_array_equal(values[0, :, 1], np.arange(12))
    for fold in folds(bank):
        np.testing.assert_array_equal(values[0, fold.held_out, 0], 12 - fold.held_out.size)


def test_a_trial_is_run_once_for_a_name(bank):
    copy = dataclasses.replace(bank)
    first = run_trial(copy, "once", mean_and_rest, SHAPE)
    assert run_trial(copy, "once", lambda *_: 1 // 0, SHAPE) is first
    with pytest.raises(ZeroDivisionError):
        run_trial(copy, "another", lambda *_: 1 // 0, SHAPE)


def test_progress_goes_through_the_fits_and_then_the_folds(bank):
    told = []

    def try_fold(fold, progress):
        progress(f"trying fold {fold.number}", 1.0)
        return mean_and_rest(fold, progress)

    run_trial(dataclasses.replace(bank), "told", try_fold, SHAPE, progress=lambda *said: told.append(said))
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert [text for text, fraction in told if fraction > 0.5] == [f"trying fold {number}" for number in range(3)]
    assert fractions[-1] == 1.0
