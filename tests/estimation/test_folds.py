import copy
import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.bank import norms
from itembank.bank.bank_files import load_bank, save_bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP, Variational
from itembank.calibration.fit_item_model import fit_item_model
from itembank.errors import DataWarning
from itembank.estimation.estimate import estimate
from itembank.estimation.folds import MINIMUM_FOR_FOLDS, TOLERANCE, fold_numbers, folds, run_trial, spec_of
from itembank.responses.responses import ResponseMatrix
from itembank.responses.siblings import order_by_answers
from itembank.responses.targets import ScoreTargets
from itembank_living import add_scores
from tests.bank.banks import make_bank
from tests.estimation.simulated import having, held


@pytest.fixture(scope="module")
def bank():
    return make_bank(n_models=23, n_items=24, n_dims=1)


def test_folds_leave_every_model_out_once_over_the_range_of_scores(bank):
    parts = folds(bank)
    assert len(parts) == 10
    np.testing.assert_array_equal(np.sort(np.concatenate([fold.held_out for fold in parts])), np.arange(23))
    assert {fold.held_out.size for fold in parts} == {2, 3}
    # models in order of their score are dealt out: every fold gets one of each tenth of them
    rank = np.argsort(order_by_answers(bank.responses, np.arange(23), bank.content_order))
    assert all({0, 1} <= set((rank[fold.held_out] // 10).tolist()) for fold in parts)


def test_copies_are_left_out_with_the_model_and_are_not_tried():
    twice = ResponseMatrix.create(np.tile(make_bank(n_models=20, n_items=80, n_dims=1).responses.responses, (2, 1)))
    with pytest.warns(DataWarning, match="40 of 40 models answer like another one"):
        doubled = calibrate(twice, Variational(tolerance=1e-3), rng=0)
    parts = folds(doubled)
    assert sorted(np.concatenate([fold.held_out for fold in parts]) % 20) == list(range(20))
    for fold in parts:
        seen = {int(name.removeprefix("model-")) % 20 for name in fold.bank.responses.model_ids}
        assert not seen & {(row + 1) % 20 for row in fold.held_out.tolist()}
        assert fold.bank.n_models == 40 - 2 * fold.held_out.size


def test_folds_are_the_same_every_time_and_with_other_names_of_models(bank):
    for one, other in zip(folds(bank), folds(dataclasses.replace(bank)), strict=True):
        np.testing.assert_array_equal(one.held_out, other.held_out)
        np.testing.assert_array_equal(one.bank.parameters.loadings, other.bank.parameters.loadings)
    assert folds(bank) is folds(bank)
    responses = make_bank(n_models=30, n_items=24, n_dims=1).responses
    names = [f"m{number}" for number in np.random.default_rng(0).permutation(30)]
    renamed = responses.with_tables(models=responses.models.with_columns(model_id=pl.Series(names)))
    banks = [calibrate(each, Variational(tolerance=1e-3), rng=0) for each in (responses, renamed)]
    first, second = [[fold.held_out.tolist() for fold in folds(bank)] for bank in banks]
    assert first == second


def test_a_fold_s_bank_holds_the_other_models_and_goes_with_it(bank):
    for fold in folds(bank):
        rest = np.setdiff1d(np.arange(23), fold.held_out)
        assert fold.bank.responses.model_ids == [bank.responses.model_ids[row] for row in rest]
        np.testing.assert_array_equal(fold.bank.responses.responses, bank.responses.responses[rest])
        assert (fold.bank.item_ids, fold.bank.targets) == (bank.item_ids, bank.targets)
        assert (fold.bank.calibration.abilities.shape, fold.bank.parameters.loadings.shape) == ((rest.size, 1), (24, 1))
    fold = folds(bank)[2]
    assert fold.bank is fold.bank
    sent = copy.deepcopy(fold)  # by the same protocol as what goes to other processes
    assert (sent.number, sent.held_out.tolist()) == (fold.number, fold.held_out.tolist())
    np.testing.assert_array_equal(sent.bank.parameters.loadings, fold.bank.parameters.loadings)
    assert sent.bank.responses.model_ids == fold.bank.responses.model_ids


def test_the_fit_is_that_of_the_other_models_alone(bank):
    fold = folds(bank)[3]
    fitted = fit_item_model(fold.bank.responses, dataclasses.replace(spec_of(bank.calibration), tolerance=TOLERANCE))
    np.testing.assert_allclose(fold.bank.parameters.loadings, fitted.parameters.loadings)
    np.testing.assert_allclose(fold.bank.parameters.intercept, fitted.parameters.intercept)
    np.testing.assert_allclose(fold.bank.calibration.abilities, fitted.abilities)
    np.testing.assert_allclose(fold.bank.calibration.prior.mean, fitted.prior.mean)
    np.testing.assert_allclose(fold.bank.calibration.prior.covariance, fitted.prior.covariance)
    np.testing.assert_array_equal(fold.bank.calibration.is_degenerate, fitted.is_degenerate)


@pytest.mark.parametrize(("tolerance", "expected"), [(1e-7, TOLERANCE), (1e-3, 1e-3)])
def test_folds_are_fitted_as_loosely_as_the_bank_but_never_as_strictly(tolerance, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 2)
    spec = Variational(item_model="2pl", n_dims=1, tolerance=tolerance)
    save_bank(calibrate(make_bank(n_models=12, n_items=24).responses, spec, rng=0), tmp_path / "bank")
    bank = load_bank(tmp_path / "bank")
    assert bank.calibration.tolerance == tolerance
    fold = folds(bank)[0]
    fitted = fit_item_model(fold.bank.responses, dataclasses.replace(spec, tolerance=expected))
    np.testing.assert_allclose(fold.bank.parameters.intercept, fitted.parameters.intercept)


def test_few_models_have_no_folds_many_fewer_and_none_where_a_fit_or_a_score_is_impossible(bank):
    assert folds(make_bank(n_models=MINIMUM_FOR_FOLDS - 1)) == ()
    parts = folds(make_bank(n_models=100, n_items=12, n_dims=1))
    assert [fold.held_out.size for fold in parts] == [20] * 5
    values = np.ones((23, 24))
    values[5, ::2] = 0.0  # without this model no item tells the others apart
    assert folds(having(bank, ..., values)) == ()
    assert folds(having(bank, (slice(MINIMUM_FOR_FOLDS - 1, None), slice(8, None)))) == ()


def test_items_that_only_left_out_models_answered_get_the_mean_of_the_others(bank):
    parts = folds(having(bank, (slice(1, None), 7)))
    fold = next(fold for fold in parts if 0 in fold.held_out)
    parameters, others = fold.bank.parameters, np.arange(24) != 7
    assert parameters.intercept[7] == pytest.approx(parameters.intercept[others].mean())
    assert parameters.loadings[7, 0] == pytest.approx(parameters.loadings[others, 0].mean())
    assert fold.bank.calibration.is_degenerate[7]


def test_the_same_kind_of_fit_is_made():
    base = make_bank(n_models=12, n_items=24)
    for spec in (Variational(item_model="1pl", n_dims=1, known_guessing=True), JointMAP(item_model="2pl", n_dims=1)):
        made = calibrate(base.responses, spec, rng=0)
        found, names = spec_of(made.calibration), ("__class__", "item_model", "n_dims", "known_guessing")
        assert [getattr(found, name) for name in names] == [getattr(spec, name) for name in names]
        for fold in folds(made):
            np.testing.assert_array_equal(fold.bank.parameters.lower_asymptote, made.parameters.lower_asymptote)
            assert (fold.bank.calibration.item_model, fold.bank.calibration.n_dims) == (spec.item_model, 1)


def saved(spec, tmp_path, monkeypatch, **sizes):
    """A bank of two folds, and the same from its file, which keeps all choices."""
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 2)
    made = calibrate(make_bank(**sizes).responses, spec, rng=0)
    save_bank(made, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    assert spec_of(loaded.calibration) == dataclasses.replace(spec, family="bernoulli")
    np.testing.assert_array_equal(loaded.parameters.loadings, made.parameters.loadings)
    np.testing.assert_array_equal(loaded.calibration.prior.covariance, made.calibration.prior.covariance)
    return loaded


def test_a_nested_bank_keeps_its_kind_in_folds(tmp_path, monkeypatch):
    spec = Variational("nested", n_dims=2, tolerance=1e-4)
    parts = folds(saved(spec, tmp_path, monkeypatch, n_models=40, n_items=60))
    assert len(parts) == 2
    for calibration in (fold.bank.calibration for fold in parts):
        assert (calibration.item_model, calibration.n_dims) == ("nested", 2)
        assert calibration.parameters.loadings[:, 0].mean() > 3 * abs(calibration.parameters.loadings[:, 1].mean())


@pytest.mark.filterwarnings("ignore:responses in .* lie between 0 and 1", "ignore:items of .* are not skill")
def test_thresholds_come_from_the_other_models_and_targets_are_the_whole_banks():
    base, values = make_bank(n_models=12, n_items=24), np.random.default_rng(0).random((12, 24))
    values[0, :3] = 1.0  # marks: of scores between 0 and 1 alone calibration would say that they may be benchmarks'
    made = calibrate(having(base.responses, ..., values), Variational(item_model="2pl", n_dims=1), rng=0)
    thresholds = [fold.bank.calibration.thresholds for fold in folds(made)]
    assert {frozenset(one) for one in thresholds} == {frozenset({"math", "code", "law"})}
    assert len({one["math"] for one in thresholds}) > 1
    targets = ScoreTargets.create(base.responses.items, within="macro", across="items")
    for fold in folds(dataclasses.replace(base, targets=targets)):
        np.testing.assert_array_equal(fold.bank.targets.overall_weights, targets.overall_weights)


def test_progress_runs_from_start_to_end(bank):
    said = []
    folds(dataclasses.replace(bank), progress=lambda text, share: said.append((text, share)))
    shares = [share for _, share in said]
    assert (shares, shares[-1]) == (sorted(shares), 1.0)
    assert {text for text, _ in said} >= {f"fitting without models {number} of 10" for number in range(1, 11)}


def test_nested_banks_are_fitted_anew_with_all_their_choices(tmp_path, monkeypatch):
    spec = JointMAP("nested", n_dims=3, general_weight=0.3, l1=2.0, degenerate="majority", tolerance=1e-3)
    bank = saved(spec, tmp_path, monkeypatch, n_models=20, n_items=24)
    covariance = bank.calibration.prior.covariance
    np.testing.assert_allclose(np.diag(covariance), 1.0)
    assert np.abs(covariance - np.eye(spec.n_dims)).max() > 0.01
    fold = folds(bank)[0]
    fitted = fit_item_model(fold.bank.responses, spec)
    np.testing.assert_allclose(fold.bank.parameters.loadings, fitted.parameters.loadings)
    np.testing.assert_allclose(fold.bank.calibration.prior.covariance, fitted.prior.covariance)


def test_models_without_a_known_score_are_in_every_fit(bank):
    incomplete = having(bank, (slice(3, 9), slice(6, None)))
    parts = folds(incomplete)
    assert len(parts) == 10
    tried = np.sort(np.concatenate([part.held_out for part in parts]))
    np.testing.assert_array_equal(tried, [*range(3), *range(9, 23)])
    assert all(set(bank.responses.model_ids[3:9]) <= set(part.bank.responses.model_ids) for part in parts)
    np.testing.assert_array_equal(fold_numbers(incomplete)[3:9], -1)


def test_factors_without_some_models_are_fitted_once_for_these_models(tmp_path, monkeypatch):
    """Also by another process: they take longer than all else that depends on the bank alone."""
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path / "user"))
    save_bank(make_bank(), tmp_path / "bank")
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 3)
    made = []
    for name in ("fit_factor_model", "measure_discrepancy"):
        plain = getattr(norms, name)
        monkeypatch.setattr(norms, name, lambda *args, _of=plain, **how: made.append(1) or _of(*args, **how))

    def factors():
        return [norms.bank_factor_model(fold.bank, discrepancy="auto") for fold in folds(load_bank(tmp_path / "bank"))]

    first, second = factors(), factors()
    assert len(made) == 2 * 3
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.loadings, other.loadings)
        np.testing.assert_array_equal(one.noise, other.noise)
    assert not np.array_equal(first[0].mean, first[1].mean)
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_FEW", 4)  # other models are left out
    assert (len(factors()), len(made)) == (4, 2 * 3 + 2 * 4)


