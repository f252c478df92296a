import dataclasses
import functools
from functools import partial

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from itembank.bank.known_scores import win_rate_headline
from itembank.banks import with_target
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import JointMAP, Variational
from itembank.comparison.compare import compare
from itembank.errors import DataError, ParameterError
from itembank.estimation.estimate import estimate
from itembank.estimation.headlines import by_line, expected_win_rates, headline_slopes, with_headline
from itembank.estimation.regressions import predict_ridge, ridge_line
from itembank.planning.auto import aimed_at_headline
from itembank.planning.plan import plan
from itembank.planning.select import next_stage, select
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import mean_win_rate
from itembank.selection.recipes import read_recipe
from itembank.selection.selector_specs import VOptimal
from itembank.sessions.limits import Budget, Decision, Stopping
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_living import add_scores
from tests.bank.banks import make_bank
from tests.estimation.simulated import having, held, small_bank

N_PAST, N_NEW, N_ITEMS, N_MORE = 60, 150, 120, 400


@functools.cache
def world():
    """A bank with an external score over other items, of which some models have none, and new models' full answers."""
    rng = np.random.default_rng(3)
    ability = rng.normal(size=(N_PAST + N_NEW, 1)) + 0.5 * rng.normal(size=(N_PAST + N_NEW, 3))
    scenario = np.arange(N_ITEMS + N_MORE) % 3
    slope, intercept = rng.lognormal(0.0, 0.3, scenario.size), rng.normal(size=scenario.size)
    intercept[N_ITEMS:] += 1.0  # the leaderboard's items are easier, and of two scenarios alone
    scenario[N_ITEMS:] = scenario[N_ITEMS:] % 2
    p = 1.0 / (1.0 + np.exp(-(ability[:, scenario] * slope + intercept)))
    answers, names = (rng.random(p.shape) < p).astype(float), [f"s{j}" for j in scenario[:N_ITEMS].tolist()]
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(N_ITEMS)], "scenario": names})
    models = pl.DataFrame({"model_id": [f"m{k}" for k in range(p.shape[0])]})
    board = answers[:, N_ITEMS:].mean(axis=1)
    responses = ResponseMatrix.create(answers[:, :N_ITEMS], models=models, items=items)
    bank = calibrate(responses.take(models=np.arange(N_PAST)), Variational(n_dims=1, tolerance=1e-3))
    some = models[:N_PAST].with_columns(board=100.0 * board[:N_PAST]).filter(pl.int_range(N_PAST) % 10 != 7)
    return add_scores(bank, some, ["board"]), responses.take(models=np.arange(N_PAST, p.shape[0])), board[N_PAST:]


@functools.cache
def asked():
    """Answers of the new models to 30 items drawn at random."""
    bank, new, _ = world()
    chosen = select(bank, 30, method="random", rng=1)
    return {"responses": new.take(items=new.item_indices(chosen.item_ids)), "selection": chosen}


def true_win_rates():
    bank, new, _ = world()
    return mean_win_rate(bank.targets.scenario_means(new.responses), bank.scenario_scores)


def inside(found, truth):
    return held(found, truth[:, None])[:, -1].mean()


def test_expected_win_rates_are_those_of_drawn_scores_and_of_counting_ties_half():
    rng = np.random.default_rng(1)
    reference = np.vstack([rng.random((9, 2)), [np.nan, 0.5]])
    scores, sizes, own = rng.random((5, 2)), rng.uniform(0.02, 0.3, (5, 2)), np.array([-1, 0, 3, -1, 8])
    value, variance = expected_win_rates(scores, sizes, own, reference_scores=reference)
    for model in range(5):
        others = np.array([r for r in range(9) if r != own[model]])
        drawn = rng.normal(scores[model], sizes[model], (40_000, 2))
        rates = (drawn[:, None, :] > reference[others]).mean(axis=(1, 2))
        assert value[model] == pytest.approx(rates.mean(), abs=0.01)
        assert variance[model] == pytest.approx(rates.var(), rel=0.05)
    # one scenario, one reference: a probability of the normal distribution
    one, spread = expected_win_rates(*np.array([[[0.6]], [[0.1]]]), np.array([-1]), reference_scores=np.array([[0.5]]))
    assert (one[0], spread[0]) == pytest.approx((norm.cdf(1.0), norm.cdf(1.0) * norm.sf(1.0)), abs=1e-12)
    reference, score = np.array([[0.2, 0.5], [0.5, 0.5], [0.7, 0.1]]), np.array([[0.5, 0.5]])
    value, variance = expected_win_rates(score, np.zeros((1, 2)), np.array([-1]), reference_scores=reference)
    assert value[0] == pytest.approx(mean_win_rate(score, reference)[0], abs=1e-12)
    assert variance[0] < 0.1  # that of ties, which may go either way


