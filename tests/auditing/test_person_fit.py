"""Fit of new models and drift of items: typicality as of estimates; what was planted is found, and little else."""

import dataclasses
import datetime

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from scipy.stats import t as student

from itembank.auditing import fit_statistics
from itembank.auditing.check import check_models
from itembank.auditing.item_drift import (
    ItemDrift,
    PastResiduals,
    find_drift,
    grains,
    item_drift,
    marked_by_chance,
    standardised_sums,
    surest_variance,
)
from itembank.auditing.person_fit import ONE_RUN, SHIFT, check_fit, item_groups
from itembank.bank.bank_files import save_bank
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.irt.bernoulli import probability
from itembank.irt.linear_gaussian import FactorModel
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from itembank_living.changes.notes import retire
from tests.auditing.panels import bank, clean
from tests.bank.banks import make_bank
from tests.estimation.simulated import having, new_models

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture
def suspected():
    return bank().responses.item_ids[::4]


def leaked(matrix, item_ids):
    return having(matrix, (slice(None), matrix.item_indices(item_ids)), 1.0)


def test_typicality_is_that_of_estimates():
    half = clean().take(items=np.arange(0, 120, 2))
    found, expected = check_fit(bank(), half), estimate(bank(), half, method="p-irt").typicality
    np.testing.assert_allclose(found.table["misfit"], expected.misfit)
    np.testing.assert_allclose(found.table["typicality"], expected.typicality)


def test_clean_models_fit():
    found = check_fit(bank(), clean(40, 5))
    assert found.table.filter(verdict="misfits").height <= 6  # of 40, at one in twenty and past models counted anew
    assert set(found.table["n_past"]) == {60}
    fitting = dataclasses.replace(found, table=found.table.filter(verdict="fits"), found=())
    assert (fitting.suits, fitting.verdicts[0].endswith(": nothing unusual.")) == (True, True)
    assert {ONE_RUN, SHIFT} <= set(found.hints)


def test_past_models_are_measured_once_for_their_items_and_groups(tmp_path, monkeypatch):
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path / "user"))
    save_bank(make_bank(), tmp_path / "bank")
    new, others = new_models(make_bank(), 2, 3), new_models(make_bank(), 2, 5)
    measured, plain = [], fit_statistics.statistics_by
    monkeypatch.setattr(fit_statistics, "statistics_by", lambda *args, **how: measured.append(1) or plain(*args, **how))
    first = check_fit(tmp_path / "bank", new)
    assert check_fit(tmp_path / "bank", new).table.equals(first.table)
    assert not check_fit(tmp_path / "bank", others).table.equals(first.table)
    assert len(measured) == 3  # folds
    one, ids = new.take(models=np.arange(1)), new.item_ids
    (name,), some, others = one.model_ids, {"some": ids[::4]}, {"some": ids[1::4]}
    tries = [{"groups": some}, {"groups": others}, {"groups": others, "reference": ids[::4]}]
    tries += [{"order": {name: ids}}, {"order": {name: ids[::-1]}}]
    for number, choices in enumerate(tries, start=2):
        check_fit(tmp_path / "bank", one, **choices)
        assert len(measured) == 3 * number
    check_fit(tmp_path / "bank", new.take(items=np.arange(24)))
    assert check_fit(tmp_path / "bank", new).table.equals(first.table)
    assert len(measured) == 3 * (len(tries) + 2)


def test_leaked_items_are_found_beside_others_and_the_rise_is_told(suspected):
    plain = check_fit(bank(), clean(), groups={"public": suspected})
    raised = check_fit(bank(), leaked(clean(), suspected), groups={"public": suspected})
    before, after = (found.groups.filter(group="public") for found in (plain, raised))
    assert before["model_id"].to_list() == after["model_id"].to_list() == clean().model_ids
    np.testing.assert_allclose(after["expected"], before["expected"])  # from the other items alone
    assert (after["mean"] == 1.0).all()
    assert (after["p_value"] <= before["p_value"]).all()
    assert (after["verdict"] == "higher").mean() >= 0.5
    assert not raised.suits
    assert any("public" in sentence and "No interval covers that" in sentence for sentence in raised.verdicts)
    assert (any("a rise of" in hint for hint in raised.hints), ONE_RUN in raised.hints) == (True, False)
    # a reference alone makes all others suspected
    private, answers = [item for item in clean().item_ids if item not in set(suspected)], leaked(clean(), suspected)
    by_name = check_fit(bank(), answers, groups={"all others": suspected}, reference=private)
    assert check_fit(bank(), answers, reference=private).groups.equals(by_name.groups)


