"""Banks of known item parameters: tinyBenchmarks' formulas written out, and what works without past models."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.special import expit

import itembank as ib
from itembank.bank.norms import bank_factor_model
from itembank.banks import start
from itembank.errors import DataError, ParameterError
from itembank.irt.parameters import AbilityPrior
from tests.readers.tiny_benchmarks import write_tiny_benchmarks

ITEMS = pl.DataFrame(
    {
        "item_id": [f"q{number}" for number in range(60)],
        "scenario": ["x"] * 40 + ["y"] * 20,
        "difficulty": np.linspace(-2.0, 2.0, 60),
        "discrimination": np.tile([0.7, 1.0, 1.6], 20),
    }
)


@pytest.fixture
def bank():
    return start(ITEMS, parameters=True)


@pytest.fixture
def answers(rng):
    chance = expit(ITEMS["discrimination"].to_numpy() * (0.7 - ITEMS["difficulty"].to_numpy()))
    return {item: float(right) for item, right in zip(ITEMS["item_id"], rng.random(60) < chance, strict=True)}


def most_likely(slopes, intercepts, right):
    """MAP of ability under a standard normal prior: the minimum of its negative log density."""

    def loss(theta):
        logit = theta @ slopes + intercepts
        slope = slopes @ (expit(logit) - right) + theta
        return np.sum(np.logaddexp(0.0, logit) - right * logit) + theta @ theta / 2.0, slope

    return minimize(loss, np.zeros(len(slopes)), jac=True, method="BFGS", options={"gtol": 1e-9}).x


def test_gp_irt_is_the_papers_formula_for_a_thousand_models(tmp_path, rng):
    path = tmp_path / "tinyBenchmarks.pkl"
    content = write_tiny_benchmarks(path, sizes={"lb": {"truthfulqa": 300, "arc": 200}}, n_dims=2)["lb"]
    bank = start(path, parameters=True)
    seen = np.array(content["seen_examples"])
    answers = (rng.random((1000, seen.size)) < rng.random((1000, 1))).astype(float)
    asked = ib.ResponseMatrix.create(answers, item_ids=list(bank.items_to_run.item_ids))
    found = {method: ib.estimate(bank, asked, method=method).scores.value for method in ("weighted", "p-irt", "gp-irt")}
    slopes, levels = content["irt_parameters"]["A"][0], content["irt_parameters"]["B"][0]
    chance = np.array([
        expit(most_likely(slopes[:, seen], -levels[:, seen].sum(axis=0), one) @ slopes - levels.sum(axis=0))
        for one in answers
    ])  # fmt: skip
    for number, (name, where) in enumerate(content["scenarios_position"].items()):
        parts = content["subscenarios_position"][name].values()
        balance = np.zeros(chance.shape[1])
        for part in parts:
            balance[part] = len(where) / (len(parts) * len(part))
        own = np.isin(seen, where)
        unseen = np.setdiff1d(where, seen)
        share = own.sum() / len(where)
        observed = (balance[seen[own]] * answers[:, own]).mean(axis=1)
        p_irt = share * observed + (1.0 - share) * (balance[unseen] * chance[:, unseen]).mean(axis=1)  # eq. 4.3
        weighted = answers[:, own] @ content["examples_weights"][name]
        mixed = content["optimal_lambdas"][name]
        gp_irt = mixed * weighted + (1.0 - mixed) * p_irt  # eq. 4.4
        for method, expected in (("weighted", weighted), ("p-irt", p_irt), ("gp-irt", gp_irt)):
            np.testing.assert_allclose(found[method][:, number], expected, atol=1e-6)


def test_a_bank_comes_back_from_its_folder_with_what_it_says_of_itself(tmp_path, bank):
    bank.save(tmp_path / "bank")
    loaded = ib.load_bank(tmp_path / "bank")
    said = (loaded.calibration.method, loaded.calibration.message)
    assert (loaded.bank_id, loaded.n_models) == (bank.bank_id, 0)
    assert said == ("known-parameters", "known parameters, no past models")
    np.testing.assert_allclose(loaded.items["difficulty"], ITEMS["difficulty"], atol=1e-12)


def test_auto_estimates_by_the_draw_of_items_or_by_gp_irt(bank, answers):
    by_chance = ib.estimate(bank, answers, selection=ib.select(bank, 20, rng=0))
    assert (by_chance.method, by_chance.interval_kind) == ("design-based", "design")
    of_anchors = ib.estimate(bank, answers, selection=ib.select(bank, 20, method="anchor-irt"))
    assert (of_anchors.method, of_anchors.interval_kind) == ("gp-irt", "model-based")
    assert "was made of known item parameters and has no past models" in of_anchors.explanation


@pytest.mark.parametrize("method", ["v-optimal", "optimal-design", "anchor-irt"])
def test_items_are_chosen_by_their_parameters(bank, answers, method):
    chosen, by_chance = ib.select(bank, 20, method=method), ib.select(bank, 20, method="stratified", rng=0)
    assert (chosen.n_items, set(chosen.scenarios)) == (20, {"x", "y"})
    ours, theirs = (ib.estimate(bank, answers, selection=one, method="p-irt") for one in (chosen, by_chance))
    if method == "v-optimal":  # which aims at the scores, as the others do not
        assert ours.scores.standard_error[0, -1] < theirs.scores.standard_error[0, -1]


def test_a_session_goes_by_the_item_model(bank, answers):
    session = ib.AdaptiveSession(ib.prepare_sessions(bank), model_id="new")
    for _ in range(20):
        (item,) = session.ask(1)
        session.tell(item, answers[item])
    found, values = session.estimate().scores, [*answers.values()]
    assert found.low[0, -1] < np.mean([np.mean(values[:40]), np.mean(values[40:])]) < found.high[0, -1]
    asked = bank.items.filter(pl.col("item_id").is_in(list(session.told)))
    assert asked["loading_1"].mean() > bank.items["loading_1"].mean() + 0.2  # steep items tell most


def test_implied_factor_model_has_the_moments_of_simulated_answers(rng):
    loadings, intercepts = np.array([[1.0, 0.0], [2.5, 1.0], [0.3, 2.0], [-1.0, 0.5]]), np.array([0.0, 1.0, -1.0, 0.5])
    lower = np.array([0.0, 0.2, 0.1, 0.0])
    columns = {"item_id": list("abcd"), "loading_1": loadings[:, 0], "loading_2": loadings[:, 1]}
    items = pl.DataFrame({**columns, "intercept": intercepts, "lower": lower})
    prior = AbilityPrior(np.array([0.3, -0.2]), np.array([[1.5, 0.4], [0.4, 0.8]]))
    model = bank_factor_model(start(items, parameters=True, prior=prior))
    factors = rng.normal(size=(400_000, 2))
    theta = prior.mean + factors @ np.linalg.cholesky(prior.covariance).T
    chance = lower + (1 - lower) * expit(theta @ loadings.T + intercepts)
    answers = (rng.random(chance.shape) < chance).astype(float)
    np.testing.assert_allclose(model.mean, answers.mean(axis=0), atol=0.004)
    np.testing.assert_allclose(model.loadings, answers.T @ factors / len(factors), atol=0.004)
    np.testing.assert_allclose(model.noise + np.sum(model.loadings**2, axis=1), answers.var(axis=0), atol=0.004)


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("A plan for repeated runs needs", lambda bank: ib.plan(bank, estimand="repeated")),
        ("Stages need", lambda bank: ib.select(bank, 20, stages=2)),
        ("To be got ready, a bank needs", ib.prepare),
        ("This method of estimation needs", lambda bank: ib.estimate(bank, {"q1": 1}, method="ridge")),
        ("correctness need", lambda bank: ib.select(bank, 20, method="anchor-correctness")),
    ],
)
def test_what_needs_past_models_says_so(bank, what, call):
    with pytest.raises(DataError, match=rf"{what}.*made of known item parameters and has none"):
        call(bank)


def test_what_does_not_go_together_is_refused():
    responses = ib.ResponseMatrix.create(np.ones((1, 60)), items=ITEMS.select("item_id", "scenario"))
    for given, choices, message in (
        ((responses,), {"parameters": True}, "leave the responses out"),
        ((), {"parameters": True, "prior": AbilityPrior.standard(2)}, "must have the items' 1 dimensions, got 2"),
        ((), {"benchmark": "mmlu"}, "go with parameters=True"),
        ((), {"parameters": True, "benchmark": "mmlu"}, "holds one benchmark"),
    ):
        with pytest.raises(ParameterError, match=message):
            start(ITEMS, *given, **choices)