def test_a_learnt_estimate_counts_only_where_past_models_had_one():
    rule = partial(by_line, intercept=0.1, slopes=np.array([0.4, 0.2]), inflation=np.ones(2))
    value, scale, learnt = np.array([[0.5, 0.5, 0.9]]), np.full((1, 3), 0.1), np.array([0.8])
    alone, sizes = with_headline(value, scale, learnt, rule=rule, weights=np.ones(1), rest=0.0)
    assert alone[0].tolist() == pytest.approx([0.5, 0.5, 0.4])
    assert sizes[0, -1] == pytest.approx(0.1 * np.hypot(0.4, 0.2))
    both, _ = with_headline(value, scale, learnt, rule=rule, weights=np.array([0.75, 0.25]), rest=0.0)
    assert both[0, -1] == pytest.approx(0.5)


def test_a_ridge_line_predicts_what_ridge_regression_does():
    rng = np.random.default_rng(2)
    x, new = rng.random((40, 5)), rng.random((6, 5))
    y = 0.2 + x @ np.array([0.3, 0.0, 0.2, 0.0, 0.1]) + 0.02 * rng.normal(size=40)
    intercept, slopes = ridge_line(x, y)
    np.testing.assert_allclose(intercept + new @ slopes, predict_ridge(x, y[:, None], new)[:, 0], atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "ridge", "gp-irt", "factor"])
def test_an_external_score_is_estimated_and_its_gap_to_the_items_is_in_the_interval(method):
    bank, new, board = world()
    found = estimate(bank, **asked(), method=method, target="board")
    assert found.targets == ("s0", "s1", "s2", "board")
    error, of_items = found.value[:, -1] - board, new.responses.mean(axis=1) - board
    assert abs(of_items.mean()) > 0.1  # the items alone are far off
    assert abs(error.mean()) < 0.02
    assert np.abs(error).mean() < 0.5 * np.abs(board - board.mean()).mean()
    assert inside(found, board) > 0.88
    # scenarios keep their estimates
    plain = estimate(bank, **asked(), method="stacked" if method == "auto" else method)
    np.testing.assert_array_equal(found.value[:, :-1], plain.value[:, :-1])


def test_win_rates_are_estimated_with_intervals_that_hold_and_known_from_all_answers():
    (bank, new, board), truth = world(), true_win_rates()
    found = estimate(bank, **asked(), target="mean_win_rate")
    assert [found.rows()[3][name] for name in ("target", "interval")] == ["mean_win_rate", "calibrated"]
    assert np.abs(found.value[:, -1] - truth).mean() < 0.12
    assert inside(found, truth) > 0.88
    assert np.mean(found.high[:, -1] - found.low[:, -1]) < 0.6
    external = estimate(bank, new, target="board")
    assert (external.high[:, -1] - external.low[:, -1]).min() > 0.02
    assert inside(external, board) > 0.88
    # drawn items give no interval of such a score: they would settle nothing
    odd = new.take(models=np.arange(1))
    notes = estimate(bank, having(odd, ..., 1.0 - odd.responses), target="board").notes
    assert "unlike" in {note.kind for note in notes}
    assert "would settle it" not in str(notes)
    rates = estimate(bank, new, target="mean_win_rate")
    np.testing.assert_allclose(rates.value[:, -1], truth, atol=1e-9)
    np.testing.assert_allclose(rates.high[:, -1], rates.low[:, -1], atol=1e-9)


def test_a_win_rate_against_rivals_with_gaps_is_not_exact():
    """Intervals of models that answered everything were points, which a quarter of the true win rates were in."""
    bank, new, _ = world()
    answers = np.where(np.random.default_rng(0).random((N_PAST, N_ITEMS)) < 0.1, np.nan, bank.responses.responses)
    gaps = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=answers))
    rivals = ~np.isnan(gaps.known_scores.value).any(axis=1)
    truth = mean_win_rate(bank.targets.scenario_means(new.responses), bank.scenario_scores[rivals])
    found = estimate(gaps, new, target="mean_win_rate")
    assert not found.is_exact.any()
    assert inside(found, truth) > 0.85
    assert np.mean(found.high[:, -1] - found.low[:, -1]) < 0.1
    pairs = compare(gaps, new.take(models=np.arange(20)), target="mean_win_rate")
    held_pairs = held(pairs.difference, (truth[pairs.pairs.second] - truth[pairs.pairs.first])[:, None])
    assert 0.85 < held_pairs.mean() < 1.0