def worse(n_models, seed):
    rng, parameters = np.random.default_rng(seed), bank().parameters
    chance = probability(parameters, rng.normal(size=(n_models, parameters.n_dims)) - 0.7)
    return ResponseMatrix.create((rng.random(chance.shape) < chance).astype(float), items=bank().responses.items)


def test_a_uniform_shift_is_lower_ability_and_is_not_claimed():
    """Models of the bank's item model, all of them a standard deviation worse; nor does that move an item."""
    found = check_fit(bank(), worse(40, 8))
    assert found.table.filter(verdict="misfits").height <= 8
    assert SHIFT in found.hints
    assert len(item_drift(bank(), worse(30, 3)).drifted) <= 10


def test_a_lost_scenario_is_named_with_the_answers_against_expectation():
    failed = having(clean(), (0, (clean().items["scenario"] == "math").to_numpy()), 0.0)
    found = check_fit(bank(), failed)
    row = found.table.row(0, named=True)
    assert ("math" in row["groups"], row["verdict"]) == (True, "misfits")
    wrong = row["wrong_against_expectation"]
    assert "math" in {one.split("/")[0] for one in wrong}
    assert (failed.responses[0, failed.item_indices(wrong)] == 0.0).all()
    (sentence,) = (one for one in found.found if one.startswith(f"{failed.model_ids[0]}:"))
    assert ("math" in sentence, "points lower" in sentence) == (True, True)
    assert f"(typicality {row['typicality']:.2f}, outfit {row['outfit']:.2f}, p {row['p_value']:.3f})" in sentence


def test_a_session_that_gets_worse_is_found_and_where():
    order = [bank().responses.item_ids[i] for i in np.random.default_rng(2).permutation(120)]
    spoilt = having(clean(), (0, clean().item_indices(order)[60:]), 0.0)
    name = spoilt.model_ids[0]
    found = check_fit(bank(), spoilt, order={name: order})
    assert found.table["model_id"].to_list() == spoilt.model_ids
    first, *others = found.table.select("order_p_value", "changed_from").rows()
    assert first[0] < 0.05
    assert 50 <= first[1] <= 70
    assert set(others) == {(None, None)}
    assert any(one.startswith(f"{name}: answers get worse") for one in found.found)


def test_adaptive_sessions_are_compared_with_such_sessions_of_the_banks_models(monkeypatch):
    monkeypatch.setattr("itembank.sessions.preparation.MOST_MODELS", 25)
    spec = SessionSpec(interval="model-based")
    pool, rng = prepare_sessions(bank(), spec), np.random.default_rng(1)
    orders, values = {}, np.full(clean(2).responses.shape, np.nan)
    for row, name in enumerate(clean(2).model_ids):
        session = AdaptiveSession(pool, model_id=name)
        for number in range(60):
            (item,) = session.ask()
            column, spoilt = clean(2).item_indices([item])[0], row == 1 and number >= 30 and rng.random() < 0.9
            values[row, column] = 0.0 if spoilt else clean(2).responses[row, column]
            session.tell(item, values[row, column])
            orders.setdefault(name, []).append(item)
    answered = dataclasses.replace(clean(2), responses=values)
    found = check_fit(bank(), answered, order=orders, sessions=dict.fromkeys(orders, spec))
    fits = found.table
    assert fits["n_past"].to_list() == [25, 25]
    assert fits["order_p_value"][1] <= fits["order_p_value"][0]
    assert any(one.startswith(f"{answered.model_ids[1]}: answers get worse") for one in found.found)
    assert 20 <= fits["changed_from"][1] <= 40
    same_items = check_fit(bank(), answered, order=orders).table
    assert (same_items["n_past"].to_list(), same_items["misfit"].to_list()) == ([60, 60], fits["misfit"].to_list())


def test_models_with_other_answers_are_each_compared_with_their_own_items():
    part = having(having(clean(), (0, slice(None, None, 2))), (1, slice(None, None, 3)))
    together, alone = check_fit(bank(), part), check_fit(bank(), part.take(models=np.array([1])))
    assert together.table[1].equals(alone.table)
    assert together.groups.filter(model_id=part.model_ids[1]).equals(alone.groups)
    assert together.table["n_items"][:3].to_list() == [60, 80, 120]


