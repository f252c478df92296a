"""What responses outside 0 to 1 may be, by the values that there are."""

import numpy as np
import pytest

from itembank.readers.settling import range_advice


@pytest.mark.parametrize(
    ("kinds", "says"),
    [
        *(([0, 1, top], f"marks end at {top:g}, add: max_response={top:g}") for top in (3, 5, 10)),
        ([0, 1, 100], "these are percentages"),
        ([9], "marks end at 10"),
        ([-1], "If -1 marks an answer that is missing, add: missing_values=('-1',)"),
        ([-2, 0.5], "If -2 marks an answer that is missing, add"),
        ([-2, 3], "If -2 marks an answer that is missing and the others end at 3"),
        ([-3, -2, -1, 0, 1], "If '-3', '-2', '-1' mark answers that are missing"),
        *((kinds, "rescale them") for kinds in ([-2], [-0.5, 1], [-4, -3, -2, -1, 0, 1], [-2, -1, 0, 1, 3])),
        *(([*kinds, 9], "If 9 marks an answer that is missing") for kinds in ([0, 0.5, 1], [1, 2])),
        *(([*kinds, 9], "marks end at 10") for kinds in ([0.5], [2], [0, 1, 3], [1, 2, 5])),
        *((kinds, "To divide by the highest that a response can be") for kinds in ([1, 7], [0.3, 6.2], [30, 45])),
    ],
)
def test_a_code_for_missing_answers_is_told_from_the_end_of_marks(kinds, says):
    assert says in range_advice(np.array(kinds, dtype=np.float64), has_marks=True)
