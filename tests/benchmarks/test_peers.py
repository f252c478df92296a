import numpy as np
import pytest

import itembank as ib
from benchmarks.adaptive_banks import bank_and_models
from benchmarks.adaptive_reference import run_plain
from benchmarks.peers import ABILITIES, fluid
from itembank.irt.bernoulli import probability
from tests.sessions.simulated import model_based
from tests.studies.simulated import make_responses

pytestmark = pytest.mark.usefixtures("few_folds")


def test_fluids_rule_asks_the_item_of_most_information_at_the_mode_so_far():
    responses = make_responses(n_scenarios=1)
    bank = ib.calibrate(responses, ib.calibrations.JointMAP(n_dims=1))
    chance, slopes = probability(bank.parameters, ABILITIES[:, None]), bank.parameters.loadings[:, 0]
    asked, mode = [], np.argmin(np.abs(ABILITIES))
    for _ in range(5):
        worth = slopes**2 * chance[mode] * (1.0 - chance[mode])
        worth[asked] = -1.0
        asked.append(int(worth.argmax()))
        right = responses.responses[3, asked]
        likelihood = np.prod(np.where(right, chance[:, asked], 1.0 - chance[:, asked]), axis=1)
        mode = np.argmax(likelihood * np.exp(-0.5 * ABILITIES**2))
    assert fluid(bank, responses.responses, 5)[3] == pytest.approx(chance[mode] @ bank.targets.overall_weights)


def test_the_reference_asks_what_a_session_asks():
    """It is slower, not worse: Fisher information at the MAP ability, in one dimension."""
    bank, new = bank_and_models(300, 1, n_tasks=3)
    slope, told = bank.parameters.loadings[:, 0], new.responses[0]
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