def test_changed_contents_are_left_out_and_other_conditions_told():
    items = bank().responses.items.with_columns(content_hash=pl.lit("old"), task_version=pl.lit("1"))
    models = bank().responses.models.with_columns(lm_eval_version=pl.lit("0.4.2"))
    known = dataclasses.replace(bank().responses, items=items, models=models)
    content = pl.when(pl.int_range(pl.len()) < 7).then(pl.lit("new")).otherwise("content_hash")
    items = items.with_columns(content_hash=content, task_version=pl.lit("2"))
    models = clean().models.with_columns(lm_eval_version=pl.lit("0.4.9"))
    changed = dataclasses.replace(clean(), items=items, models=models)
    found = check_fit(dataclasses.replace(bank(), responses=known), changed)
    assert [change.split(" ")[0] for change in found.changes] == ["the", "task_version", "lm_eval_version"]
    assert ("7 of 120 items" in found.changes[0], "'0.4.9'" in found.changes[2]) == (True, True)
    assert (set(found.table["n_items"]), found.suits) == ({113}, False)
    with pytest.raises(DataError, match="at least one item must have the content"):
        check_fit(dataclasses.replace(bank(), responses=known), changed.take(items=np.arange(7)))


def test_probabilities_beside_right_and_wrong_answers_are_refused():
    matrix = having(clean(), (2, 7), 0.5)
    with pytest.raises(DataError, match=rf"1 of 120 items have others: '{matrix.item_ids[7]}'"):
        check_fit(bank(), matrix)


def test_few_models_cannot_tell_and_say_so():
    small = make_bank(n_models=14, n_items=40, n_dims=1, seed=6)
    found = check_fit(small, small.responses.take(models=np.array([0, 1])))
    assert any("none can be called unusual" in hint for hint in found.hints)
    assert (found.verdicts, "misfits" in found.table["verdict"]) == ((), False)
    with pytest.raises(DataError, match="takes at least 10, and bank"):
        check_fit(make_bank(n_models=9), small.responses)


@pytest.mark.parametrize(
    ("groups", "reference", "message"),
    [
        ({"all": "every"}, None, "not all"),
        ({"none": ()}, None, "not all"),
        ({"a": ("math/0", "code/1")}, ("math/0",), "must share no item"),
        ({"a": "math/0"}, None, "a sequence of item ids"),
        ({"a": ("nowhere",)}, None, "group 'a'"),
    ],
)
def test_groups_are_checked(groups, reference, message):
    groups = {name: bank().responses.item_ids if ids == "every" else ids for name, ids in groups.items()}
    with pytest.raises((ParameterError, DataError), match=message):
        check_fit(bank(), clean(), groups=groups, reference=reference)


def test_bank_models_with_gaps_count_where_they_answered_most():
    gappy = having(bank(), np.random.default_rng(1).random((60, 120)) < 0.02)
    gappy = having(dataclasses.replace(gappy, bank_id="gaps"), (slice(5), slice(60)))
    assert set(check_fit(gappy, clean()).table["n_past"]) == {55}


def test_listed_items_that_count_no_more_are_left_out_and_a_group_that_counts_no_more_at_all_is_refused():
    ids = bank().item_ids
    fewer = retire(bank(), ids[:2], reason="wrong key")
    with pytest.warns(DataWarning, match=r"2 of 5 items of group 'public' no longer count") as caught:
        public = item_groups(fewer, {"public": ids[:5]}, ids[5:9])[-1]
    assert (len(caught), np.flatnonzero(public.is_member).tolist()) == (1, [0, 1, 2])
    assert np.flatnonzero(public.is_reference).tolist() == [3, 4, 5, 6]
    with pytest.warns(DataWarning, match=r"1 of 3 items of the reference"):
        assert item_groups(fewer, {}, ids[1:4])[-1].is_reference.sum() == 2
    with pytest.warns(DataWarning, match="2 of 2 items"), pytest.raises(ParameterError, match="not all, got 0"):
        item_groups(fewer, {"public": ids[:2]}, None)


