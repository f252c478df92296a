"""Gates in stages: error rates over all looks by simulation, what is kept on disk, and what is refused beforehand."""

import json
from dataclasses import replace

import numpy as np
import pytest

import itembank as ib
from itembank.files.documents import with_digest
from itembank.gating.gate_spec import GateSpec
from itembank.gating.stages import PLAN, GatePlan, start_gate
from itembank.gating.with_bank import bank_look, drawn_order
from itembank.irt.bernoulli import probability
from itembank.responses.responses import ResponseMatrix
from tests.bank.banks import make_bank
from tests.gating.test_gate import changed, run_of


@pytest.mark.parametrize(
    ("change", "churn", "wrong"), [(-0.05, 0.05, "pass"), (-0.05, 0.15, "pass"), (-0.025, 0.1, "fail")]
)
def test_error_rates_hold_over_all_looks(change, churn, wrong):
    n, spec = 600, GateSpec(margin=0.05)
    old, new = changed(round(n * (churn - change) / 2), round(n * (churn + change) / 2), n)
    found = [start_gate(old, spec=replace(spec, seed=seed)).look(new, in_stages=True) for seed in range(200)]
    spread = 2.5 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean([one.verdict == wrong for one in found]) < 0.05 + spread
    assert np.mean([all(look.low <= change <= look.high for look in one.looks) for one in found]) > 0.95 - spread


def test_a_clear_case_takes_few_items_and_stops():
    old, broken = changed(300, 0)
    plan = start_gate(old, margin=0.03)
    found = plan.look(broken, in_stages=True)
    assert (found.verdict, found.n_items, found.next_items, found.notes) == ("fail", plan.sizes[0], (), ())


def test_a_file_that_has_all_answers_is_judged_by_all_of_them():
    old, new = changed(30, 10)
    plans = [start_gate(old, margin=0.03, seed=seed) for seed in range(60)]
    stopped = next(plan for plan in plans if plan.look(new, in_stages=True).verdict == "fail")
    early, found = stopped.look(new, in_stages=True), stopped.look(new)
    assert (found.verdict, found.n_items, found.last.is_exact) == ("pass", 1000, True)
    assert "PASS: new is worse by 2 points, less than the margin of 3 points. Score 60.0 -> 58.0" in found.sentence
    says = f"would have stopped at {early.n_items} items with FAIL; this verdict rests on 1,000 answers"
    assert says in found.notes[0]
    assert found.notes[0] in found.to_dict()["notes"]
    found = start_gate(old, margin=0.05, max_items=300).look(new)
    assert found.n_items <= 300
    assert "all 1,000 items are answered, and their difference is -2.0 points exactly" in " ".join(found.notes)
    some = new.take(items=new.item_indices(plans[0].order[:60]))
    assert "10 more answers do not count" in plans[0].look(some).notes[-1]


def test_stage_after_stage_asks_what_is_left(tmp_path):
    old, new = changed(20, 20)
    start_gate(old, margin=0.03).save(tmp_path / "gate")
    plan, answered = GatePlan.load(tmp_path / "gate"), []
    items = plan.next_items()
    with pytest.raises(ib.errors.DataError, match="first look needs answers to 50 items, and 40 are missing"):
        plan.look(new.take(items=new.item_indices(items[:10])))
    while items:
        answered += items
        found = plan.look(new.take(items=new.item_indices(answered)))
        items = found.next_items
    assert (found.verdict, len(answered)) == ("pass", found.n_items)
    assert found.n_items < 1000
    assert found.looks == plan.look(new, in_stages=True).looks


def read_plan(folder):
    """The record of a gate that is saved in a folder, without its digest, and its path."""
    start_gate(changed(0, 0)[0]).save(folder)
    record = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    return record, {name: value for name, value in record.items() if name != "sha256"}, folder / PLAN


def test_a_plan_that_was_changed_is_refused(tmp_path):
    *records, path = read_plan(tmp_path / "gate")
    for record in records:
        path.write_text(json.dumps({**record, "spec": {**record["spec"], "margin": 0.5}}), encoding="utf-8")
        with pytest.raises(ib.errors.IntegrityError, match="not the gate that was written"):
            GatePlan.load(tmp_path / "gate")
    with pytest.raises(ib.errors.DataError, match="folder of a gate"):
        GatePlan.load(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("boundaries", [2.0, 2.0], "three numbers of standard errors"),
        ("boundaries", [2.0, 2.0, float("nan")], "three numbers of standard errors"),
        ("sizes", [100, 50], "sizes must rise"),
        ("sizes", [50, 5000], "sizes must rise"),
        ("sizes", [], "sizes must rise"),
        ("order", ["other"] * 1000, "items of the baseline, each once"),
    ],
)
def test_a_signed_plan_that_no_gate_can_have_is_refused(tmp_path, field, value, told):
    _, record, path = read_plan(tmp_path / "gate")
    path.write_text(json.dumps(with_digest({**record, field: value})))
    with pytest.raises(ib.errors.IntegrityError, match=f"does not hold a gate: .*{told}"):
        GatePlan.load(tmp_path / "gate")


