import os

import pytest

from tests.attacks.workplace import make_workplace

TIMES = int(os.environ.get("ITEMBANK_ATTACKS", "1"))
"""How many times as many attacks as in a sample."""
SEED = int(os.environ.get("ITEMBANK_ATTACKS_SEED", "0"))
"""Another makes other damage, kills and flips."""


@pytest.fixture(scope="session")
def workplace(tmp_path_factory):
    """One small good file of every kind; nobody changes them."""
    folder = tmp_path_factory.mktemp("workplace")
    make_workplace(folder)
    return folder
