"""Models compared by their answers alone: against scipy, over models that are equal, and with gaps."""

import warnings

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_rel

import itembank as ib
from itembank.comparison.compare import compare
from itembank.comparison.difference_tests import holm
from itembank.comparison.pairs import model_pairs
from itembank.comparison.without_bank import joined
from itembank.errors import DataError, ParameterError
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank
from tests.estimation.simulated import held


def boards(rng, abilities, n_items=200, *, attempts=1):
    """Answers of models of these abilities to items of one kind, as responses of so many attempts."""
    chance = 1.0 / (1.0 + np.exp(rng.normal(size=n_items) - np.asarray(abilities)[:, None]))
    return ResponseMatrix.create(rng.binomial(attempts, chance) / attempts)


def test_pairs_are_paired_t_tests_of_scipy(rng):
    """Of graded responses exactly; of right and wrong ones, whose variance is Tango's, to within a few percent."""
    matrix = boards(rng, [0.0, 0.3, 0.9, 1.0], attempts=10)
    found, rows, p = compare(matrix), compare(matrix).rows(), []
    for row, first, second in zip(rows, *model_pairs(4), strict=True):
        test = ttest_rel(matrix.responses[second], matrix.responses[first])
        ends = test.confidence_interval(0.95)
        assert (row["low"], row["high"], row["p_value"]) == pytest.approx((ends.low, ends.high, test.pvalue))
        assert row["paired_t_p"] == pytest.approx(test.pvalue)
        p.append(test.pvalue)
    np.testing.assert_allclose(found.tests.p_holm, holm(np.array(p)[:, None]))
    binary = boards(rng, [0.0, 0.3], n_items=2000)
    (row,), test = compare(binary).rows(), ttest_rel(binary.responses[1], binary.responses[0])
    assert row["p_value"] == pytest.approx(test.pvalue, rel=0.15)
    assert row["low"] == pytest.approx(test.confidence_interval(0.95).low, rel=0.02)


def test_places_groups_and_intervals_say_the_same(rng):
    for _ in range(20):
        found = compare(boards(rng, rng.normal(scale=0.5, size=9), n_items=150))
        clear, difference = found.is_clear[:, 0], found.difference.value[:, 0]
        low, high = found.tests.joint_low[:, 0], found.tests.joint_high[:, 0]
        np.testing.assert_array_equal(clear, (low > 0.0) | (high < 0.0))
        assert np.all(low <= found.difference.low[:, 0] + 1e-9)
        assert np.all(high >= found.difference.high[:, 0] - 1e-9)
        first, second = model_pairs(9)
        wins = np.zeros((9, 9), dtype=bool)
        wins[second, first], wins[first, second] = clear & (difference > 0.0), clear & (difference < 0.0)
        rows = found.ranking.rows()
        for row in rows:
            k = found.model_ids.index(row["model_id"])
            assert (row["rank_low"], row["rank_high"]) == (1 + wins[:, k].sum(), 9 - wins[k].sum())
            assert row["rank_low"] <= row["rank"] <= row["rank_high"]
            assert (row["group"] == 1) == (row["rank_low"] == 1)
            if row["group"] == 1 and row["rank"] > 1:
                assert row["behind_lower"] <= 0.0 <= row["behind_upper"]
        assert rows[0]["group"] == 1
        places = sorted({row["rank_low"] for row in rows})
        assert [row["group"] for row in rows] == [1 + places.index(row["rank_low"]) for row in rows]


@pytest.mark.parametrize("n_items", [30, 300])
def test_of_equal_models_one_is_rarely_called_better(n_items):
    """For any of ten pairs together, at 5 %: 400 boards of five models of one ability."""
    rng = np.random.default_rng(n_items)
    wrong = np.mean([compare(boards(rng, np.zeros(5), n_items)).is_clear.any() for _ in range(400)])
    assert wrong < 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 400)


