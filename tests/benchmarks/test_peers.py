import numpy as np
import pytest

import itembank as ib
from benchmarks.peers import ABILITIES, fluid
from itembank.irt.bernoulli import probability
from tests.studies.simulated import make_responses


def test_fluids_rule_asks_the_item_of_most_information_at_the_mode_so_far():
    responses = make_responses(n_scenarios=1)
    bank = ib.build_bank(responses, ib.calibrations.JointMAP(n_dims=1))
    chance, slopes = probability(bank.parameters, ABILITIES[:, None]), bank.parameters.loadings[:, 0]
    asked, mode = [], np.argmin(np.abs(ABILITIES))
    for _ in range(5):
        worth = {
            item: slopes[item] ** 2 * np.prod([chance[mode, item], 1 - chance[mode, item]])
            for item in range(bank.n_items)
        }
        asked.append(max(set(worth) - set(asked), key=lambda item: worth[item]))
        right = responses.responses[3, asked]
        likelihood = np.prod(np.where(right, chance[:, asked], 1.0 - chance[:, asked]), axis=1)
        mode = np.argmax(likelihood * np.exp(-0.5 * ABILITIES**2))
    assert fluid(bank, responses.responses, 5)[3] == pytest.approx(chance[mode] @ bank.targets.overall_weights)