def test_sums_by_hand_have_students_distribution():
    some, none = np.array([[0.5], [0.0]]), np.zeros((4, 0))
    past = PastResiduals(some, np.full((2, 1, 1), 1 / 8), np.array([2.0, np.nan]), np.array([12, 3]), np.ones(2))
    deviation = np.array([[1.5, 1.0], [2.5, 1.0], [3.5, 1.0], [np.nan, 1.0]])
    z, n_models, _ = standardised_sums(deviation, past, none)
    t = (1.0 + 2.0 + 3.0) / (2.0 * np.sqrt(3 * (1 + 3 / 8)))
    assert_allclose(z, [norm.isf(student.sf(t, 11)), np.nan])
    assert n_models.tolist() == [3, 4]
    opposite, _, _ = standardised_sums(1.0 - deviation, past, none)
    assert_allclose(opposite, -z)


@pytest.mark.parametrize("n_past", [10, 20, 50])
def test_z_of_a_regression_learnt_from_few_models_is_normal(n_past):
    rng, n_items, n_new = np.random.default_rng(n_past), 4000, 8
    x = np.column_stack([np.ones(n_past), rng.normal(size=n_past)])
    x[:, 1] = (x[:, 1] - x[:, 1].mean()) / x[:, 1].std()
    answers, hat = rng.normal(size=(n_past, n_items)), x @ np.linalg.pinv(x)
    left_out = (answers - hat @ answers) / (1.0 - np.diag(hat))[:, None]
    past = PastResiduals.of(left_out, x[:, 1:], np.zeros(n_items), np.ones(n_items))
    new = np.column_stack([np.ones(n_new), 1.2 + 0.3 * rng.normal(size=n_new)])
    deviation = rng.normal(size=(n_new, n_items)) - new @ np.linalg.pinv(x) @ answers
    z, _, _ = standardised_sums(deviation, past, new[:, 1:])
    assert np.mean(np.abs(z) > 2.5) == pytest.approx(2 * norm.sf(2.5), abs=0.008)
    assert z.std() == pytest.approx(1.0, abs=0.05)


def test_z_of_weaker_models_is_normal_also_where_what_is_expected_is_curved():
    rng, n_past, n_items, n_new = np.random.default_rng(0), 200, 4000, 30
    curve, past_factor = 0.3 * rng.normal(size=n_items), rng.normal(size=(n_past, 1))
    new_factor = -1.5 + 0.5 * rng.normal(size=(n_new, 1))
    old, new = (curve * (f**2 - 1.0) + rng.normal(size=(f.size, n_items)) for f in (past_factor, new_factor))
    past = PastResiduals.of(old, past_factor, np.zeros(n_items), np.ones(n_items))
    z, _, _ = standardised_sums(new, past, new_factor)
    assert abs(z.mean()) < 0.1
    assert z.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("n_new", [5, 30])
def test_by_chance_as_many_items_are_marked_as_normal_deviates_are_beyond_the_bound(n_new):
    """Also where as many new models are examined as there are past ones, whose residuals sum to nothing."""
    rng, n_items = np.random.default_rng(n_new), 3000
    residuals, seen = rng.normal(size=(30, n_items)), np.ones((n_new, n_items), dtype=bool)
    none = np.zeros((30, 0))
    known = residuals, residuals, none, np.zeros(n_items), np.ones(n_items)
    found = marked_by_chance(*known, observed=seen, n_draws=40)
    assert found / n_items == pytest.approx(2 * norm.sf(2.5), abs=0.004)


def test_past_residuals_are_means_and_spreads_where_enough_is_known():
    residuals = np.column_stack([np.arange(12.0), np.r_[np.full(5, np.nan), np.arange(7.0)], np.ones(12)])
    past = PastResiduals.of(residuals, np.zeros((12, 0)), np.zeros(3), np.ones(3))
    assert_allclose(past.coefficients[:, 0], [5.5, np.nan, np.nan])
    assert_allclose(past.spread, [np.std(np.arange(12.0), ddof=1), np.nan, np.nan])