@pytest.mark.parametrize("spec", [GateSpec(margin=0.02, max_items=100), GateSpec(margin=0.001, estimand="questions")])
def test_a_margin_that_no_number_of_items_decides_is_refused(spec):
    """Before anything is run, and for the right reason: the same answers as the baseline's would not pass."""
    old, enough = changed(0, 0)[0], replace(spec, margin=0.05 if spec.max_items else 0.01)
    with pytest.raises(ib.errors.ParameterError, match="cannot decide within"):
        start_gate(old, spec=spec)
    plan = start_gate(old, spec=enough)
    assert (plan.look(old).verdict, plan.sizes[-1]) == ("pass", spec.max_items or 1000)


@pytest.mark.usefixtures("few_folds")
def test_a_bank_decides_with_fewer_items_and_its_intervals_hold():
    """New models of the bank's kind: candidates that are worse fail early, and all looks hold the true difference."""
    bank, rng = make_bank(n_models=60, n_items=200), np.random.default_rng(5)
    chances = probability(bank.parameters, rng.normal(size=(24, bank.calibration.n_dims)))
    answers = (rng.random(chances.shape) < chances).astype(float)
    models = ib.ResponseMatrix.create(answers, items=bank.responses.items)
    plan = start_gate(models.take(models=np.array([0])), bank=bank, margin=0.05)
    held, items, wrong = [], [], 0
    scores = bank.targets.with_overall(bank.targets.scenario_means(answers))[:, -1]
    for one in range(0, 24, 4):
        for other in range(1, 24, 2):
            mine = replace(plan, baseline=models.take(models=np.array([one])))
            found = mine.look(models.take(models=np.array([other])), bank=bank, in_stages=True)
            truth = scores[other] - scores[one]
            held.append(all(look.low - 1e-9 <= truth <= look.high + 1e-9 for look in found.looks))
            items.append(found.last.n_items)
            wrong += (found.verdict == "pass") == (truth <= -0.05)
    assert np.mean(held) > 0.88
    assert wrong / len(held) < 0.06
    assert np.mean(items) < 130


def flipped(right, falls, rises, rng):
    """Answers of which some fell and some rose by chance, evenly over the items."""
    answers = right.copy()
    answers[rng.choice(np.flatnonzero(right == 1.0), falls, replace=False)] = 0.0
    answers[rng.choice(np.flatnonzero(right == 0.0), rises, replace=False)] = 1.0
    return answers


def simulated_bank(n_models, n_items, seed):
    """Return a bank of one ability with equal weights, and the answers of 20 new models, (20, n_items)."""
    rng = np.random.default_rng(seed)
    slopes, places, ability = rng.lognormal(0.3, 0.3, n_items), rng.normal(0.0, 1.0, n_items), rng.normal(size=999)
    chance = 1.0 / (1.0 + np.exp(-slopes * (ability[: n_models + 20, None] - places)))
    right = (rng.random(chance.shape) < chance).astype(float)
    return ib.calibrate(ib.ResponseMatrix.create(right[:n_models])), right[n_models:]


@pytest.mark.usefixtures("few_folds")
def test_with_a_bank_a_drop_of_exactly_the_margin_fails_once_all_is_run():
    bank, new = simulated_bank(30, 100, 1)
    rng, spec = np.random.default_rng(2), GateSpec(margin=0.05, first_look=95)  # the only look is that of all items
    for one in new[np.abs(new.mean(axis=1) - 0.5) < 0.3]:
        plan = start_gate(run_of(one, items=bank.responses.items), bank=bank, spec=spec)
        candidate = run_of(flipped(one, 12, 7, rng), items=bank.responses.items)
        assert plan.look(candidate, bank=bank).verdict == "fail"


