import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.sparse import bmat
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, logit

from itembank.responses.content_order import content_order
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import (
    connected_models,
    order_by_answers,
    residuals_of,
    sibling_groups,
    siblings_in_words,
    warn_of_no_overlap,
)
from tests.readers.reading import warns


def rasch(rng, n_models, n_items):
    return (rng.normal(size=(n_models, 1)) - rng.normal(size=n_items) > rng.logistic(size=(n_models, n_items))) * 1.0


def groups_of(matrix):
    """Models of each group that has more than one."""
    group = sibling_groups(matrix)
    return sorted(rows for number in np.unique(group) if len(rows := np.flatnonzero(group == number).tolist()) > 1)


def test_residuals_are_those_of_a_logistic_model_with_the_models_own_means():
    """Against a root found one model at a time."""
    responses = rasch(np.random.default_rng(0), 6, 30)
    responses[2, 5:9] = np.nan
    residuals, variances = residuals_of(responses)
    known = ~np.isnan(responses)
    easiness = logit((np.nansum(responses, axis=0) + 0.5) / (known.sum(axis=0) + 1.0))
    for row in range(6):
        n = known[row].sum()
        total = (np.nansum(responses[row]) + 0.5) * n / (n + 1.0)
        shift = brentq(lambda d, row=row, total=total: expit(easiness + d)[known[row]].sum() - total, -15, 15)
        p = expit(easiness + shift)
        np.testing.assert_allclose(residuals[row], np.where(known[row], responses[row] - p, 0.0), atol=1e-4)
        np.testing.assert_allclose(variances[row], np.where(known[row], p * (1.0 - p), 0.0), atol=1e-4)


@pytest.mark.parametrize(("n_models", "n_items"), [(100, 12), (60, 24), (84, 40), (200, 100), (30, 1000)])
def test_unrelated_models_are_no_siblings(n_models, n_items):
    for seed in range(5):
        assert groups_of(ResponseMatrix.create(rasch(np.random.default_rng(seed), n_models, n_items))) == []


def test_siblings_are_copies_and_near_ones_past_missing_answers():
    rng = np.random.default_rng(1)
    values = rasch(rng, 20, 200)
    again = rasch(rng, 20, 200)  # flips of about half of the cells that are drawn anew
    near = np.where(rng.random(200) < 0.1, again[3], values[3])
    far = np.where(rng.random(200) < 0.8, again[7], values[7])
    assert groups_of(ResponseMatrix.create(np.vstack([values, values[[0]], near, far]))) == [[0, 20], [3, 21]]
    values = rasch(np.random.default_rng(2), 15, 150)
    copies = np.repeat(values[[4]], 2, axis=0)
    copies[0, ::3] = np.nan
    copies[1, 1::3] = np.nan
    assert groups_of(ResponseMatrix.create(np.vstack([values, copies]))) == [[4, 15, 16]]
    values = np.vstack([np.ones((5, 60)), np.zeros((5, 60)), rasch(np.random.default_rng(3), 10, 60)])
    assert groups_of(ResponseMatrix.create(values)) == []
    rng = np.random.default_rng(4)
    values = expit(rng.normal(size=(12, 1)) + rng.normal(size=(12, 300)))
    values = np.vstack([values, np.clip(values[5] + rng.normal(0.0, 0.02, 300), 0.0, 1.0)])
    assert groups_of(ResponseMatrix.create(values)) == [[5, 12]]


def test_a_column_names_siblings_and_they_are_named():
    values = rasch(np.random.default_rng(5), 6, 40)
    models = pl.DataFrame({"model_id": list("abcdef"), "copy_of": [None, "a", None, "base", None, "base"]})
    assert groups_of(ResponseMatrix.create(values, models=models)) == [[0, 1], [3, 5]]
    said = siblings_in_words(list("abcdef"), np.array([0, 1, 0, 2, 2, 0]))
    assert said.startswith("5 of 6 models answer like another one, beyond what their scores explain: 'a' = 'c' = 'f'; ")
    assert "3 models differ" in said
    assert siblings_in_words(["a", "b"], np.array([0, 1])) == ""


