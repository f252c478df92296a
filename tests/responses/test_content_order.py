import numpy as np
import polars as pl
import pytest

from itembank.responses.content_order import content_order
from itembank.responses.responses import ResponseMatrix


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


def test_attempts_tell_apart_what_means_do_not():
    """Without the numbers of attempts both models are alike, and names order them."""
    n_trials = np.array([[2, 4], [4, 2]])
    firsts = set()
    for names in (["a", "b"], ["b", "a"]):
        responses = ResponseMatrix.create(np.array([[0.5, 1.0], [0.5, 1.0]]), n_trials=n_trials, model_ids=names)
        firsts.add(int(content_order(responses).models[0]))
    assert len(firsts) == 1


def test_those_that_answered_alike_go_by_their_ids():
    responses = ResponseMatrix.create(np.ones((4, 5)), model_ids=list("cadb"))
    assert content_order(responses).models.tolist() == [1, 3, 0, 2]


def test_parts_are_ordered_as_the_whole_is(monkeypatch):
    values = answers(np.random.default_rng(2), 5, 99)
    whole = content_order(ResponseMatrix.create(values))
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 200)  # two models at a time
    for one, other in zip(content_order(ResponseMatrix.create(values)), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_order_has_nothing_to_do_with_the_answers():
    """Items are not ordered by how hard they are: the first half is as hard as the second, within chance."""
    values = answers(np.random.default_rng(3), 40, 2000)
    means = values.mean(axis=0)[content_order(ResponseMatrix.create(values)).items]
    assert abs(np.corrcoef(np.arange(2000), means)[0, 1]) < 0.1
