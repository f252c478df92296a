"""Fit of new models: the same typicality as estimates, planted leaks, shifts, sessions and changed runs."""

import dataclasses

import numpy as np
import polars as pl
import pytest

from itembank.auditing import fit_statistics
from itembank.auditing.person_fit import ONE_RUN, SHIFT, check_fit, item_groups
from itembank.bank.bank_files import save_bank
from itembank.errors import DataError, DataWarning, ParameterError
from itembank.estimation.estimate import estimate
from itembank.irt.bernoulli import probability
from itembank.living.notes import retire
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.preparation import prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from tests.auditing.panels import bank, clean
from tests.bank.banks import make_bank
from tests.estimation.simulated import new_models

pytestmark = pytest.mark.usefixtures("few_folds")


def with_answers(matrix, change):
    """Change a copy of the answers in place."""
    values = matrix.responses.copy()
    change(values)
    return dataclasses.replace(matrix, responses=values)


@pytest.fixture
def suspected():
    return bank().responses.item_ids[::4]


def leaked(matrix, item_ids):
    columns = matrix.item_indices(item_ids)

    def change(values):
        values[:, columns] = 1.0

    return with_answers(matrix, change)


def test_typicality_is_that_of_estimates():
    half = clean().take(items=np.arange(0, 120, 2))
    found, expected = check_fit(bank(), half), estimate(bank(), half, method="p-irt").typicality
    np.testing.assert_allclose(found.table["misfit"], expected.misfit)
    np.testing.assert_allclose(found.table["typicality"], expected.typicality)


def test_clean_models_fit():
    found = check_fit(bank(), clean(40, 5))
    assert found.table.filter(verdict="misfits").height <= 6  # of 40, at one in twenty and past models counted anew
    assert set(found.table["n_past"]) == {60}
    fits = found.table.filter(verdict="fits")
    fitting = dataclasses.replace(found, table=fits, found=())
    assert fitting.suits
    assert fitting.verdicts[0].endswith(": nothing unusual.")
    assert ONE_RUN in found.hints
    assert SHIFT in found.hints


def test_past_models_are_measured_once_for_their_items_and_groups(tmp_path, monkeypatch):
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path / "user"))
    save_bank(make_bank(), tmp_path / "bank")
    new, others = new_models(make_bank(), 2, 3), new_models(make_bank(), 2, 5)
    measured, plain = [], fit_statistics.statistics_by
    monkeypatch.setattr(fit_statistics, "statistics_by", lambda *args, **how: measured.append(1) or plain(*args, **how))
    first = check_fit(tmp_path / "bank", new)
    assert len(measured) == 3  # folds
    assert check_fit(tmp_path / "bank", new).table.equals(first.table)
    assert not check_fit(tmp_path / "bank", others).table.equals(first.table)
    assert len(measured) == 3
    one, ids = new.take(models=np.arange(1)), new.item_ids
    tries = (
        {"groups": {"some": ids[::4]}},
        {"groups": {"some": ids[1::4]}},
        {"groups": {"some": ids[1::4]}, "reference": ids[::4]},
        {"order": {one.model_ids[0]: ids}},
        {"order": {one.model_ids[0]: ids[::-1]}},
    )
    for number, choices in enumerate(tries, start=2):
        check_fit(tmp_path / "bank", one, **choices)
        assert len(measured) == 3 * number
    check_fit(tmp_path / "bank", new.take(items=np.arange(24)))
    assert len(measured) == 3 * (len(tries) + 2)
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
    assert any("a rise of" in hint for hint in raised.hints)
    assert ONE_RUN not in raised.hints


def test_a_reference_alone_makes_all_others_suspected(suspected):
    private = [item for item in bank().responses.item_ids if item not in set(suspected)]
    by_name = check_fit(bank(), leaked(clean(), suspected), groups={"all others": suspected}, reference=private)
    alone = check_fit(bank(), leaked(clean(), suspected), reference=private)
    assert alone.groups.equals(by_name.groups)


def test_a_uniform_shift_is_lower_ability_and_is_not_claimed():
    """Models of the bank's item model, all of them a standard deviation worse."""
    rng, parameters = np.random.default_rng(8), bank().parameters
    theta = rng.normal(size=(40, parameters.n_dims)) - 0.7
    values = (rng.random((40, 120)) < probability(parameters, theta)).astype(float)
    found = check_fit(bank(), ResponseMatrix.create(values, items=bank().responses.items))
    assert found.table.filter(verdict="misfits").height <= 8
    assert SHIFT in found.hints


def test_a_lost_scenario_is_named_with_the_answers_against_expectation():
    is_math = (clean().items["scenario"] == "math").to_numpy()

    def fail(values):
        values[0, is_math] = 0.0

    failed = with_answers(clean(), fail)
    found = check_fit(bank(), failed)
    row = found.table.row(0, named=True)
    assert "math" in row["groups"]
    assert row["verdict"] == "misfits"
    wrong = row["wrong_against_expectation"]
    assert "math" in {one.split("/")[0] for one in wrong}
    assert (failed.responses[0, failed.item_indices(wrong)] == 0.0).all()
    (sentence,) = (one for one in found.found if one.startswith(f"{failed.model_ids[0]}:"))
    assert "math" in sentence
    assert "points lower" in sentence
    assert f"(typicality {row['typicality']:.2f}, outfit {row['outfit']:.2f}, p {row['p_value']:.3f})" in sentence