def test_full_runs_leave_open_what_other_questions_would_show(rng):
    """Intervals of other questions of the kind cover the true difference as often as they say; this run is exact."""
    inside = []
    for _ in range(300):
        matrix = boards(rng, [0.2, 0.5], n_items=100)
        found, nodes = compare(matrix).difference, rng.normal(size=20_000)
        truth = np.mean(1.0 / (1.0 + np.exp(nodes - 0.5)) - 1.0 / (1.0 + np.exp(nodes - 0.2)))
        inside.append(held(found, truth)[0, 0])
    assert abs(np.mean(inside) - 0.95) < 2.5 * np.sqrt(0.05 * 0.95 / 300)
    exact = compare(matrix, estimand="run")
    assert exact.is_exact
    ends = exact.difference.low[0, 0], exact.difference.high[0, 0]
    assert ends == pytest.approx((np.diff(matrix.responses.mean(axis=1))[0],) * 2)


def test_models_with_gaps_are_compared_on_what_both_answered(rng):
    """And ranked by that: the weaker of two was asked easier items, so that its own mean is the larger."""
    chance = np.where(np.arange(400) < 200, 0.9, 0.3)
    values = (rng.random((3, 400)) < np.array([[0.0], [0.08], [0.04]]) + chance).astype(float)
    values[0, 250:], values[1, :150] = np.nan, np.nan
    found = compare(ResponseMatrix.create(values, model_ids=["weak", "strong", "middle"]))
    assert np.nanmean(values[0]) > np.nanmean(values[1])
    assert [row["model_id"] for row in found.ranking.rows()] == ["strong", "middle", "weak"]
    row = found.rows()[0]
    assert (row["n_shared_items"], row["n_items_a"], row["n_items_b"]) == (100, 250, 250)
    assert row["difference"] == pytest.approx(np.nanmean(values[1] - values[0]))
    assert row["note"] == "compared on 100 items that both answered, of 250"
    assert found.notes == ("each pair is compared on the items that both answered, 100 to 250",)
    assert found.ranking.score[:, 0] @ (~np.isnan(values)).sum(axis=1) == pytest.approx(np.nansum(values))


@pytest.mark.parametrize("n_left_out", [60, 160])
def test_of_this_run_the_items_of_one_model_are_predicted_from_those_of_the_other(rng, n_left_out):
    """By Cochran's regression estimator (1977, ch. 7) over the fuller run, whichever of the two is named first."""
    values = (rng.random((2, 200)) < np.linspace(0.2, 0.9, 200)).astype(float)
    values[0, :n_left_out] = np.nan  # the harder ones
    y, d = values[1], (values[0] - values[1])[n_left_out:]
    x = np.column_stack([np.ones(200), y])
    slopes = np.linalg.solve(x[n_left_out:].T @ x[n_left_out:] + np.diag([0.0, 1.0]), x[n_left_out:].T @ d)
    expected = (d.sum() + (x[:n_left_out] @ slopes).sum()) / 200
    for order, sign in (([1, 0], 1.0), ([0, 1], -1.0)):
        (row,) = compare(ResponseMatrix.create(values[order]), estimand="run").rows()
        assert row["difference"] == pytest.approx(sign * expected)


def test_files_are_put_together_by_their_items(tmp_path):
    """A model goes on in another file; the same items again are another run."""
    for name, rows in {
        "a": "m,q1,1\nm,q2,0\nm,q3,1",
        "b": "m,q4,1\nn,q1,0\nn,q2,0\nn,q3,1\nn,q4,1",
        "again": "m,q1,0\nm,q2,0\nm,q3,1\nm,q4,1",
    }.items():
        (tmp_path / f"{name}.csv").write_text(f"model_id,item_id,response\n{rows}\n", encoding="utf-8")
    a, b, again = (str(tmp_path / f"{name}.csv") for name in ("a", "b", "again"))
    found = ib.compare(a, b)
    assert found.model_ids == ("m", "n")
    assert found.difference.value[0, 0] == pytest.approx(-0.25)
    assert ib.compare(a, b, again).model_ids == ("m (1)", "n", "m (2)")
    assert ib.compare([a, b]).rows() == found.rows()