@pytest.mark.slow
@pytest.mark.usefixtures("all_folds")
@pytest.mark.parametrize("n_models", [30, 100])
def test_with_a_bank_random_flips_rarely_pass_early(n_models):
    """Noise of quantisation changes answers evenly over the items, as no two past models differ."""
    drops, rng, held = (15, 16, 18, 7), np.random.default_rng(3), []
    early = {net: [] for net in drops}
    for seed in range(4):
        bank, new = simulated_bank(n_models, 300, seed)
        for one in new[np.abs(new.mean(axis=1) - 0.5) < 0.3]:
            plan = start_gate(run_of(one, items=bank.responses.items), bank=bank, spec=GateSpec(margin=0.05))
            for net in drops:
                rises = (int(rng.integers(45, 61)) - net) // 2
                candidate = flipped(one, rises + net, rises, rng)
                found = plan.look(run_of(candidate, items=bank.responses.items), bank=bank, in_stages=True)
                wrong = "fail" if net == 7 else "pass"
                early[net].append(found.verdict == wrong and found.n_items < 300)
                held.append(all(one.low - 1e-9 <= -net / 300 <= one.high + 1e-9 for one in found.looks))
    for rates in early.values():
        assert np.mean(rates) < 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / len(rates))
    assert np.mean(held) > 0.94


@pytest.mark.usefixtures("few_folds")
def test_a_gate_and_its_bank_move_together(tmp_path):
    bank = make_bank(n_models=40, n_items=60)
    bank.save(tmp_path / "here" / "bank")
    baseline = run_of(np.ones(60), items=bank.responses.items)
    start_gate(baseline, bank=tmp_path / "here" / "bank", margin=0.2).save(tmp_path / "here" / "gate")
    (tmp_path / "here").rename(tmp_path / "there")
    assert GatePlan.load(tmp_path / "there" / "gate").look(baseline).verdict == "pass"
    assert str(tmp_path) not in (tmp_path / "there" / "gate" / PLAN).read_text(encoding="utf-8")


@pytest.mark.usefixtures("few_folds")
def test_what_a_gate_with_a_bank_needs_is_said():
    bank, few = make_bank(n_models=40, n_items=60), make_bank(n_models=8, n_items=60)
    baseline = run_of(np.ones(60), items=bank.responses.items)
    with pytest.raises(ib.errors.DataError, match="must have answered all 60 items"):
        start_gate(baseline.take(items=np.arange(30)), bank=bank)
    more = ib.ResponseMatrix.create(np.ones((1, 61)), item_ids=[*few.item_ids, "another"], model_ids=["m"])
    of_few = start_gate(more, bank=few, margin=0.2)
    assert (len(of_few.order), of_few.bank_id) == (60, few.bank_id)
    with pytest.raises(ib.errors.ParameterError, match="a gate in stages with a bank is of this run"):
        start_gate(baseline, bank=bank, estimand="questions")
    plan = start_gate(baseline, bank=bank, margin=0.2)
    with pytest.raises(ib.errors.IntegrityError, match="was started with bank"):
        plan.look(baseline, bank=few)


N_ITEMS, N_ANSWERS = 300, 60


@pytest.mark.parametrize(
    ("part_alike", "most_error", "most_stated"),  # of the error that the mean of the differences would have
    [(0.95, 1.15, 1.3), (0.6, 1.0, 1.0), (0.0, 0.85, 0.85)],
)
def test_the_baseline_tells_as_much_as_the_candidate_is_like_it(part_alike, most_error, most_stated):
    """Of a near copy all but what changed is known; of half a copy less; of another model what the bank says."""
    bank = make_bank(n_models=40, n_items=N_ITEMS)
    bank, rng = make_bank(n_models=40, n_items=N_ITEMS), np.random.default_rng(1)
    chance = probability(bank.parameters, np.zeros((1, bank.calibration.n_dims)))[0]
    errors, stated, plain = [], [], []
    for _ in range(40):
        baseline, again = (rng.random((2, N_ITEMS)) < chance).astype(float)
        candidate = np.where(rng.random(N_ITEMS) < part_alike, baseline, again)
        first, seen = drawn_order(bank, rng)[:N_ANSWERS], np.full(N_ITEMS, np.nan)
        seen[first] = candidate[first]
        pair = ResponseMatrix.create(np.stack([baseline, seen]), model_ids=["base", "new"], items=bank.responses.items)
        look = bank_look(bank, pair)
        errors.append(look.difference - (candidate - baseline) @ bank.targets.overall_weights)
        stated.append(look.variance)
        plain.append(np.var(candidate - baseline) * (1.0 / N_ANSWERS - 1.0 / N_ITEMS))
    error, stated, plain = np.sqrt([np.mean(np.square(errors)), np.mean(stated), np.mean(plain)])
    assert error < most_error * plain
    assert stated < most_stated * plain
    assert abs(np.mean(errors)) < 3.0 * error / np.sqrt(40)
    assert 0.75 * error < stated  # of near copies it is at least Tango's