def test_a_session_that_gets_worse_is_found_and_where():
    rng = np.random.default_rng(2)
    order = [bank().responses.item_ids[i] for i in rng.permutation(120)]
    columns = clean().item_indices(order)

    def degrade(values):
        values[0, columns[60:]] = 0.0

    spoilt = with_answers(clean(), degrade)
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
            column = clean(2).item_indices([item])[0]
            spoilt = row == 1 and number >= 30 and rng.random() < 0.9
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
    assert same_items["n_past"].to_list() == [60, 60]
    assert same_items["misfit"].to_list() == fits["misfit"].to_list()


def test_models_with_other_answers_are_each_compared_with_their_own_items():
    def drop(values):
        values[0, ::2] = np.nan
        values[1, ::3] = np.nan

    part = with_answers(clean(), drop)
    together = check_fit(bank(), part)
    alone = check_fit(bank(), part.take(models=np.array([1])))
    assert together.table[1].equals(alone.table)
    assert together.groups.filter(model_id=part.model_ids[1]).equals(alone.groups)
    assert together.table["n_items"][:3].to_list() == [60, 80, 120]


def test_changed_contents_are_left_out_and_other_conditions_told():
    items = bank().responses.items.with_columns(content_hash=pl.lit("old"), task_version=pl.lit("1"))
    models = bank().responses.models.with_columns(lm_eval_version=pl.lit("0.4.2"))
    known = dataclasses.replace(bank().responses, items=items, models=models)
    is_first = pl.int_range(pl.len()) < 7
    changed = dataclasses.replace(
        clean(),
        items=items.with_columns(
            content_hash=pl.when(is_first).then(pl.lit("new")).otherwise("content_hash"), task_version=pl.lit("2")
        ),
        models=clean().models.with_columns(lm_eval_version=pl.lit("0.4.9")),
    )
    found = check_fit(dataclasses.replace(bank(), responses=known), changed)
    assert [change.split(" ")[0] for change in found.changes] == ["the", "task_version", "lm_eval_version"]
    assert "7 of 120 items" in found.changes[0]
    assert "'0.4.9'" in found.changes[2]
    assert set(found.table["n_items"]) == {113}
    assert not found.suits
    nothing_left = changed.take(items=np.arange(7))
    with pytest.raises(DataError, match="at least one item must have the content"):
        check_fit(dataclasses.replace(bank(), responses=known), nothing_left)


def test_probabilities_beside_right_and_wrong_answers_are_refused():
    def one_is_graded(values):
        values[2, 7] = 0.5

    matrix = with_answers(clean(), one_is_graded)
    with pytest.raises(DataError, match=rf"1 of 120 items have others: '{matrix.item_ids[7]}'"):
        check_fit(bank(), matrix)


def test_few_models_cannot_tell_and_say_so():
    small = make_bank(n_models=14, n_items=40, n_dims=1, seed=6)
    found = check_fit(small, small.responses.take(models=np.array([0, 1])))
    assert any("none can be called unusual" in hint for hint in found.hints)
    assert found.verdicts == ()
    assert "misfits" not in found.table["verdict"]
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
    rng = np.random.default_rng(1)
    values = bank().responses.responses.copy()
    values[rng.random(values.shape) < 0.02] = np.nan
    values[:5, :60] = np.nan
    known = dataclasses.replace(bank().responses, responses=values)
    found = check_fit(dataclasses.replace(bank(), bank_id="gaps", responses=known), clean())
    assert set(found.table["n_past"]) == {55}


@pytest.fixture(scope="module")
def clean_bank():
    return retire(bank(), bank().item_ids[:2], reason="wrong key")


def test_listed_items_that_count_no_more_are_left_out(clean_bank):
    ids = bank().item_ids
    with pytest.warns(DataWarning, match=r"2 of 5 items of group 'public' no longer count") as caught:
        public = item_groups(clean_bank, {"public": ids[:5]}, ids[5:9])[-1]
    assert len(caught) == 1
    assert np.flatnonzero(public.is_member).tolist() == [0, 1, 2]
    assert np.flatnonzero(public.is_reference).tolist() == [3, 4, 5, 6]
    with pytest.warns(DataWarning, match=r"1 of 3 items of the reference"):
        assert item_groups(clean_bank, {}, ids[1:4])[-1].is_reference.sum() == 2


def test_a_group_that_counts_no_more_at_all_is_refused(clean_bank):
    with pytest.warns(DataWarning, match="2 of 2 items"), pytest.raises(ParameterError, match="not all, got 0"):
        item_groups(clean_bank, {"public": bank().item_ids[:2]}, None)
