import numpy as np

from itembank.numerics.ties import clearly_best

FIRST = np.array([0.08, 0.09, 0.08, 0.09])
SAVING = np.array([0.04, 0.01, 0.03, 0.02])  # mean 0.025, standard error 0.0065


def test_the_first_gives_way_only_to_what_is_better_by_more_than_the_standard_error():
    doubt = np.std(SAVING, ddof=1) / 2.0
    for shift, best in ((0.99, 0), (1.01, 1)):
        assert clearly_best([FIRST, FIRST - SAVING + SAVING.mean() - shift * doubt]) == best
    assert clearly_best([FIRST, FIRST, FIRST - SAVING]) == 2


def test_what_is_unknown_does_not_count():
    nothing = np.full(4, np.nan)
    assert clearly_best([nothing, FIRST]) == 1
    assert clearly_best([FIRST, np.where([True, False, False, True], np.nan, FIRST - SAVING)]) == 1
    assert clearly_best([nothing, nothing]) == 0
