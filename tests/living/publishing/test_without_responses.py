import dataclasses

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.past_models import PastModels
from itembank.banks import with_target
from itembank.errors import BankError, DataError, IntegrityError, ParameterError
from itembank.estimation.estimator_specs import METHODS, Factor
from itembank_living import note, retire, without_responses
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")
NEED_RESPONSES = ("ridge", "task-mean", "task-mean-eb")


@pytest.fixture(scope="module")
def whole(few_folds):
    return make_bank(n_models=24, n_items=36, n_dims=1, seed=3)


@pytest.fixture(scope="module")
def selection(whole):
    return ib.select(whole, 12, method="v-optimal")


@pytest.fixture(scope="module", params=["all items", "only chosen"])
def published(whole, selection, tmp_path_factory, request):
    """The bank without responses, as others load it: of all items, or of those chosen with sums over the rest."""
    folder, selections = tmp_path_factory.mktemp("published") / "bank", [selection, ib.select(whole, 20)]
    save_bank(without_responses(whole, selections=selections, only_chosen=request.param == "only chosen"), folder)
    return load_bank(folder)


@pytest.fixture(scope="module")
def new(whole):
    answers = (np.random.default_rng(5).random((4, whole.n_items)) < 0.6).astype(float)
    return ib.ResponseMatrix.create(answers, items=whole.responses.items)


@pytest.fixture(scope="module")
def asked(new, selection):
    """The same models with answers to the chosen items alone."""
    return new.take(items=new.item_indices(list(selection.item_ids)))


def numbers(estimates):
    scores = estimates.scores
    return np.stack([scores.value, scores.standard_error, scores.low, scores.high])


def test_estimates_and_calibrated_intervals_are_those_of_the_whole_bank(whole, selection, published, asked):
    expected, found = ib.estimate(whole, asked, selection=selection), ib.estimate(published, asked)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=0.0, atol=1e-7)
    assert (found.method, found.interval_kind) == ("stacked", "calibrated")
    assert found.explanation == expected.explanation
    again = ib.estimate(published, asked, selection=selection)  # one of the whole bank serves, without a warning
    np.testing.assert_array_equal(numbers(again), numbers(found))


@pytest.mark.parametrize(
    "method", [*sorted(set(METHODS.builtin_names) - {*NEED_RESPONSES, "auto"}), Factor(discrepancy=0.1)]
)
def test_methods_that_need_no_responses_give_the_estimates_of_the_whole_bank(
    whole, selection, published, asked, method
):
    known = {"method": method, "interval": "model-based"}
    expected, found = ib.estimate(whole, asked, selection=selection, **known), ib.estimate(published, asked, **known)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=0.0, atol=1e-7)


@pytest.mark.parametrize("method", NEED_RESPONSES)
def test_methods_that_learn_from_responses_say_that_there_are_none(whole, published, asked, method):
    with pytest.raises(DataError, match=rf"this bank was published without.*{whole.bank_id}"):
        ib.estimate(published, asked, method=method)


def test_the_items_of_a_bank_of_chosen_items_are_those_of_its_selections(whole, selection, published, new):
    for one in (selection, ib.select(whole, 20)):
        assert ib.select(published, one.n_items).item_ids == one.item_ids
        some = new.take(items=new.item_indices(list(one.item_ids)))
        expected, found = ib.estimate(whole, some, selection=one), ib.estimate(published, some)
        np.testing.assert_allclose(numbers(found), numbers(expected), rtol=0.0, atol=1e-7)
        np.testing.assert_array_equal(found.n_total, expected.n_total)
    measured = published.subsets[0].measured
    assert 0.0 < measured["error"] < measured["half_width"] < 0.5
    assert published.target_digest == whole.target_digest
    if published.rest is not None:
        assert published.n_items < whole.n_items == published.targets.scenario_sizes.sum()
        with pytest.raises(ParameterError, match=r"known for 12, 20 items"):
            ib.select(published, 9)
        with pytest.raises(ParameterError, match="method must be 'auto'"):
            ib.select(published, 12, method="random")


@pytest.mark.parametrize("model", ["two abilities", "asymptotes"])
def test_sums_over_the_rest_are_kept_of_simple_curves_only(model):
    bank = make_bank(n_models=16, n_items=24, n_dims=1 + (model == "two abilities"), seed=4)
    if model == "asymptotes":
        bank.parameters.lower_asymptote[:] = 0.2
    with pytest.raises(ParameterError, match="one ability"):
        without_responses(bank, selections=[ib.select(bank, 8, method="random", rng=0)], only_chosen=True)


@pytest.mark.filterwarnings("ignore:None of the 1 items is of")
@pytest.mark.parametrize("n_items", [1, 12])
def test_banks_with_drawn_items_can_be_written_and_read(n_items, tmp_path):
    """One item has no expected width; and answers of chance have no factors, though one is tried and found best."""
    bank = make_bank(n_models=12)
    chance = np.random.default_rng(10).random(bank.responses.responses.shape) < 0.5
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=chance.astype(float)))
    chosen = ib.select(bank, n_items, method="drawn")
    without_responses(bank, selections=[chosen]).save(tmp_path / "bank")
    assert load_bank(tmp_path / "bank").subsets[0].n_factors == 0