def test_a_model_of_the_bank_is_not_ranked_against_itself_and_views_share_what_was_derived():
    bank, _, _ = world()
    found = estimate(bank, bank.responses.take(models=np.array([4])), target="mean_win_rate")
    assert found.value[0, -1] == pytest.approx(with_target(bank, "mean_win_rate").past_scores[4, -1], abs=1e-9)
    pool = prepare_sessions(bank, SessionSpec(target="mean_win_rate", budget=Budget(n_items=4)))
    session = AdaptiveSession(pool, model_id=bank.responses.model_ids[4])
    for item, response in zip(bank.item_ids, bank.responses.responses[4].tolist(), strict=True):
        session.tell(item, response)
    assert session.estimate().scores.value[0, -1] == pytest.approx(found.value[0, -1], abs=1e-9)
    assert with_target(bank, "board").cache.memory is bank.cache.memory


def test_models_are_compared_by_an_external_score():
    bank, _, board = world()
    few = {**asked(), "responses": asked()["responses"].take(models=np.arange(12))}
    given = (bank, few["responses"])
    found = compare(*given, selection=few["selection"], target="board")
    assert found.targets == ("board",)
    truth, difference = board[found.pairs.second] - board[found.pairs.first], found.difference
    assert held(difference, truth[:, None])[:, 0].mean() > 0.85
    assert np.corrcoef(difference.value[:, 0], truth)[0, 1] > 0.7
    assert np.isnan(found.pairs.raw_difference).all()  # no mean of the answers is that score
    assert np.isnan(found.reference.paired_t_p).all()
    with pytest.raises(DataError, match="Take another method than 'paired'"):
        compare(*given, selection=few["selection"], target="board", method="paired")
    with pytest.raises(ParameterError, match="Compare once for each"):
        compare(*given, selection=few["selection"], target=("board", "mean_win_rate"))


def test_a_draw_gives_no_headline_an_interval_and_selections_go_by_its_past_errors():
    bank, _, _ = world()
    for name in ("board", "mean_win_rate"):
        with pytest.raises(ParameterError, match=f"no draw gives the score '{name}' an interval"):
            plan(bank, half_width=0.01, target=name)
    with pytest.raises(ParameterError, match="no draw gives the score 'board'"):
        plan(with_target(bank, "board"))
    chosen = select(with_target(bank, "board"), 12, rng=0)
    assert "interval of 'board': about ±" in chosen.explanation
    assert "Cross-validated mean error: " in chosen.explanation


def test_win_rates_rise_with_a_score_as_the_density_of_models_there():
    """Of normal scores the slope is the mean of their density over themselves, 1 / (2 sqrt(pi) sd)."""
    sd, at = np.array([0.05, 0.1, 0.2]), norm.ppf((np.arange(400) + 0.5) / 400)
    scores = 0.5 + sd * np.column_stack([np.random.default_rng(k).permutation(at) for k in range(3)])
    scores[7, 1] = np.nan
    slopes = headline_slopes(win_rate_headline(scores, 0.0 * scores), scores)
    np.testing.assert_allclose(slopes, 1.0 / (2.0 * np.sqrt(np.pi) * sd) / 3.0, rtol=0.01)
    alike = np.column_stack([scores[:, 0], np.full(400, 0.5)])
    assert headline_slopes(win_rate_headline(alike, 0.0 * alike), alike)[1] == 0.0


