"""Items audited: reasons, evidence and cautions; groups that differ; copies."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import chi2

from itembank.auditing import duplicates as kernels
from itembank.auditing import item_audit
from itembank.auditing.differential_items import ability_strata, benjamini_hochberg, mantel_haenszel_delta, score_test
from itembank.auditing.duplicates import NEAREST, SLIP, duplicate_pairs, with_residual_factors
from itembank.diagnostics import audit_items, differential_items, find_duplicates
from itembank.errors import DataError, ParameterError
from itembank.readers.builtin import load_builtin
from itembank.responses.responses import ResponseMatrix
from tests.auditing.panels import make_answers, make_faulty


@pytest.fixture(scope="module")
def audit():
    return audit_items(make_faulty())


def reasons_of(audit, number):
    return audit.table.filter(item_id=f"item-{number}").row(0, named=True)["reasons"]


def test_planted_faults_have_their_reasons(audit):
    faults = {6: "dead", 7: "saturated", 9: "duplicate"}
    assert sum("wrong-key" in (reasons_of(audit, j) or "") for j in range(1, 6)) >= 4
    assert all(fault in reasons_of(audit, number) for number, fault in faults.items())
    sound = audit.table.filter(~pl.col("item_id").is_in([f"item-{j}" for j in range(1, 10)]))
    assert sound.filter(pl.col("reasons").str.contains("wrong-key|best-fail|noise")).height <= 1


def test_items_that_nobody_or_everybody_solves_are_counted_and_not_flagged(audit):
    assert audit.counts["dead"] == audit.having(["dead"]).height >= 1
    assert (reasons_of(audit, 6), reasons_of(audit, 7)) == ("dead", "saturated")  # nothing else, however suspicious
    assert audit.flagged.select("reason", "evidence").null_count().row(0) == (0, 0)
    assert {"item-6", "item-7"}.isdisjoint(audit.flagged["item_id"])
    told = audit.to_dict()
    assert told["n_flagged"] == audit.flagged.height == len(audit.rows()) == audit.to_polars().height
    assert (told["n_dead"], told["n_saturated"]) == (audit.counts["dead"], audit.counts["saturated"])
    assert not {"dead", "saturated"} & set(told["flagged"])
    assert audit.said.startswith(f"{audit.flagged.height} of 120 items")


def test_evidence_is_a_sentence_with_numbers(audit):
    rows = {row["item_id"]: row for row in audit.table.to_dicts()}
    assert "none of 100 models is right" in rows["item-6"]["evidence"]
    assert rows["item-9"]["duplicate_of"] == "item-8"
    assert "models answer it as they answer item-8" in rows["item-9"]["evidence"]
    assert "another key explains the answers" in audit.having(["wrong-key"])["evidence"][0]
    assert all((row["evidence"] is None) == (row["reason"] is None) for row in rows.values())


def test_an_item_of_one_model_is_not_said_to_be_of_all():
    values, _ = make_answers(n_models=20, n_items=10)
    values[1:, :2], values[0, :2] = np.nan, [0.0, 1.0]
    told = audit_items(ResponseMatrix.create(values)).table.filter(n_models=1).sort("item_id")["evidence"].to_list()
    assert told == ["the one model that answered is wrong", "the one model that answered is right"]


def test_orders_put_the_largest_first_and_faults_before_sound_items(audit):
    assert audit.table["probability"].is_sorted(descending=True)
    assert audit_items(make_faulty(), duplicates=False, order="suspicion").table["suspicion"].is_sorted(descending=True)
    by_ratio = audit_items(make_faulty(), duplicates=False, order="key-ratio").table
    assert by_ratio["key_ratio"].is_sorted(descending=True)
    assert len(set(by_ratio["item_id"].head(5)) & {f"item-{j}" for j in range(1, 6)}) >= 4
    assert "duplicate_of" not in by_ratio.columns
    with pytest.raises(ParameterError, match="order must be one of"):
        audit_items(make_faulty(), order="mean")


def test_what_faults_look_like_is_learnt_from_items_known_to_be_bad():
    rng = np.random.default_rng(0)
    values, _ = make_answers(n_models=60, n_items=300, seed=9)
    is_bad = np.arange(300) % 10 == 0
    values[:, is_bad] = (1.0 - values[:, is_bad]) * (rng.random((60, 30)) < 0.4)
    matrix = ResponseMatrix.create(values, scenarios=[f"s{j % 3}" for j in range(300)])
    known = [f"item-{j + 1}" for j in np.flatnonzero(is_bad)]
    found = audit_items(matrix, known=known, duplicates=False)
    assert found.labels["n_bad"] == 30
    assert found.labels["area"] > 0.95
    share = pytest.approx(found.flagged["item_id"].is_in(known).mean(), abs=1e-12)
    assert found.labels["first"] == {found.flagged.height: share}
    assert found.labels["first"][found.flagged.height] > 0.75
    counts = np.histogram(found.table["probability"], (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0))[0]
    assert [one["n_items"] for one in found.labels["calibration"]] == counts[counts > 0].tolist()
    assert abs(found.table["probability"].sum() - 30) < 6
    with pytest.raises(DataError, match="item_id must be among the 300 known"):
        audit_items(matrix, known=[*known, "item-999"])
    with pytest.raises(DataError, match=r"at least 10 items known to be bad, .* got 2 bad of 300"):
        audit_items(matrix, known=known[:2])


@pytest.mark.parametrize(("n_scenarios", "n_folds"), [(1, 5), (2, 5), (3, 3)])
def test_what_is_learnt_for_an_item_rests_on_no_label_of_its_fold(n_scenarios, n_folds):
    """Two items of one fold, places 7 and 37, change their labels. Few scenarios are folds by place instead."""
    values, _ = make_answers(n_models=30, n_items=300, seed=9)
    matrix, found = ResponseMatrix.create(values, scenarios=[f"s{j % n_scenarios}" for j in range(300)]), []
    for place in (7, 37):
        known = [matrix.item_ids[j] for j in (place, *range(0, 300, 11))]
        table = audit_items(matrix, known=known, duplicates=False).table.select("item_id", "probability")
        found.append(pl.DataFrame({"item_id": matrix.item_ids}).join(table, on="item_id", maintain_order="left"))
    is_same = np.isclose(*(one["probability"].to_numpy() for one in found), rtol=1e-9)
    np.testing.assert_array_equal(is_same, np.arange(300) % n_folds == 7 % n_folds)


def test_answers_given_name_the_rival_of_the_key():
    matrix, chance = make_faulty(), np.random.default_rng(0)
    right = matrix.responses.ravel() == 1.0
    columns = {"model_id": np.repeat(matrix.model_ids, matrix.n_items), "item_id": np.tile(matrix.item_ids, 100)}
    given = np.where(right, "A", np.where(chance.random(right.size) < 0.2, "B", "C"))
    choices = pl.DataFrame({**columns, "choice": given})
    row = audit_items(matrix, choices=choices, duplicates=False).table.filter(item_id="item-6").row(0, named=True)
    assert (row["rival"], row["n_key"]) == ("C", 0)
    assert f"of the best models {row['n_rival']} answer C, 0 the key" in row["evidence"]
    again, others = pl.concat([choices, choices.head(1)]), choices.head(9).with_columns(model_id=pl.lit("other"))
    for wrong, says in (
        (again, "must have one answer an item, got 2 rows"),
        (others, "that does: their models are 'other'"),
    ):
        with pytest.raises(DataError, match=says):
            audit_items(matrix, choices=wrong, duplicates=False)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"known": ["item-1", "nobody"]}, "nobody"),
        ({"choices": pl.DataFrame({"model_id": ["model-0"]})}, "must have the columns"),
        ({"by": "famly"}, "must have a column 'famly'"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_work(wrong, message, monkeypatch):
    monkeypatch.setattr(item_audit, "panel_of", lambda _: pytest.fail("work had begun"))
    with pytest.raises(DataError, match=message):
        audit_items(make_faulty(), **wrong)


def test_groups_that_differ_are_a_reason():
    values, _ = make_answers(n_models=100, n_items=60)
    family = np.arange(100) % 2 == 0
    values[:, 3] = family
    models = pl.DataFrame({"model_id": [f"m{i}" for i in range(100)], "family": np.where(family, "x", "y")})
    found = audit_items(ResponseMatrix.create(values, models=models), by="family", duplicates=False)
    row = found.table.filter(item_id="item-4").row(0, named=True)
    assert "differs" in row["reasons"]
    assert "at equal ability" in row["evidence"]
    assert found.to_dict()["differential"]["n_flagged"] == found.differential.flagged.height


def test_the_text_of_items_is_shown_where_it_is_known():
    values, _ = make_answers(n_models=20, n_items=5)
    items = pl.DataFrame({"item_id": [f"q{j}" for j in range(5)], "question": [f"What is {j}?" for j in range(5)]})
    table = audit_items(ResponseMatrix.create(values, items=items)).table
    assert table.filter(item_id="q3")["text"].to_list() == ["What is 3?"]


def test_doubtful_panels_are_named():
    values, theta = make_answers(n_models=60, n_items=250)
    order = np.argsort(theta)

    def cautions(some):
        return audit_items(ResponseMatrix.create(some), duplicates=False).cautions

    (only,) = cautions(values)
    assert "selected" in only
    assert audit_items(make_faulty(n_items=250), duplicates=False).cautions == ()
    few, more, weak, alike = (cautions(values[rows]) for rows in (range(12), range(20), order[:10], order[40:46]))
    assert any("12 models are few" in one and "half may be sound" in one for one in few)
    assert any(one.endswith("may be wrong. Add models.") for one in more)
    assert any("Add stronger models" in one for one in weak)
    assert any("much alike" in one for one in alike)


BERKELEY = (
    ((512, 313), (89, 19)), ((353, 207), (17, 8)), ((120, 205), (202, 391)),
    ((138, 279), (131, 244)), ((53, 138), (94, 299)), ((22, 351), (24, 317)),
)  # fmt: skip
"""Admitted and rejected, of men and of women, by department (Bickel, Hammel and O'Connell 1975; R's UCBAdmissions)."""


def test_mantel_haenszel_is_what_r_says_of_berkeley():
    # mantelhaen.test(UCBAdmissions): common odds ratio 0.9046968, 95 percent interval 0.7719074 to 1.0603298
    counts = [(dept, sex, 1.0 - k, n) for dept, two in enumerate(BERKELEY) for sex, both in enumerate(two)
              for k, n in enumerate(both)]  # fmt: skip
    stratum, is_woman, admitted = (np.concatenate([[row[c]] * row[3] for row in counts]) for c in range(3))
    values = admitted[:, None]
    delta, error = mantel_haenszel_delta(values, np.ones(values.shape, dtype=bool), is_woman == 1, stratum)
    ratio = np.exp(delta[0] / -2.35)
    assert ratio == pytest.approx(0.9046968, abs=1e-6)
    half = 1.959964 * error[0] / 2.35
    assert ratio * np.exp([-half, half]) == pytest.approx([0.7719074, 1.0603298], abs=1e-5)


def test_the_score_test_comes_near_the_likelihood_ratio_test():
    values, theta = make_answers(n_models=400, n_items=6, seed=3)
    group, rng = (np.random.default_rng(1).random(400) < 0.4).astype(float), np.random.default_rng(2)
    values[:, 0] = np.where((group == 1.0) & (rng.random(400) < 0.3), 1.0, values[:, 0])
    design = np.column_stack([np.ones(400), theta])
    effect, z, p_value = score_test(values, np.ones(values.shape, dtype=bool), design, group)

    def deviance(columns, y):
        def loss(weights):
            p = np.clip(expit(columns @ weights), 1e-12, 1.0 - 1e-12)
            return -np.sum(y * np.log(p) + (1.0 - y) * np.log(1.0 - p))

        return 2.0 * minimize(loss, np.zeros(columns.shape[1]), method="BFGS").fun

    for item in range(6):
        statistic = deviance(design, values[:, item]) - deviance(np.column_stack([design, group]), values[:, item])
        assert z[item] ** 2 == pytest.approx(statistic, rel=0.12, abs=0.12)
        assert p_value[item] == pytest.approx(chi2.sf(statistic, 1), abs=0.03)
    assert effect[0] > 0.03


def test_an_item_that_ability_tells_apart_completely_says_nothing_of_groups():
    theta, one = np.linspace(-2.0, 2.0, 80), np.ones((80, 1))
    values, group = (theta > 0.3).astype(float)[:, None], (np.arange(80) % 4 == 0) * 1.0
    _, z, p_value = score_test(values, one == 1.0, np.column_stack([one, theta]), group)
    assert (np.abs(z[0]) < 2.0, p_value[0] > 0.05) == (True, True)


def test_copies_of_models_count_once():
    values, theta = make_answers(n_models=60, n_items=8, seed=5)
    group, names = (np.arange(60) % 3 == 0) * 1.0, np.arange(60)
    known = np.ones(values.shape, dtype=bool), np.column_stack([np.ones(60), theta]), group
    thrice = np.repeat(names, 3)
    again = [one[thrice] for one in (values, *known)]
    single, copied, naive = score_test(values, *known, names), score_test(*again, thrice), score_test(*again)
    assert (copied[1], copied[0]) == (pytest.approx(single[1]), pytest.approx(single[0]))
    assert np.abs(naive[1]).sum() > 1.5 * np.abs(copied[1]).sum()
    assert np.isnan(score_test(values, *known, np.where(group == 1.0, 0, names))[2]).all()  # of one family


def test_benjamini_and_hochberg_reject_four_of_their_fifteen():
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
    p += [0.3240, 0.4262, 0.5719, 0.6528, 0.759, 1.0]
    adjusted = benjamini_hochberg(np.array([*p, np.nan]))
    assert (adjusted[:15] <= 0.05).sum() == 4
    assert np.isnan(adjusted[15])
    assert adjusted[3] == pytest.approx(15 * 0.0095 / 4)


def test_strata_are_of_about_equal_size():
    theta = np.random.default_rng(0).standard_normal(200)
    assert np.bincount(ability_strata(theta)).tolist() == [20] * 10
    assert np.bincount(ability_strata(theta[:30])).tolist() == [15, 15]


def _with(values, **columns):
    models = pl.DataFrame({"model_id": [f"m{i}" for i in range(len(values))], **columns})
    return ResponseMatrix.create(values, models=models)


@pytest.mark.parametrize("n_in_group", [20, 90])
def test_groups_by_lot_are_hardly_ever_flagged(n_in_group):
    values, _ = make_answers(n_models=200, n_items=300, seed=6)
    rng, flagged = np.random.default_rng(n_in_group), []
    for _ in range(3):
        found = differential_items(_with(values, group=rng.permutation(200) < n_in_group), "group")
        flagged.append(found.flagged.height)
        assert 0.01 < (found.table.filter(group="true")["p_value"].to_numpy() < 0.05).mean() < 0.10
    assert sum(flagged) <= 4  # two rows an item


def test_planted_differences_are_found_with_their_direction():
    values, _ = make_answers(n_models=300, n_items=200, seed=7, ease=0.0)
    rng = np.random.default_rng(1)
    is_odd, planted = rng.random(300) < 0.5, np.arange(200) < 10
    values[np.ix_(is_odd, planted)] = np.maximum(values[np.ix_(is_odd, planted)], rng.random((is_odd.sum(), 10)) < 0.5)
    found = differential_items(_with(values, family=np.where(is_odd, "odd", "even")), "family")
    flagged = found.flagged.filter(group="odd")
    ids = set(flagged["item_id"])
    assert len(ids & {f"item-{j}" for j in range(1, 11)}) >= 8
    assert len(ids) <= 12
    assert (flagged["effect"].head(8) > 0.1).all()
    assert (flagged["mh_delta"].head(8) > 0.0).all()
    scores = found.scores.filter(group="odd").row(0, named=True)
    assert scores["flagged_effect"] == pytest.approx(flagged["effect"].sum() / 200)


def test_numbers_are_one_covariate_and_dates_are_numbers():
    values, _ = make_answers(n_models=120, n_items=60, seed=8)
    size = np.exp(np.random.default_rng(3).uniform(0.0, 5.0, 120))
    values[:, 4] = size > np.median(size)  # right for large models, whatever their ability
    found = differential_items(_with(values, size=size), "size")
    assert (found.flagged.row(0, named=True)["item_id"], set(found.table["group"])) == ("item-5", {"size"})
    assert found.table["mh_delta"].null_count() == 60
    rank = np.argsort(np.argsort(size))
    by_day = differential_items(_with(values, when=pl.Series(rank).cast(pl.Int32).cast(pl.Date)), "when")
    assert by_day.flagged["item_id"][0] == "item-5"
    assert_frame_equal(by_day.table, differential_items(_with(values, when=rank / 1000.0), "when").table)


def test_where_clusters_are_too_few_it_is_said_how_many_are_enough():
    values, _ = make_answers(n_models=40, n_items=8, seed=8)
    three, group = np.arange(40) % 3, np.where(np.arange(40) < 20, "a", "b")
    of = _with(values, size=np.exp(np.arange(40) / 8.0), three=three, four=np.arange(40) % 4, group=group, of=group)
    assert differential_items(of, "size", clusters="three").notes[-1].startswith("'size': fewer than four clusters,")
    (only,) = differential_items(of, "size", clusters="four").notes
    assert only.startswith("There is one scenario")  # so that its score says nothing of groups
    assert "fewer than three clusters in the group" in differential_items(of, "group", clusters="of").notes[-1]


def test_what_cannot_be_compared_is_refused():
    values, _ = make_answers(n_models=20, n_items=10)
    for column, says in (
        ("famly", r"must have a column 'famly', got .*Did you mean 'family'"),
        ("family", "must divide the 20 models: groups of at least 8"),
    ):
        with pytest.raises(DataError, match=says):
            differential_items(_with(values, family=["a"] * 20), column)
    small = _with(values, family=[*"abcdefghij"] * 2, size=["big"] * 10 + ["mid"] * 8 + ["tiny"] * 2)
    audit = audit_items(small, by="family")  # whose other findings count all the same
    assert (audit.differential, audit.table.height) == (None, 10)
    assert "No groups are compared: column 'family' must divide the 20 models" in audit.cautions[-1]
    assert "are not compared: 'tiny'" in differential_items(small, "size").notes[0]


def test_a_scenario_that_a_group_did_not_run_has_no_effect_on_its_score():
    values, _ = make_answers(n_models=40, n_items=40, seed=9)
    values[:20, :20] = np.nan
    items = pl.DataFrame({"item_id": [f"q{j}" for j in range(40)], "scenario": ["half"] * 20 + ["whole"] * 20})
    models = pl.DataFrame({"model_id": [f"m{i}" for i in range(40)], "family": ["a"] * 20 + ["b"] * 20})
    found = differential_items(ResponseMatrix.create(values, models=models, items=items), "family")
    scores = {half: found.scores.filter(scenario=half)["score_effect"] for half in ("half", "whole")}
    assert (scores["half"].is_nan().all(), scores["whole"].is_finite().all()) == (True, True)
    assert not any("one scenario" in one for one in found.notes)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_ratios_are_the_sums_over_models_that_answered_both(missing, monkeypatch):
    for name, size in (("ROWS", 4), ("COLUMNS", 5)):
        monkeypatch.setattr(kernels, name, size)
    rng = np.random.default_rng(0)
    values, _ = make_answers(n_models=12, n_items=14)
    p, observed = rng.uniform(0.1, 0.9, values.shape), rng.random(values.shape) >= missing
    found = duplicate_pairs(np.where(observed, values, np.nan), observed, p, least=-1e9)
    assert found.height == 14 * 13 // 2
    assert (np.diff(found["log_ratio"]) <= 1e-3).all()
    for j, k, ratio, n_shared, n_agree in found.iter_rows():
        rows = np.flatnonzero(observed[:, j] & observed[:, k])
        agree, given = values[rows, j] == values[rows, k], np.where(values == 1.0, p, 1.0 - p)[rows]
        expected = np.log(np.where(agree, 1.0 - SLIP, SLIP)) - 0.5 * np.log(given[:, j] * given[:, k])
        assert (ratio, n_shared, n_agree) == (pytest.approx(expected.sum(), abs=1e-4), rows.size, agree.sum())


def test_residual_factors_take_what_families_share_out_of_chance():
    values, _ = make_answers(n_models=100, n_items=200)
    family = np.arange(100) % 2 == 0
    values[:, :40] = family[:, None]  # 40 items that only one family can do
    p, observed = np.full(values.shape, values.mean()), np.ones(values.shape, dtype=bool)
    better = with_residual_factors(p, values, observed)
    assert (better[family, :40].mean() > 0.85, better[~family, :40].mean() < 0.15) == (True, True)
    few = with_residual_factors(p[:20], values[:20], observed[:20])
    assert few == pytest.approx(np.clip(p[:20], NEAREST, 1.0 - NEAREST))  # twenty models tell no factor from chance


@pytest.mark.parametrize("n_models", [40, 100])
def test_parts_of_the_models_give_what_all_at_once_give(n_models, monkeypatch):
    values, _ = make_answers(n_models=n_models, n_items=70)
    observed = np.random.default_rng(3).random(values.shape) < 0.9
    values = np.where(observed, values, np.nan)
    p = np.asfortranarray(np.random.default_rng(4).random(values.shape))

    def found():
        better = with_residual_factors(p, values, observed)
        return [better, *duplicate_pairs(values, observed, better, least=-3.0)]

    at_once = found()
    monkeypatch.setattr("itembank.numerics.blocks.CELLS_AT_ONCE", 500)
    for one, other in zip(found(), at_once, strict=True):
        np.testing.assert_array_equal(one, other)


def test_copies_are_found_and_nothing_else():
    values, _ = make_answers(n_models=120, n_items=150, seed=4, ease=0.0)
    copied = values[:, :10].copy()
    copied[3] = 1.0 - copied[3]  # one model answers otherwise
    names = [f"q{j}" for j in range(150)] + [f"again {j}" for j in range(10)]
    found = find_duplicates(ResponseMatrix.create(np.concatenate([values, copied], axis=1), item_ids=names))
    flagged = found.table.filter(verdict="duplicate")
    pairs = {(row["duplicate_of"], row["item_id"]) for row in flagged.to_dicts()}
    assert pairs <= {(f"q{j}", f"again {j}") for j in range(10)}
    assert flagged.height >= 8
    assert flagged["n_agree"].to_list() == [119] * flagged.height
    counts = {"n_duplicate": flagged.height, "n_review": 10 - flagged.height}
    assert found.to_dict() == {"n_pairs": 160 * 159 // 2, **counts}
    with pytest.raises(ParameterError, match="review must be a finite number >= 0"):
        find_duplicates(ResponseMatrix.create(values), review=-1.0)


def test_the_flower_that_is_twice_in_fishers_iris_data_is_found():
    classifiers = load_builtin("classifiers")
    iris = classifiers.take(items=np.flatnonzero((classifiers.items["scenario"] == "iris").to_numpy()))
    first = find_duplicates(iris).rows()[0]
    # rows 102 and 143 of the data, counted from 1, are the same flower
    assert (first["duplicate_of"], first["item_id"], first["verdict"]) == ("iris/101", "iris/142", "duplicate")


def test_easy_items_prove_nothing():
    values, _ = make_answers(n_models=60, n_items=80, ease=0.0)
    values[:, :5] = 1.0
    values[7, :5] = 0.0  # one and the same model fails on each
    assert find_duplicates(ResponseMatrix.create(values)).table.filter(verdict="duplicate").height == 0
