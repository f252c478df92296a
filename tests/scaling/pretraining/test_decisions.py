from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.errors import ParameterError
from itembank.scaling.pretraining.decisions import decision_accuracy

scores = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), min_size=2, max_size=7)


@given(st.data())
def test_is_the_share_of_pairs_in_the_right_order(data):
    actual = data.draw(scores)
    predicted = data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=len(actual), max_size=len(actual)))
    worth = []
    for first, second in combinations(range(len(actual)), 2):
        if actual[first] == actual[second]:
            continue
        if predicted[first] == predicted[second]:
            worth.append(0.5)
        else:
            worth.append(float((predicted[first] > predicted[second]) == (actual[first] > actual[second])))
    got = decision_accuracy(np.array(predicted), np.array(actual))
    assert np.isnan(got) if not worth else got == pytest.approx(np.mean(worth))


def test_recipes_without_a_forecast_are_left_out():
    assert decision_accuracy(np.array([0.3, np.nan, 0.4]), np.array([0.2, 0.9, 0.1])) == 0.0


def test_lengths_must_agree():
    with pytest.raises(ParameterError, match="as long as each other"):
        decision_accuracy(np.zeros(3), np.zeros(2))
