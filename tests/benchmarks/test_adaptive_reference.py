import numpy as np
import pytest

from benchmarks.adaptive_banks import bank_and_models
from benchmarks.adaptive_reference import run_plain
from tests.sessions.simulated import model_based

pytestmark = pytest.mark.usefixtures("few_folds")


def test_the_reference_asks_what_a_session_asks():
    """It is slower, not worse: Fisher information at the MAP ability, in one dimension."""
    bank, new = bank_and_models(300, 1, n_tasks=3)
    slope = bank.parameters.loadings[:, 0]
    told = new.responses[0]
    may = np.flatnonzero(~bank.calibration.is_degenerate)
    seconds, asked = run_plain(slope[may], bank.parameters.difficulty[may], lambda item: bool(told[may[item]]), 15)
    session = model_based(bank, "fisher")
    ours = []
    for _ in range(15):
        (item,) = session.ask()
        ours.append(item)
        session.tell(item, told[new.item_ids.index(item)])
    assert [bank.item_ids[may[item]] for item in asked] == ours
    assert min(seconds) >= 0.0


def test_banks_are_the_truth_and_their_models_are_new():
    bank, new = bank_and_models(200, 3, n_tasks=2, n_known=20, n_new=5)
    assert set(bank.responses.model_ids).isdisjoint(new.model_ids)
    assert bank.parameters.n_dims == 3
    chances = np.abs(bank.responses.responses.mean(axis=0) - new.responses.mean(axis=0))
    assert chances.mean() < 0.3