def test_the_order_by_answers_does_not_hang_on_names_or_places():
    rng = np.random.default_rng(6)
    values = rasch(rng, 30, 10)  # with equal scores
    place = rng.permutation(30)
    names = [f"m{number:02d}" for number in rng.permutation(30)]
    one = ResponseMatrix.create(values)
    other = ResponseMatrix.create(values[place], model_ids=names)
    first = values[order_by_answers(one, np.arange(30), content_order(one))]
    second = values[place][order_by_answers(other, np.arange(30), content_order(other))]
    np.testing.assert_array_equal(first, second)
    assert np.all(np.diff(first.mean(axis=1)) >= 0.0)


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
    warns("3 models answered 4 items, but no item was answered by", warn_of_no_overlap, matrix("10..", "..1.", "...0"))
    text = "3 models fall into 2 groups that share no items: 'model-1', 'model-3'; 'model-2': a bank cannot"
    warns(text, warn_of_no_overlap, matrix("10..", "..11", "1..."))


def answers(rng, n_models, n_items):
    logit = rng.normal(size=(n_models, 1)) - rng.normal(size=n_items)
    return (rng.random(logit.shape) < 1.0 / (1.0 + np.exp(-logit))).astype(float)


def with_gaps(rng):
    values = answers(rng, 14, 40)
    values[rng.random(values.shape) < 0.3] = np.nan
    return ResponseMatrix.create(values)


def of_counts(rng):
    n_trials = rng.integers(0, 9, size=(9, 30))
    return ResponseMatrix.from_counts(rng.binomial(n_trials, 0.4), n_trials)


KINDS = {
    "right and wrong": lambda rng: ResponseMatrix.create(answers(rng, 22, 25)),
    "few models": lambda rng: ResponseMatrix.create(answers(rng, 3, 500)),  # of which many answered alike
    "one model": lambda rng: ResponseMatrix.create(answers(rng, 1, 60)),
    "probabilities": lambda rng: ResponseMatrix.create(rng.random((10, 30))),
    "gaps": with_gaps,
    "counts": of_counts,
}


def elsewhere(rng, responses):
    """The same responses in another order and under other names."""
    taken = responses.take(models=rng.permutation(responses.n_models), items=rng.permutation(responses.n_items))
    names = [f"{number:04d}" for number in rng.permutation(taken.n_models + taken.n_items)]
    models, items = pl.Series("model_id", names[: taken.n_models]), pl.Series("item_id", names[taken.n_models :])
    return taken.with_tables(models=taken.models.with_columns(models), items=taken.items.with_columns(items))


def in_order(responses):
    taken = responses.take(**content_order(responses)._asdict())
    return taken.responses, taken.n_trials


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_names_and_places_change_nothing(kind, seed):
    rng = np.random.default_rng(seed)
    responses = KINDS[kind](rng)
    (values, n_trials), (other_values, other_trials) = in_order(responses), in_order(elsewhere(rng, responses))
    np.testing.assert_array_equal(values, other_values)
    np.testing.assert_array_equal(n_trials, other_trials)


@pytest.mark.parametrize("kind", ["right and wrong", "gaps", "counts"])
def test_wrong_for_right_leaves_the_order(kind):
    responses = KINDS[kind](np.random.default_rng(1))
    turned = ResponseMatrix.create(1.0 - responses.responses, n_trials=responses.n_trials)
    for one, other in zip(content_order(responses), content_order(turned), strict=True):
        np.testing.assert_array_equal(one, other)


def test_attempts_tell_apart_what_means_do_not_and_those_that_answered_alike_go_by_their_ids():
    """Without the numbers of attempts both models are alike, and names order them."""
    n_trials = np.array([[2, 4], [4, 2]])
    firsts = set()
    for names in (["a", "b"], ["b", "a"]):
        responses = ResponseMatrix.create(np.array([[0.5, 1.0], [0.5, 1.0]]), n_trials=n_trials, model_ids=names)
        firsts.add(int(content_order(responses).models[0]))
    assert len(firsts) == 1
    assert content_order(ResponseMatrix.create(np.ones((4, 5)), model_ids=list("cadb"))).models.tolist() == [1, 3, 0, 2]


def test_parts_are_ordered_as_the_whole_is_whatever_the_answers(monkeypatch):
    # Items are not ordered by how hard they are: the first half is as hard as the second, within chance
    values = answers(np.random.default_rng(3), 40, 2000)
    means = values.mean(axis=0)[content_order(ResponseMatrix.create(values)).items]
    assert abs(np.corrcoef(np.arange(2000), means)[0, 1]) < 0.1
    values = answers(np.random.default_rng(2), 5, 99)
    whole = content_order(ResponseMatrix.create(values))
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 200)  # two models at a time
    for one, other in zip(content_order(ResponseMatrix.create(values)), whole, strict=True):
        np.testing.assert_array_equal(one, other)