@pytest.mark.parametrize(
    ("arguments", "choices", "error", "text"),
    [
        ((), {}, ParameterError, "results to compare must be given"),
        (("m",), {}, ParameterError, "at least two models"),
        (("mn",), {"method": "stacked"}, ParameterError, "without a bank the method must be 'paired'"),
        (("mn",), {"ignore_unknown": True}, ParameterError, "no bank is given"),
        (("mn",), {"target": "law"}, ParameterError, "'law'"),
        (("mn",), {"estimand": "repeated"}, DataError, "questions like these"),
        (("m", "x"), {}, DataError, "1 of 1 pairs share fewer than 2: 'm and x'"),
        (("m", "changed"), {}, DataError, "got 2 with another content"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, choices, error, text):
    given = []
    for name in arguments:
        models, items = ["m", "n"] if name == "mn" else [name], ["b", "c"] if name == "x" else ["a", "b"]
        answers = ResponseMatrix.create(np.eye(2)[: len(models)], model_ids=models, item_ids=items)
        content = pl.lit("new" if name == "changed" else "old")
        given.append(answers.with_tables(items=answers.items.with_columns(content_hash=content)))
    with pytest.raises(error, match=text):
        compare(*given, **choices)


@pytest.mark.parametrize(
    ("n_worse", "n_better", "words"),
    [
        (50, 58, "No sure difference: b less a is +1.0 points"),
        (0, 6, "b is 0.75 points better than a"),
        (80, 50, "worse"),
    ],
)
def test_the_sentence_says_whether_the_interval_leaves_out_zero(n_worse, n_better, words):
    values = np.zeros((2, 800))
    values[0, :n_worse] = values[1, n_worse : n_worse + n_better] = 1.0
    assert words in compare(ResponseMatrix.create(values, model_ids=["a", "b"])).sentence


TIME_OUT = 3
NAMES = ("low", "middle", "high")


def models():
    """Answers of three models to 300 items, and which of them were lost."""
    rng = np.random.default_rng(0)
    answers = (rng.random((3, 300)) < np.array([[0.3], [0.5], [0.8]])).astype(float)
    lost = np.zeros(answers.shape, dtype=bool)
    lost[1, :20] = lost[2, 10:60] = True
    return answers, lost


def with_losses(answers, lost, **more):
    n = lost.astype(np.int64)
    told = LostAnswers(n, n * TIME_OUT)
    return ResponseMatrix.create(np.where(lost, np.nan, answers), model_ids=NAMES, lost=told, **more)


def by_hand(answers, lost, values, **more):
    """Give each model's lost answers a value."""
    return ResponseMatrix.create(np.where(lost, np.array(values)[:, None], answers), model_ids=NAMES, **more)


@pytest.mark.parametrize("estimand", ["questions", "run"])
def test_the_policies_give_what_answers_by_hand_give(estimand):
    answers, lost = models()
    plain, wrong = (ib.compare(by_hand(answers, lost, [one] * 3), estimand=estimand) for one in (np.nan, 0.0))
    given = with_losses(answers, lost)
    found = {errors: ib.compare(given, errors=errors, estimand=estimand) for errors in ("missing", "wrong", "bounds")}
    for errors, other in (("missing", plain), ("wrong", wrong)):
        np.testing.assert_array_equal(found[errors].difference, other.difference)
        np.testing.assert_array_equal(found[errors].tests.p_holm, other.tests.p_holm)
    for one in found.values():
        np.testing.assert_array_equal(one.lost.if_wrong, wrong.difference.value)
        assert one.lost.n.tolist() == [0, 20, 50]
    bounds = found["bounds"]
    np.testing.assert_array_equal(bounds.difference.value, plain.difference.value)
    for k, (a, b) in enumerate(zip(bounds.pairs.first, bounds.pairs.second, strict=True)):
        values = np.full((2, 3), 0.5)
        values[:, a], values[:, b] = (1.0, 0.0), (0.0, 1.0)
        worst, best = (ib.compare(by_hand(answers, lost, one), estimand=estimand).difference for one in values.tolist())
        assert bounds.difference.low[k, 0] == pytest.approx(worst.low[k, 0])
        assert bounds.difference.high[k, 0] == pytest.approx(best.high[k, 0])


def test_bounds_are_clear_only_where_both_ends_are():
    answers, lost = models()
    found = ib.compare(with_losses(answers, lost), errors="bounds")
    tests, difference = found.tests, found.difference
    includes_zero = (difference.low <= 0.0) & (difference.high >= 0.0)
    np.testing.assert_array_equal(tests.p_value < 0.05, ~includes_zero)
    np.testing.assert_array_equal(tests.p_holm < 0.05, (tests.joint_low > 0.0) | (tests.joint_high < 0.0))
    same = ib.compare(with_losses(answers[[1, 1, 1]], lost), errors="bounds")
    assert (same.tests.p_value == 1.0).all()
    assert (same.tests.probability_b_better == 0.5).all()
    assert set(same.ranking.group.ravel()) == {1}


def test_records_and_notes_say_them():
    answers, lost = models()
    found = ib.compare(with_losses(answers, lost))
    assert found.notes[0].startswith("high lost 50 answers (50 time-outs), middle lost 20 answers (20 time-outs)")
    assert "They count as missing; the field if_lost_are_wrong has the differences" in found.notes[0]
    note, *_ = ib.compare(with_losses(answers, lost).take(models=np.arange(2))).notes
    points = 100.0 * (answers[1, 20:].sum() - answers[0].sum()) / 300.0
    assert f"They count as missing; as wrong, the difference is {points:+.1f} points" in note
    row = found.rows()[0]
    assert (row["n_lost_a"], row["n_lost_b"], row["errors"]) == (0, 20, "missing")
    assert row["if_lost_are_wrong"] == pytest.approx(float(found.lost.if_wrong[0, 0]))
    assert "20 time-outs" in row["note"]
    assert {one["model_id"]: one["n_lost"] for one in found.ranking_rows()} == {"low": 0, "middle": 20, "high": 50}
    none = ib.compare(by_hand(answers, lost, [0.0] * 3)).rows()[0]
    assert (none["n_lost_a"], none["errors"], none["if_lost_are_wrong"]) == (0, None, None)


def test_files_of_one_model_each_keep_what_they_lost():
    answers, lost = models()
    whole = with_losses(answers, lost)
    parts = [whole.take(models=np.array([row])) for row in range(3)]
    np.testing.assert_array_equal(joined(parts).lost.n, lost)
    assert joined(parts[:1] * 2).lost is None
    with pytest.raises(ib.errors.DataError, match="got missing and wrong"):
        joined([parts[1], parts[2].with_errors("wrong")])
    assert joined([parts[1], parts[2].with_errors("wrong")], "bounds").lost.errors == "bounds"


@pytest.mark.parametrize("method", ["paired", "p-irt"])
def test_a_bank_counts_them_alike(method, tmp_path):
    bank = make_bank(n_models=24)
    answers, lost = bank.responses.responses[:3], np.zeros((3, 30), dtype=bool)
    lost[1, :4] = True
    items, how = {"items": bank.responses.items}, {"method": method, "estimand": "run"}
    given = with_losses(answers, lost, **items)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ib.errors.DataWarning)
        wrong = ib.compare(bank, by_hand(answers, lost, [0.0] * 3, **items), **how)
        found, bounds = (ib.compare(bank, given, errors=errors, **how) for errors in ("wrong", "bounds"))
        ib.write_responses(given, tmp_path / "given.parquet")
        listed = ib.compare(bank, [tmp_path / "given.parquet"], errors="wrong", **how)
    np.testing.assert_array_equal(listed.difference.value, found.difference.value)
    np.testing.assert_allclose(found.difference.value, wrong.difference.value)
    assert (bounds.difference.low <= wrong.difference.low + 1e-9).all()
    assert bounds.lost.n.tolist() == [0, 4, 0]


def test_the_command_line_says_them(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    whole = with_losses(*models())
    for row, name in enumerate(NAMES):
        ib.write_responses(whole.take(models=np.array([row])), f"{name}.parquet")
    plain = run("compare", "middle.parquet", "high.parquet")
    assert "high lost 50 answers (50 time-outs), middle lost 20" in plain.err
    assert "--errors wrong or bounds" in plain.err
    wrong = run("compare", "middle.parquet", "high.parquet", "--errors", "wrong", "--format", "json")
    assert wrong.json["rows"][0]["errors"] == "wrong"
    bounds = run.ok("compare", *(f"{name}.parquet" for name in NAMES), "--errors", "bounds", "--ranking")
    assert "The intervals hold whichever of them were right" in bounds.err
