import numpy as np
import pytest

from itembank.selection.greedy import Constraints
from itembank.sessions.limits import Budget
from itembank.studies.prediction.adaptation import choose_adaptively
from itembank.studies.prediction.assessors import Assessor
from itembank.studies.prediction.designs import criterion_of
from itembank.studies.prediction.prepared import STUDY_COST
from tests.sessions.simulated import begin


@pytest.mark.parametrize("of", ["logits", "probabilities", "score"])
@pytest.mark.parametrize("per_cost", [False, True])
def test_sessions_ask_what_a_session_with_the_targets_in_its_bank_asks(prepared, pool, of, per_cost):
    """By the public session, driven by hand, whose target is the held-out items by weight."""
    assessor = Assessor("mirt", "adaptation", "v-optimal", per_cost=per_cost, options={"of": of})
    found = choose_adaptively(assessor, prepared.known, prepared.new, pool, (3, 9))
    columns = np.concatenate([pool.items, pool.targets])
    bank = prepared.known.bank("mirt", columns)
    targets = bank.item_ids[pool.items.size :]
    for row in range(2):
        session = begin(
            bank,
            criterion_of(assessor),
            cost=STUDY_COST if per_cost else None,
            target=dict(zip(targets, pool.target_weights.tolist(), strict=True)),
            budget=Budget(n_items=9),
            constraints=Constraints(excluded=tuple(targets)),
            interval="model-based",
        )
        asked = []
        while items := session.ask():
            column = columns[bank.item_ids.index(items[0])]
            session.tell(items[0], float(prepared.new.responses[row, column]))
            asked.append(column)
        assert found[9][row].tolist() == asked
        assert found[3][row].tolist() == asked[:3]


def test_models_that_answer_differently_are_asked_differently(prepared, pool):
    items = choose_adaptively(Assessor("2pl", "adaptation", "fisher"), prepared.known, prepared.new, pool, (9,))[9]
    assert len({int(item) for item in items[:, 0]}) == 1
    assert len({tuple(row) for row in items.tolist()}) > 1
    assert all(np.unique(row).size == 9 for row in items)


def test_a_session_that_runs_out_of_items_leaves_the_rest_empty(prepared, pool):
    items = choose_adaptively(Assessor("2pl", "adaptation", "fisher"), prepared.known, prepared.new, pool, (1000,))
    is_open = ~prepared.known.is_degenerate[pool.items]
    for row in items[1000]:
        assert sorted(row[row >= 0]) == sorted(pool.items[is_open])
