import pytest

from itembank.sessions.answers import session_responses
from itembank.sessions.limits import Budget
from tests.sessions.simulated import model_based, session_bank

BANK = session_bank(n_dims=1)


@pytest.mark.parametrize(
    ("criterion", "way"),
    [
        ("v-optimal", "adaptive"),
        ("fisher", "adaptive"),
        ("random", "random"),
        ("uniform", "random"),
    ],
)
def test_answers_say_how_their_items_were_chosen(criterion, way):
    session = model_based(BANK, criterion, budget=Budget(n_items=3))
    for item in session.ask(3):
        session.tell(item, 1.0)
    assert session_responses(session).models["answered_how"].to_list() == [way]