def test_other_items_are_estimated_by_the_item_model_alone(whole, selection, new):
    published = without_responses(whole, selections=[selection])
    found = ib.estimate(published, new, selection=ib.select(published, 9))
    assert (found.method, found.interval_kind) == ("design-based", "design")
    found = ib.estimate(published, new, selection=ib.select(published, 9, method="v-optimal"))
    assert (found.method, found.interval_kind) == ("gp-irt", "model-based")
    assert "published without" in found.explanation
    with pytest.raises(DataError, match="published without"):
        ib.select(published, 9, method="anchor-correctness")


def test_a_model_that_left_some_items_unanswered_keeps_a_calibrated_interval(published, selection, asked):
    answers = asked.responses.copy()
    answers[:, asked.item_indices(list(selection.item_ids[:2]))] = np.nan
    with pytest.warns(ib.errors.ModelWarning, match="of the selection some have no response by 4 of 4 models"):
        found = ib.estimate(published, dataclasses.replace(asked, responses=answers))
    widths, of_all = ((one.scores.high - one.scores.low)[:, -1] for one in (found, ib.estimate(published, asked)))
    assert found.interval_kind == "calibrated"
    assert np.all(widths > 0.8 * of_all)
    assert any("errors of estimates from all chosen items" in one.text for one in found.notes)


def test_nothing_of_a_model_is_left_in_the_files(whole, published, tmp_path):
    save_bank(published, tmp_path / "again")
    assert load_bank(tmp_path / "again").bank_id == published.bank_id != whole.bank_id
    for name in ("models.parquet", "responses.parquet"):
        assert pl.read_parquet(tmp_path / "again" / name).height == 0
    content = b"".join(path.read_bytes() for path in (tmp_path / "again").rglob("*") if path.is_file())
    assert not any(model.encode() in content for model in whole.responses.model_ids)
    steps = np.diff(published.subsets[0].errors, axis=0)
    assert np.all(steps[~np.isnan(steps)] >= 0.0)


def test_words_of_a_stranger_do_not_drive_the_terminal(published, tmp_path):
    subset = dataclasses.replace(published.subsets[0], explanation="stacked\x1b[2J")
    save_bank(spoiled(published, subsets=(subset,)), tmp_path / "bank")
    assert load_bank(tmp_path / "bank").subsets[0].explanation == "stacked\\x1b[2J"
    with pytest.raises(ParameterError, match="published without"):
        without_responses(published)


def test_few_models_leave_no_past_errors(new):
    few = make_bank(n_models=8, n_items=36, n_dims=1, seed=3)
    chosen = ib.select(few, 12, method="random", rng=0)
    new = new.take(items=new.item_indices(list(chosen.item_ids)))
    known = ib.estimate(without_responses(few, selections=[chosen]), new)
    assert (known.method, known.interval_kind) == ("design-based", "design")
    np.testing.assert_allclose(numbers(known), numbers(ib.estimate(few, new, selection=chosen)), rtol=0.0, atol=1e-7)


def test_public_scores_are_kept_with_digests_of_names_where_asked_for(whole, selection, asked, tmp_path):
    plain, kept, named = (
        without_responses(whole, selections=[selection], **choices)
        for choices in ({}, {"keep_scores": True}, {"keep_scores": True, "keep_names": True})
    )
    assert plain.bank_id == kept.bank_id == named.bank_id  # no number of an estimate is another
    save_bank(kept, tmp_path / "bank")
    past, ids = load_bank(tmp_path / "bank").past_models, whole.responses.model_ids
    scores = whole.known_scores.value[:, -1]
    np.testing.assert_allclose(past.scores, np.sort(scores)[::-1], atol=1e-7)
    assert past.known(ids) == tuple(ids)
    np.testing.assert_allclose(past.scores[past.rows(ids[0])], scores[0], atol=1e-7)
    content = b"".join(one.read_bytes() for one in (tmp_path / "bank").iterdir())
    assert not any(name.encode() in content for name in ids)
    assert plain.past_models.names == ()
    save_bank(named, tmp_path / "named")
    told = load_bank(tmp_path / "named").past_models
    assert told.names == past.names
    assert [ids.index(one) for one in told.told] == np.argsort(-scores, kind="stable").tolist()
    known = asked.with_tables(models=asked.models.with_columns(model_id=pl.Series([ids[0], "b", "c", "d"])))
    (note_,) = [one for one in ib.estimate(kept, known).notes if one.kind == "past-model"]
    assert (note_.models, "take a bank that was made without" in note_.text) == ((ids[0],), True)


def spoiled(published, **changes):
    return dataclasses.replace(published, published=dataclasses.replace(published.published, **changes))


