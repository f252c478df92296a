"""Pages that the browser opens: one of each kind, with names that would run scripts where they were not escaped."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import polars as pl

import itembank as ib
from itembank.auditing.item_audit import audit_items
from itembank.pages.audit_page import audit_page
from itembank.pages.bank_page import bank_page
from itembank.pages.comparison_page import comparison_page
from itembank.pages.estimates_page import estimates_page
from itembank.pages.gate_page import gate_page
from itembank.pages.render import Page
from itembank.pages.session_page import session_page
from itembank_scaling.compute import training_compute
from itembank_scaling.pages.pretraining_page import pretraining_page
from itembank_scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank_scaling.pass_at_k.specs import PassAtKSpec
from itembank_scaling.pretraining.law_specs import PretrainingSettings
from itembank_scaling.pretraining.pretraining_law import pretraining_law
from itembank_scaling.transfers.convergent import convergent_validity
from itembank_scaling.transfers.transfers import transfer
from itembank_studies.engine import StudyManifest
from itembank_studies.results import StudyResult
from itembank_studies.summary import summarise
from tests.pages.test_study_charts import make_estimates
from tests.scaling.samples import known_bank, simulated_samples
from tests.scaling.simulated_suite import simulated_suite
from tests.scaling.two_scenarios import simulated

PAYLOADS = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror=window.hit=1>',
    "</script><script>window.hit=1</script>",
    "javascript:window.hit=1",
    "{{7*7}}{% raw %}",
    "<svg/onload=window.hit=1>",
    "=cmd|' /C calc'!A0",
    "'+window.hit=1+'",
    "https://example.org/beacon.png",
    "${window.hit=1}",
)  # Ids as a stranger may choose them
SCENARIOS = (PAYLOADS[0], f"{PAYLOADS[1]}\u2028second line", f"{PAYLOADS[2]}\u2029")
"""Names that Vega-Lite writes into expressions, where a line separator is no part of a text."""


@cache
def hostile_bank(n_models: int = 40, n_items: int = 60) -> ib.Bank:
    """Return a bank whose models, items, scenarios and texts are payloads."""
    generator = np.random.default_rng(20261122)
    ability, difficulty = generator.normal(size=(n_models, 1)), generator.normal(size=n_items)
    right = generator.random((n_models, n_items)) < 1.0 / (1.0 + np.exp(difficulty - 1.5 * ability))
    named = [f"{PAYLOADS[k % len(PAYLOADS)]} {k}" for k in range(max(n_models, n_items))]
    texts = [f"What is {name}?" for name in named[:n_items]]
    scenarios = [SCENARIOS[k % 3] for k in range(n_items)]
    items = pl.DataFrame({"item_id": named[:n_items], "scenario": scenarios, "text": texts})
    dates = [f"2026-{1 + k % 12:02d}-01" for k in range(n_models)]
    owners = [(*SCENARIOS, PAYLOADS[3])[k % 4] for k in range(n_models)]
    known = {"date": dates, "organisation": owners, "size_b": [float(1 + k) for k in range(n_models)]}
    models = pl.DataFrame({"model_id": named[:n_models], **known})
    return ib.calibrate(ib.ResponseMatrix.create(right.astype(float), models=models, items=items))


def bank() -> Page:
    return bank_page(hostile_bank(), title=PAYLOADS[0], command=f"itembank report {PAYLOADS[1]}")


def audit() -> Page:
    responses = hostile_bank().responses
    known = responses.item_ids[:12]
    return audit_page(audit_items(responses, known=known, by="organisation"), title=PAYLOADS[0])


def answers_of(bank: ib.Bank, n_models: int, n_items: int = 30) -> ib.ResponseMatrix:
    """Return new models, by names as strange, that answer items of a bank by chance."""
    generator = np.random.default_rng(7)
    names = [f"new {PAYLOADS[k % len(PAYLOADS)]} {k}" for k in range(n_models)]
    right = (generator.random((n_models, n_items)) < 0.5).astype(float)
    return ib.ResponseMatrix.create(right, model_ids=names, item_ids=bank.item_ids[:n_items])


def one_model() -> Page:
    bank = hostile_bank()
    responses = answers_of(bank, 1)
    return estimates_page(bank, responses, ib.estimate(bank, responses, method="p-irt", interval="model-based"))


def few_models() -> Page:
    """Return the page of two models one by one, whose names are long and have no gap."""
    bank = hostile_bank()
    responses = answers_of(bank, 2)
    named = ib.ResponseMatrix.create(responses.responses, model_ids=["x" * 200, "y" * 200], item_ids=responses.item_ids)
    return estimates_page(bank, named, ib.estimate(bank, named, method="p-irt", interval="model-based"))


def many_models() -> Page:
    bank = hostile_bank()
    responses = answers_of(bank, 12)
    return estimates_page(bank, responses, ib.estimate(bank, responses, method="p-irt"), title=PAYLOADS[2])


def session() -> Page:
    bank, spec = hostile_bank(), ib.SessionSpec(budget=ib.Budget(n_items=12), interval="model-based")
    asked = ib.AdaptiveSession(ib.prepare_sessions(bank, spec), model_id=PAYLOADS[0])
    for k in range(12):
        (item,) = asked.ask()
        asked.tell(item, float(k % 2), costs={"cost_usd": 0.01})
    return session_page(asked, bank)


def compared(n_models: int) -> Page:
    """Return the page of a comparison of two models, or of a ranking of many."""
    bank = hostile_bank()
    responses = answers_of(bank, n_models)
    return comparison_page(ib.compare(bank, responses, method="paired", target="all"), bank, responses)


def gate() -> Page:
    answers = hostile_bank().responses
    plan = ib.start_gate(answers.take(models=np.array([0])), spec=ib.GateSpec(margin=0.1, first_look=10))
    found = plan.look(answers.take(models=np.array([3])))
    return gate_page(replace(found, notes=PAYLOADS), then=[("Go on", PAYLOADS[2])])


def study() -> Page:
    estimates = make_estimates(splits=SCENARIOS[1:], methods=[(payload, "weighted") for payload in PAYLOADS])
    manifest = StudyManifest(
        "comparison", {"name": PAYLOADS[0], "level": 0.95, "budget": None}, "", "", {}, 0, 2, 22, 9
    )
    return ib.show(StudyResult(estimates, summarise(estimates), manifest))


def forecast() -> Page:
    suite = simulated_suite(np.random.default_rng(3), n_recipes=3, n_items=12, n_sizes=4, scenarios=SCENARIOS[1:])
    settings = PretrainingSettings(laws=("irsl",), n_checked=1)
    law = pretraining_law(suite.probability, training_compute(suite.models), settings=settings)
    return pretraining_page(replace(law, recipes=SCENARIOS))


def pass_at_k() -> Page:
    samples = simulated_samples(n_models=5, n_items=20, n_trials=40)
    law = pass_at_k_law(samples.responses, PassAtKSpec(k=(1, 10, 100), n_draws=100), bank=known_bank(samples))
    return ib.show(replace(law, model_ids=(*SCENARIOS, *PAYLOADS[3:5])))


def transfers() -> Page:
    made = simulated(np.random.default_rng(1), n_models=40, n_items=24, n_scenarios=3)[0]
    found = transfer(made, "s0", "s1")
    named = replace(found, target=SCENARIOS[1], model_ids=tuple(PAYLOADS[k % 10] + str(k) for k in range(40)))
    return ib.show(replace(named, source=PAYLOADS[2]))


def validity() -> Page:
    made = simulated(np.random.default_rng(1), n_models=40, n_items=24, n_scenarios=3)[0]
    return ib.show(replace(convergent_validity(made, rng=0), scenarios=SCENARIOS))


_ALONE = (
    bank,
    audit,
    one_model,
    few_models,
    many_models,
    session,
    gate,
    study,
    forecast,
    pass_at_k,
    transfers,
    validity,
)
PAGES: dict[str, Callable[[], Page]] = {
    **{one.__name__.replace("_", "-"): one for one in _ALONE},
    "comparison": partial(compared, 2),
    "ranking": partial(compared, 12),
}
"""Every kind of page, by name."""
