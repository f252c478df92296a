import numpy as np
import pytest
from scipy.sparse import bmat
from scipy.sparse.csgraph import connected_components

from itembank.errors import DataWarning
from itembank.responses.overlap import connected_models, warn_of_no_overlap
from itembank.responses.responses import ResponseMatrix


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_the_components_of_the_graph_of_models_and_items(seed):
    rng = np.random.default_rng(seed)
    observed = rng.random((12, 15)) < rng.choice([0.02, 0.08, 0.2])
    graph = bmat([[None, observed.astype(int)], [observed.T.astype(int), None]])
    _, label = connected_components(graph, directed=False)
    expected = [set(np.flatnonzero(label[:12] == one)) for one in dict.fromkeys(label[:12].tolist())]
    assert [set(group.tolist()) for group in connected_models(observed)] == expected


def matrix(*rows):
    return ResponseMatrix.create(np.array([[np.nan if x == "." else float(x) for x in row] for row in rows]))


def test_models_that_share_no_items_are_told():
    warn_of_no_overlap(matrix("10..", ".01.", "..10"))  # the first and the last are linked by the second
    warn_of_no_overlap(matrix("1010"))
    with pytest.warns(DataWarning, match="3 models answered 4 items, but no item was answered by more than one model"):
        warn_of_no_overlap(matrix("10..", "..1.", "...0"))
    text = "3 models fall into 2 groups that share no items: 'model-1', 'model-3'; 'model-2': a bank cannot"
    with pytest.warns(DataWarning, match=text):
        warn_of_no_overlap(matrix("10..", "..11", "1..."))