def other_subset(kept, **make):
    """The published numbers with an array of the first subset changed."""
    first = kept.subsets[0]
    changes = {name: change(getattr(first, name)) for name, change in make.items()}
    return {"subsets": (dataclasses.replace(first, **changes),)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda kept: {"noise_ratio": -kept.noise_ratio}, "noise_ratio must be >= 0"),
        (lambda kept: {"noise_ratio": kept.noise_ratio[:1]}, "noise_ratio must be finite numbers of shape"),
        (lambda kept: {"n_models": 0}, "must hold no models"),
        (lambda kept: {"past": PastModels(("A" * 16,), np.ones(1), "s")}, "a digest of a name and a score"),
        (lambda kept: {"past": PastModels(("a" * 16,), np.array([1.5]), "s")}, "a digest of a name and a score"),
        (lambda kept: {"past": PastModels(("a" * 16,), np.ones(1), "s", ("gpt",))}, "must be those of their digests"),
        (lambda kept: {"whole_bank": "\x1b[2J"}, "whole_bank must be the id of a bank"),
        (lambda kept: {"factor_model": dataclasses.replace(kept.factor_model, loadings=np.zeros(()))}, "factor_load"),
        (lambda kept: other_subset(kept, errors=lambda held: held[:, :1]), "columns"),
        (lambda kept: other_subset(kept, weights=np.negative), "weights must be"),
        (lambda kept: other_subset(kept, scales=np.negative), "scales >= 0"),
        (lambda kept: other_subset(kept, misfit=np.flip), "ascending order"),
    ],
)
def test_numbers_that_cannot_be_are_refused(published, tmp_path, change, message):
    save_bank(spoiled(published, **change(published.published)), tmp_path / "bank")
    with pytest.raises(IntegrityError, match=message):
        load_bank(tmp_path / "bank")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rest: {"weights": -rest.weights}, "rest_weights must be >= 0"),
        (lambda rest: {"curves": rest.curves[:, :3]}, "rest_curves must be finite numbers of shape"),
        (lambda rest: {"curves": -np.abs(rest.curves)}, "the weights of rest_curves must be >= 0"),
        (lambda rest: {"curve_scenarios": rest.curve_scenarios + 9}, "rest_curve_scenarios must be from 0 to 2"),
        (lambda rest: {"shifts": rest.shifts[:-1]}, "rest_shifts must be finite numbers of shape"),
        (lambda rest: {"squares": rest.squares * np.inf}, "rest_squares must be finite"),
    ],
)
def test_sums_over_the_rest_that_cannot_be_are_refused(whole, selection, tmp_path, change, message):
    published = without_responses(whole, selections=[selection], only_chosen=True)
    save_bank(spoiled(published, rest=dataclasses.replace(published.rest, **change(published.rest))), tmp_path / "bank")
    with pytest.raises(IntegrityError, match=message):
        load_bank(tmp_path / "bank")


def test_differences_are_those_of_the_whole_bank_with_calibrated_intervals(whole, selection, published, asked):
    known = {"target": "all"}
    expected, found = ib.compare(whole, asked, selection=selection, **known), ib.compare(published, asked, **known)
    np.testing.assert_allclose(found.difference.value, expected.difference.value, atol=1e-7)
    assert (found.method, found.interval_kind) == ("stacked", "calibrated")
    np.testing.assert_allclose(found.typicality.typicality, expected.typicality.typicality, rtol=1e-6)
    # how alike past models answered is not known: errors count by the two models' standard errors alone
    ratio = found.difference.standard_error / expected.difference.standard_error
    assert np.all((ratio > 0.7) & (ratio < 1.4))


def test_nothing_of_what_is_kept_aside_is_left(whole, tmp_path):
    aside = whole.item_ids[:2]
    changed = retire(whole, aside, reason="wrong key")
    save_bank(without_responses(changed), tmp_path / "bank")
    again = load_bank(tmp_path / "bank")
    assert (again.whole, again.n_models, again.version) == (None, 0, "2.0.0")
    assert again.item_ids == changed.item_ids
    assert (again.target_digest, again.bank_id) == (changed.target_digest, without_responses(changed).bank_id)
    assert [one.digest for one in again.history.targets] == [changed.target_digest]
    save_bank(without_responses(with_target(changed, whole.target_digest)), tmp_path / "earlier")
    assert load_bank(tmp_path / "earlier").item_ids == whole.item_ids
    with pytest.raises(BankError, match="the target must be one that bank"):
        with_target(again, whole.target_digest)


def test_a_note_leaves_it_without_responses(published, tmp_path):
    save_bank(note(published, "as published", name="quiz"), tmp_path / "bank")
    again = load_bank(tmp_path / "bank")
    assert (again.bank_id, again.name, again.version) == (published.bank_id, "quiz", "1.0.1")
    assert again.published is not None
    assert again.subsets[0].selection.item_ids == published.subsets[0].selection.item_ids
    with pytest.raises(DataError, match="Another status of items needs past models' responses"):
        retire(published, published.item_ids[:1], reason="bad")
