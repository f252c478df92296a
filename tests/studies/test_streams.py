import numpy as np

from itembank.studies.streams import stream


def draws(*path, seed=0):
    return tuple(stream(seed, *path).random(3))


def test_a_place_has_its_own_numbers_always():
    assert draws("k-fold", 1, 2) == draws("k-fold", 1, 2)
    places = [("k-fold", 1, 2), ("k-fold", 2, 1), ("k-fold", 12), ("random", 1, 2), ()]
    assert len({draws(*place) for place in places}) == len(places)
    assert draws("k-fold", seed=1) != draws("k-fold", seed=2)


def test_streams_of_neighbours_are_not_related():
    numbers = np.array([stream(0, "select", n).random(2000) for n in range(20)])
    off_diagonal = np.corrcoef(numbers)[np.triu_indices(20, k=1)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(2000)
