import numpy as np
import pytest

from itembank.errors import ParameterError
from itembank.irt.beta import clip_probabilities


def test_what_lies_outside_is_moved_and_counted() -> None:
    responses = np.array([[0.0, 1.0, 0.5], [1e-9, np.nan, 1.0]])
    clipped, note = clip_probabilities(responses, 1e-6)
    expected = [[1e-6, 1 - 1e-6, 0.5], [1e-6, np.nan, 1 - 1e-6]]
    assert np.array_equal(clipped, expected, equal_nan=True)
    assert note == (
        "4 of 5 probabilities lie outside [1e-06, 1 - 1e-06] and are clipped to it (1 are exactly 0, 2 exactly 1)."
    )
    assert responses[0, 0] == 0.0


def test_nothing_to_clip_is_nothing_to_say() -> None:
    _, note = clip_probabilities(np.array([0.2, 1e-6, np.nan]))
    assert note == ""


def test_single_precision_stays_within_the_open_interval() -> None:
    clipped, _ = clip_probabilities(np.array([0.0, 1.0], dtype=np.float32))
    assert clipped.dtype == np.float32
    assert 0.0 < clipped[0] < clipped[1] < 1.0


@pytest.mark.parametrize(
    ("epsilon", "kind"), [(0.0, "float64"), (0.5, "float64"), (-1.0, "float64"), (1e-9, "float32")]
)
def test_an_epsilon_that_clips_nothing_or_everything_is_refused(epsilon: float, kind: str) -> None:
    with pytest.raises(ParameterError, match="epsilon must lie between 0 and"):
        clip_probabilities(np.array([0.5], dtype=kind), epsilon)