ITEMS = [f"q{number:03d}" for number in range(100)]


def simulated(ability, difficulty, rng):
    return (ability[:, None] - difficulty > rng.logistic(size=(ability.size, difficulty.size))) * 1.0


@pytest.mark.filterwarnings("ignore:.* models answer like another one", "ignore:.* models answered unlike")
@pytest.mark.parametrize("n_times", [2, 3])
def test_intervals_hold_where_every_past_model_is_listed_more_than_once(n_times):
    """Before copies were left out together, none of these 60 intervals held: all had width zero."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=100)
    past = np.tile(simulated(rng.normal(size=20), difficulty, rng), (n_times, 1))
    new = ResponseMatrix.create(simulated(rng.normal(size=60), difficulty, rng), item_ids=ITEMS)
    answered, truth = new.take(items=np.sort(rng.permutation(100)[:25])), new.responses.mean(axis=1)
    found = estimate(calibrate(ResponseMatrix.create(past, item_ids=ITEMS)), answered)
    assert held(found, truth[:, None])[:, -1].mean() >= 0.85
    plain = np.abs(answered.responses.mean(axis=1) - truth).mean()
    assert np.abs(found.value[:, -1] - truth).mean() < 1.3 * plain  # 1.06 on average over worlds
    assert np.median(found.high - found.low) < 0.8


@pytest.mark.filterwarnings("ignore:.* models answer like another one")
def test_an_external_score_is_learnt_without_copies_too():
    rng = np.random.default_rng(1)
    difficulty = rng.normal(size=100)
    past = simulated(rng.normal(size=30), difficulty, rng)
    bank = calibrate(ResponseMatrix.create(np.concatenate([past, past[:2]]), item_ids=ITEMS))
    scores = np.sqrt(bank.responses.responses.mean(axis=1))
    final = pl.DataFrame({"model_id": bank.responses.model_ids, "final": scores})
    new = ResponseMatrix.create(simulated(rng.normal(size=20), difficulty, rng), item_ids=ITEMS)
    found = estimate(add_scores(bank, final, ["final"]), new.take(items=np.arange(40)), target="final")
    assert held(found, np.sqrt(new.responses.mean(axis=1))[:, None])[:, -1].mean() >= 0.8


@pytest.mark.filterwarnings("ignore:.*answered unlike")
@pytest.mark.parametrize("method", ["stacked", "p-irt", "gp-irt", "factor", "weighted", "ridge"])
def test_no_interval_has_width_zero_while_answers_are_unknown(method):
    past = np.repeat([[0.0], [1.0]], 15, axis=0) * np.ones(40)
    new = np.array([np.ones(20), np.zeros(20), np.repeat([1.0, 0.0], 10)])
    bank = calibrate(ResponseMatrix.create(past))
    found = estimate(bank, ResponseMatrix.create(new, item_ids=bank.item_ids[:20]), method=method)
    assert np.all(found.high - found.low > 0.02)
    everything = estimate(bank, ResponseMatrix.create(past[[0, 20]], item_ids=bank.item_ids), method=method)
    np.testing.assert_array_equal(everything.high, everything.low)


SHAPE = (1, 12, 2)


@pytest.fixture(scope="module")
def twelve_models():
    return make_bank(n_models=12, n_items=24, n_dims=1)


def mean_and_rest(fold, _):
    """How many models the fold's bank has, and the rows it left out."""
    return np.stack([np.full(fold.held_out.size, fold.bank.n_models), fold.held_out], axis=1)[None]