def test_items_and_stages_are_aimed_at_the_score_that_was_asked_for():
    bank, new, _ = world()
    truth = bank.targets.scenario_means(new.responses)[:, 0]
    table = pl.DataFrame({"model_id": bank.responses.model_ids, "first": bank.scenario_scores[:, 0]})
    known = add_scores(bank, table, ["first"])
    aimed = aimed_at_headline(with_target(known, "first"))
    weights = aimed.scenario_weights
    assert weights["s0"] == 1.0 > 20.0 * max(abs(weights["s1"]), abs(weights["s2"]))
    assert aimed_at_headline(known) == VOptimal()
    errors = []
    for spec in (aimed, VOptimal()):
        chosen = select(known, 15, method=spec)
        answers = new.take(items=new.item_indices(chosen.item_ids))
        found = estimate(known, answers, selection=chosen, target="first", method="ridge")
        errors.append(np.abs(found.value[:, -1] - truth).mean())
    assert errors[0] < 0.95 * errors[1]
    model = new.take(models=np.arange(1))
    routing, plain = (select(one, 18, stages=2, rng=0) for one in (with_target(known, "first"), known))
    module, usual = (next_stage(known, selection, model).whole for selection in (routing, plain))
    assert [read_recipe(one).spec for one in (routing, module, plain)] == [aimed, aimed, VOptimal()]
    assert [module.n_items, usual.n_items] == [18, 18]
    assert module.scenarios.count("s0") >= 15  # one of each scenario at least in the first stage
    assert usual.scenarios.count("s0") <= 10


@pytest.mark.slow
def test_sessions_ask_as_for_the_overall_score_and_estimate_the_other():
    bank, new, board = world()
    spec = SessionSpec(target="board", budget=Budget(n_items=8), stopping=Stopping(half_width=0.01))
    pool, usual = prepare_sessions(bank, spec), prepare_sessions(bank, SessionSpec(budget=Budget(n_items=8)))
    assert pool.score_names == ("s0", "s1", "s2", "board")
    assert pool.spec.stopping.half_widths == {"board": 0.01}
    found, truth = [], board[:16]
    for row in range(16):
        session, other = AdaptiveSession(pool), AdaptiveSession(usual)
        while items := session.ask():
            assert items == other.ask()
            for one in (session, other):
                one.tell(items[0], new.responses[row, new.item_ids.index(items[0])])
        found.append(session.estimate().scores)
    value, low, high = (np.array([getattr(one, name)[0, -1] for one in found]) for name in ("value", "low", "high"))
    assert np.abs(value - truth).mean() < 0.7 * np.abs(board.mean() - truth).mean()
    assert np.mean((low <= truth) & (truth <= high)) > 0.74  # 16 models: a standard error of 0.055
    assert (high - low).mean() < 0.6
    with pytest.raises(ParameterError, match="goes with interval"):
        prepare_sessions(bank, SessionSpec(target="board", interval="model-based"))


def test_a_session_decides_whether_a_past_models_win_rate_is_beaten():
    bank = small_bank()
    stopping = Stopping(decision=Decision(model=bank.responses.model_ids[4]))
    pool = prepare_sessions(bank, SessionSpec(target="mean_win_rate", stopping=stopping, budget=Budget(3)))
    assert pool.threshold == with_target(bank, "mean_win_rate").past_scores[4, -1]
    session = AdaptiveSession(pool)
    for item in session.ask(3):
        session.tell(item, 1.0)
    found = session.estimate().scores
    assert found.targets == ("math", "code", "law", "mean_win_rate")
    assert 0.0 <= found.low[0, -1] <= found.value[0, -1] <= found.high[0, -1] <= 1.0


def test_what_a_headline_score_does_not_go_with_is_refused():
    for wrong in ({"interval": "model-based"}, {"estimand": "repeated"}):
        with pytest.raises(ParameterError, match="goes with"):
            estimate(world()[0], **asked(), target="board", **wrong)
    few = make_bank(n_models=9)
    with pytest.raises(DataError, match="needs at least 10 past models"):
        estimate(few, few.responses, target="mean_win_rate")


@pytest.mark.filterwarnings("ignore:.* models answer like another one")
def test_external_scores_are_estimated_where_past_models_are_listed_twice():
    rng = np.random.default_rng(5)
    ability, difficulty = rng.normal(size=45), rng.normal(size=80)
    answers = (ability[:, None] - difficulty > rng.logistic(size=(45, 80))) * 1.0
    past, models = np.vstack([answers[:40], answers[:3]]), pl.DataFrame({"model_id": [f"m{k}" for k in range(43)]})
    whole = ResponseMatrix.create(answers, item_ids=[f"i{k:02d}" for k in range(80)])
    bank = calibrate(ResponseMatrix.create(past, models=models, items=whole.items), JointMAP())
    board = models.with_columns(board=pl.Series((10.0 + 50.0 * past.mean(axis=1)).tolist()))
    aimed = with_target(add_scores(bank, board, ["board"]), "board")
    found = estimate(aimed, whole.take(models=np.arange(40, 45), items=np.arange(40)))
    assert np.abs(found.value[:, -1] - (0.1 + 0.5 * answers[40:].mean(axis=1))).mean() < 0.06