def test_few_models_that_all_solve_an_item_do_not_make_it_sure():
    """By hand: twelve solved it, three of five new models fail it."""
    assert_allclose(surest_variance(np.array([12, 12]), np.array([1.0, 0.1])), 1 / 14 * 13 / 14 * np.array([1.0, 0.1]))
    past = PastResiduals.of(np.r_[np.zeros(11), 1e-3][:, None], np.zeros((12, 0)), np.ones(1), np.ones(1))
    assert past.spread == [1.0]
    model = FactorModel(np.array([1.0]), np.zeros((1, 1)), np.array([1e-6]))
    found = find_drift(model, np.arange(1), np.array([[0.0], [0.0], [0.0], [1.0], [1.0]]), past, n_learnt=0)
    deviation = -3 / np.sqrt(1 / 14 * 13 / 14) - 5e-3 / 12
    assert_allclose(found.z, norm.isf(student.sf(deviation / np.sqrt(5 * (1 + 5 / 12)), 11)), rtol=1e-6)
    scatter = np.var([0, 0, 0, 1, 1], ddof=1) / (1 / 14 * 13 / 14)  # which the error of what was learnt has not
    assert_allclose(found.scatter, np.sqrt((scatter + 5 / 12) / (1 + 5 / 12)))


def test_items_are_judged_by_those_that_are_not_marked():
    rng, n, n_models = np.random.default_rng(0), 60, 30
    model = FactorModel(np.full(n, 0.6), np.full((n, 1), 0.2), np.full(n, 0.2))
    answers = 0.6 + 0.2 * rng.normal(size=(n_models, 1)) + np.sqrt(0.2) * rng.normal(size=(n_models, n))
    answers[:, :8] -= 0.8
    none = np.zeros((n, 3)), np.full((n, 3, 3), 1e-9)
    past = PastResiduals(*none, np.ones(n), np.full(n, 10_000), np.ones(n))
    found = find_drift(model, np.arange(n), answers, past, n_learnt=1)
    assert found.is_marked[:8].all()
    assert found.is_marked[8:].sum() <= 2
    alone = find_drift(model, np.arange(8, n), answers[:, 8:], PastResiduals(*(one[8:] for one in past)), n_learnt=1)
    np.testing.assert_array_equal(found.is_marked[8:], alone.is_marked)
    assert_allclose(found.z[8:], alone.z)