def test_each_model_gets_what_its_own_fold_said_once_for_a_name(twelve_models):
    values = run_trial(twelve_models, "rows", mean_and_rest, SHAPE)
    np.testing.assert_array_equal(values[0, :, 1], np.arange(12))
    for fold in folds(twelve_models):
        np.testing.assert_array_equal(values[0, fold.held_out, 0], 12 - fold.held_out.size)
    copy = dataclasses.replace(twelve_models)
    first = run_trial(copy, "once", mean_and_rest, SHAPE)
    assert run_trial(copy, "once", lambda *_: 1 // 0, SHAPE) is first
    with pytest.raises(ZeroDivisionError):
        run_trial(copy, "another", lambda *_: 1 // 0, SHAPE)


def test_progress_goes_through_the_fits_and_then_the_folds(twelve_models):
    told = []

    def try_fold(fold, progress):
        progress(f"trying fold {fold.number}", 1.0)
        return mean_and_rest(fold, progress)

    run_trial(dataclasses.replace(twelve_models), "told", try_fold, SHAPE, progress=lambda *said: told.append(said))
    fractions = [fraction for _, fraction in told]
    assert (fractions, fractions[-1]) == (sorted(fractions), 1.0)
    assert [text for text, fraction in told if fraction > 0.5] == [f"trying fold {number}" for number in range(10)]