def test_answers_of_ten_attempts_have_a_tenth_of_the_variance_of_one():
    rng, p = np.random.default_rng(0), np.tile(np.linspace(0.2, 0.8, 40), (500, 1))
    answers = np.where(np.arange(40) < 20, rng.binomial(1, p), rng.binomial(10, p) / 10)
    answers[0] = np.nan
    assert_allclose(grains(answers - p, answers, np.arange(40) // 20)[[0, -1]], [1.0, 0.1], rtol=0.05)
    assert_allclose(grains(np.zeros((3, 2)), np.ones((3, 2)), np.arange(2)), 1.0)


def test_three_models_show_drift_of_graded_answers_and_not_by_one_odd_answer_of_right_or_wrong_ones():
    n = 40
    model = FactorModel(np.full(n, 0.6), np.zeros((n, 0)), np.full(n, 0.01))
    answers = 0.6 + 0.1 * np.random.default_rng(0).normal(size=(3, n))
    answers[:, 0] = 0.85
    for grain, expected in ((0.04, 1), (1.0, 0)):
        flat = np.zeros((n, 1)), np.full((n, 1, 1), 1e-4)
        past = PastResiduals(*flat, np.ones(n), np.full(n, 10_000), np.full(n, grain))
        found = find_drift(model, np.arange(n), answers, past, n_learnt=0)
        assert (found.is_marked[0], found.is_marked.sum() <= 2) == (expected, True)


@pytest.fixture(scope="module")
def many():
    return clean(30, 7)


def failing(matrix, columns):
    return having(matrix, (slice(None), columns), 0.0)


def test_planted_drift_is_found_and_little_else(many):
    easy = np.argsort(-many.responses.mean(axis=0))[:6]
    found = item_drift(bank(), failing(many, easy))
    planted, marked = {many.item_ids[i] for i in easy}, {one.item_id: one for one in found.drifted}
    assert planted <= set(marked)
    assert len(marked) <= 12
    assert all(marked[item].difference < -0.2 and marked[item].z < -2.5 for item in planted)
    assert ("itembank bank retire" in found.verdicts[0], found.is_limited) == (True, False)


def test_past_models_with_holes_count(many):
    holes = np.random.default_rng(0).random(bank().responses.responses.shape) < 0.3
    holed = dataclasses.replace(having(bank(), holes), bank_id="holed")
    easy = np.argsort(-many.responses.mean(axis=0))[:6]
    found = item_drift(holed, failing(many, easy))
    assert len(found.items) >= 100
    assert {many.item_ids[i] for i in easy} <= {one.item_id for one in found.drifted}
    assert len(found.drifted) <= 14
    assert 0.4 <= found.by_chance <= 4.0


def test_clean_models_mark_about_as_many_items_as_chance(many):
    found = item_drift(bank(), many)
    assert len(found.items) >= 100
    assert len(found.drifted) <= 9
    assert 0.5 <= found.by_chance <= 4.0
    assert f"(about {found.by_chance:.0f} by chance for models like past ones)" in found.verdicts[0]


@pytest.mark.parametrize(
    ("n_marked", "by_chance"), [(0, 0.0), (1, 0.0), (1, 0.3), (2, 0.3), (3, 1.0), (4, 1.0), (30, 20.0)]
)
def test_a_marked_item_is_beyond_chance_only_if_so_many_are_rare(n_marked, by_chance):
    table = pl.DataFrame({"item_id": [f"q{k}" for k in range(n_marked)], "verdict": ["easier"] * n_marked})
    assert ItemDrift("bank", 10, "", table, by_chance, is_limited=False).is_beyond_chance is (
        (n_marked, by_chance) in {(1, 0.0), (2, 0.3), (4, 1.0)}
    )


def test_no_more_than_a_fifth_is_marked_and_that_is_said(many):
    half = np.argsort(-many.responses.mean(axis=0))[:50]
    found = item_drift(bank(), failing(many, half))
    assert found.is_limited
    assert len(found.drifted) <= 24
    assert "the run or the models changed" in found.verdicts[0]
    checked = check_models(bank(), failing(many, half), only="drift")
    assert checked.suits
    assert checked.sentence.startswith("Nothing but drift was found")
    assert check_models(bank(), many, only="drift").sentence.startswith("Nothing was found")


def test_no_item_drifts_by_more_than_all_points_and_one_odd_answer_moves_none(many):
    # copies of one model that solves all but the easiest item, of which more than all of it is expected
    found = item_drift(bank(), failing(having(many, ..., 1.0), [int(np.argmax(many.responses.mean(axis=0)))]))
    assert min(one.difference for one in found.items) == -1.0
    # an item that every model of the bank solves, and one new model does not
    known = dataclasses.replace(having(bank(), (slice(None), 0), 1.0), bank_id="easy")
    found = item_drift(known, having(many, (slice(None), 0), np.arange(30) > 0))
    assert many.item_ids[0] not in {one.item_id for one in found.drifted}


def test_only_models_since_a_day_count(many):
    days = [datetime.date(2025, 1, 1) + datetime.timedelta(days=k) for k in range(30)]
    by_type, as_text = (
        many.with_tables(models=many.models.with_columns(released=pl.Series(some))) for some in (days, map(str, days))
    )
    expected = item_drift(bank(), many.take(models=np.arange(10, 30))).rows()
    for given in (by_type, as_text):
        found = item_drift(bank(), given, since="2025-01-11")
        assert (found.rows(), found.n_models, found.since) == (expected, 20, "2025-01-11")
    twice = by_type.with_tables(models=by_type.models.with_columns(seen="released"))
    for choices in ({}, {"date_column": "seen"}):  # by the clearest name
        assert item_drift(bank(), twice, since="2025-01-11", **choices).rows() == expected
    for given, choices, error, says in (
        (by_type, {"since": "2026-01-01"}, DataError, "the newest is of 2025-01-30"),
        (by_type, {"since": "January"}, ParameterError, "YYYY-MM-DD"),
        (many, {"since": "2025-01-11"}, ParameterError, "got none among 'model_id'"),
        (twice, {"since": "2025-01-11", "date_column": "noise"}, ParameterError, "got noise among"),
    ):
        with pytest.raises(error, match=says):
            item_drift(bank(), given, **choices)


def test_graded_answers_beside_right_and_wrong_ones_are_refused_and_two_models_examine_nothing(many):
    with pytest.raises(DataError, match=r"right or wrong .* 120 of 120 items have others"):
        item_drift(bank(), having(many, ..., np.clip(many.responses, 0.3, 1.0)))
    found = item_drift(bank(), many.take(models=np.arange(2)))
    assert (found.items, "answered by three of the 2 models and by 10 past models" in found.verdicts[0]) == ((), True)
