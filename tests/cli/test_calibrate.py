"""`itembank calibrate`: banks of results, of items alone, and of logs of a harness."""

import re

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import itembank as ib
from itembank.estimation.folds import folds
from itembank.harnesses.id_forms import chosen_documents
from tests.bank.banks import make_bank
from tests.cli.conftest import holds, spec_file
from tests.readers.logs import answers as log_answers
from tests.readers.logs import sample, write_run
from tests.readers.tiny_benchmarks import write_tiny_benchmarks

pytestmark = pytest.mark.usefixtures("few_folds")


QUICK = ("--method", "map", "--dims", 1, "--no-folds")


@pytest.fixture(scope="module")
def response_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("responses") / "responses.parquet"
    ib.write_responses(make_bank(n_models=25, n_items=40).responses, path)
    return path


@pytest.mark.parametrize("method", ["variational", "map", "mml"])
def test_writes_a_bank_of_the_file_s_responses(run, response_file, tmp_path, method):
    outcome = run.json("calibrate", response_file, "-o", tmp_path / "new", "--method", method, "--dims", 1)
    (row,) = outcome["rows"]
    bank = ib.load_bank(tmp_path / "new")
    assert row["bank"] == bank.bank_id
    assert (row["n_models"], row["n_items"], row["n_scenarios"], row["method"]) == (25, 40, 3, method)
    np.testing.assert_array_equal(bank.responses.responses, make_bank(n_models=25, n_items=40).responses.responses)


def test_known_guessing_is_taken_from_the_items_file(run, response_file, tmp_path):
    ids = make_bank(n_models=25, n_items=40).item_ids
    pl.DataFrame({"item_id": ids, "chance": [0.25] * 40}).write_csv(tmp_path / "items.csv")
    told = tmp_path / "told.parquet"
    run.ok("import", response_file, "--items", tmp_path / "items.csv", "-o", told)
    known = spec_file(tmp_path, "known_guessing = true")
    run.ok("calibrate", told, "-o", tmp_path / "new", *known, "--dims", 1, "--no-folds")
    calibration = ib.load_bank(tmp_path / "new").calibration
    assert set(calibration.parameters.lower_asymptote[~calibration.is_degenerate]) == {0.25}


def test_a_bank_is_replaced_only_by_force_and_the_next_step_it_names_can_be_taken(run, response_file, tmp_path):
    run.ok("calibrate", response_file, "-o", tmp_path / "new", *QUICK)
    run.fails(1, "is a bank already; replace it (--force)", "calibrate", response_file, "-o", tmp_path / "new", *QUICK)
    outcome = run.ok("calibrate", response_file, "-o", tmp_path / "new", "--force", *QUICK)
    assert f"Next: itembank select {tmp_path / 'new'} -n 8 -o selection.json" in outcome.err  # 40 items have no 100
    run.ok("select", tmp_path / "new", "-n", 8)


def test_too_few_models_for_an_item_model_begin_a_bank_of_their_items(run, tmp_path):
    few = make_bank(n_models=2).responses
    ib.write_responses(few, tmp_path / "responses.parquet")
    words = ("calibrate", tmp_path / "responses.parquet", "-o", tmp_path / "new")
    run.fails(2, "--method goes with results of 3 models or more", *words, "--method", "map")
    assert not (tmp_path / "new").exists()
    outcome = run(*words)
    assert (outcome.code, "An item model needs 3 models, got 2" in outcome.err) == (0, True)
    bank = ib.load_bank(tmp_path / "new")
    assert (bank.calibration.is_fitted, bank.item_ids) == (False, few.item_ids)


def test_dimensions_are_chosen_unless_given_or_the_item_model_has_one(run, response_file, tmp_path):
    outcome = run.ok("-v", "calibrate", response_file, "-o", tmp_path / "new", "--no-folds")
    said = "Calibrated [0-9]+ items on [0-9]+ past models; .* [0-9.]+ points \\(cross-validated\\)\n"
    assert re.match(said, outcome.out)
    chosen = ib.load_bank(tmp_path / "new").calibration.n_dims
    holds(outcome.err, f"{chosen} dimension", "mean error of held-out scores")
    outcome = run.ok("calibrate", response_file, "-o", tmp_path / "other", "--item-model", "2pl", "--no-folds")
    assert ib.load_bank(tmp_path / "other").calibration.n_dims == 1
    assert "held-out" not in outcome.err


def test_too_few_models_or_items_to_choose_take_one_dimension(run, tmp_path):
    ib.write_responses(make_bank(n_models=9, n_items=40).responses, tmp_path / "few.parquet")
    run.ok("calibrate", tmp_path / "few.parquet", "-o", tmp_path / "new")
    assert ib.load_bank(tmp_path / "new").calibration.n_dims == 1
    assert run("calibrate", tmp_path / "few.parquet", "-o", tmp_path / "other", "--dims", "auto").code == 1
    ib.write_responses(ib.ResponseMatrix.create(np.arange(30.0)[:, None] % 2), tmp_path / "one.parquet")
    outcome = run.ok("-v", "calibrate", tmp_path / "one.parquet", "-o", tmp_path / "one", "--no-folds")
    assert "1 dimension: one item is too few to choose more." in outcome.err
    assert ib.load_bank(tmp_path / "one").calibration.item_model == "2pl"
    asked = run("calibrate", tmp_path / "one.parquet", "-o", tmp_path / "other", "--dims", "auto")
    assert (asked.code, (tmp_path / "other").exists()) == (1, False)
    assert "--dims 1" in asked.err


def test_files_that_share_no_item_are_told(run, tmp_path):
    responses = make_bank(n_models=9, n_items=20).responses
    ib.write_responses(responses.take(models=np.arange(8)), tmp_path / "past.parquet")
    other = responses.responses[8:]
    apart = ib.ResponseMatrix.create(other, model_ids=["other"], item_ids=[f"x{k}" for k in range(20)])
    ib.write_responses(apart, tmp_path / "b.parquet")
    outcome = run("calibrate", tmp_path / "past.parquet", tmp_path / "b.parquet", "-o", tmp_path / "new", "--no-folds")
    holds(outcome.err, "share no items", "'other': a bank cannot bring them onto one scale. Do files spell the ids")


@pytest.mark.parametrize(
    ("content", "options", "n_dims", "kept"),
    [
        ("", ("--item-model", "nested"), 4, {}),
        ("general_weight = 0.25\nn_dims = 2", ("--item-model", "nested", "--dims", 3), 3, {"general_weight": 0.25}),
        ('degenerate = "majority"\nitem_model = "nested"', (), 4, {"degenerate": "majority"}),
    ],
)
def test_nested_banks(run, response_file, tmp_path, content, options, n_dims, kept):
    words = ("--method", "map", "--no-folds", *options, *spec_file(tmp_path, content))
    run.ok("calibrate", response_file, "-o", tmp_path / "new", *words)
    calibration = ib.load_bank(tmp_path / "new").calibration
    assert (calibration.item_model, calibration.n_dims, calibration.options) == ("nested", n_dims, kept)


def test_the_dimensions_of_a_nested_bank_are_chosen_on_request(run, response_file, tmp_path):
    given = ("--method", "map", "--no-folds", "--item-model", "nested", "--dims", "auto")
    outcome = run.ok("-v", "calibrate", response_file, "-o", tmp_path / "new", *given)
    assert "mean error of held-out scores" in outcome.err
    calibration = ib.load_bank(tmp_path / "new").calibration
    assert calibration.item_model == "nested"
    assert calibration.n_dims >= 2


@pytest.mark.parametrize(
    ("options", "item_model", "n_dims", "kept"),
    [
        (("--item-model", "nested", "--dims", 2), "nested", 2, {}),
        (("--dims", 1, "--spec", "by-task.toml"), "2pl", 1, {"by_task": True}),
    ],
)
def test_nested_and_by_task(run, response_file, tmp_path, monkeypatch, options, item_model, n_dims, kept):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "by-task.toml").write_text("by_task = true")
    run.ok("calibrate", response_file, "-o", tmp_path / "new", *options)
    bank = ib.load_bank(tmp_path / "new")
    calibration = bank.calibration
    assert (calibration.item_model, calibration.n_dims, calibration.options) == (item_model, n_dims, kept)
    assert {fold.bank.calibration.item_model for fold in folds(bank)} == {item_model}


def test_items_that_only_the_threshold_makes_alike_are_told_so(run, response_file, tmp_path):
    given = make_bank(n_models=25, n_items=40).responses
    values = given.responses * np.where(given.responses == 1.0, np.linspace(0.8, 1.0, 40), 1.0)
    values[:, 0] = np.linspace(0.9, 1.0, 25)
    shares = ib.ResponseMatrix.create(values, models=given.models, items=given.items)
    ib.write_responses(shares, tmp_path / "shares.parquet")
    for path, words in ((response_file, "all"), (tmp_path / "shares.parquet", "after the threshold, all")):
        for command in (("calibrate", path, "-o", tmp_path / path.stem, *QUICK), ("info", tmp_path / path.stem)):
            found = re.findall(r"n_degenerate_items +\d+ \((.*) models answered alike\)", run.ok(*command).out)
            assert found in ([words], []), command
    assert found == [words]


N_MODELS, N_ITEMS = 20, 12


def simulated_chances(seed=0):
    rng = np.random.default_rng(seed)
    chances = expit(rng.normal(size=(N_MODELS, 1)) - rng.normal(size=N_ITEMS))
    return rng, chances, ["math"] * 6 + ["law"] * 6


@pytest.fixture
def probabilities(tmp_path):
    rng, chances, scenarios = simulated_chances()
    values = np.clip(rng.beta(20 * chances, 20 * (1 - chances)), 1e-4, 1 - 1e-4)
    ib.write_responses(ib.ResponseMatrix.create(values, scenarios=scenarios), tmp_path / "probabilities.parquet")
    return tmp_path / "probabilities.parquet"


@pytest.fixture
def counts(tmp_path):
    rng, chances, scenarios = simulated_chances()
    values = rng.binomial(8, chances) / 8
    trials = np.full(values.shape, 8)
    matrix = ib.ResponseMatrix.create(values, n_trials=trials, scenarios=scenarios)
    ib.write_responses(matrix, tmp_path / "counts.parquet")
    return tmp_path / "counts.parquet"


def calibrated(run, source, tmp_path, *options):
    run.ok("calibrate", source, "-o", tmp_path / "bank", "--no-folds", "--item-model", "2pl", *options)
    return ib.load_bank(tmp_path / "bank")


def test_probabilities_have_a_precision_for_each_scenario(run, probabilities, tmp_path):
    bank = calibrated(run, probabilities, tmp_path, "--family", "beta")
    assert (bank.parameters.family, np.unique(bank.parameters.precision).size) == ("beta", 2)
    content = run.json("info", tmp_path / "bank")
    assert content["family"] == "beta"
    shown = [row["precision"] for row in content["scenarios"]]
    np.testing.assert_allclose(shown[:2], bank.parameters.precision[[0, -1]])
    assert shown[2] == pytest.approx(np.sqrt(shown[0] * shown[1]))


@pytest.mark.parametrize(("given", "expected"), [("'global'", None), ("12.5", 12.5)])
def test_a_precision_can_be_common_or_given(run, probabilities, tmp_path, given, expected):
    bank = calibrated(run, probabilities, tmp_path, "--family", "beta", *spec_file(tmp_path, f"precision = {given}"))
    (found,) = np.unique(bank.parameters.precision)
    if expected is not None:
        assert found == expected
        assert bank.calibration.log_precision_error is None


def test_known_trials_make_counts_and_positive_slopes_mean_one_ability(run, counts, tmp_path):
    bank = calibrated(run, counts, tmp_path)
    assert (bank.parameters.family, dict(bank.calibration.thresholds)) == ("binomial", {})
    positive = spec_file(tmp_path, "positive_discrimination = true")
    run.ok("calibrate", counts, "-o", tmp_path / "one", "--no-folds", *positive)
    calibration = ib.load_bank(tmp_path / "one").calibration
    assert (calibration.item_model, calibration.options["positive_discrimination"]) == ("2pl", True)


@pytest.fixture
def items(tmp_path):
    return table(tmp_path / "items.csv")


def table(path, n_items=80):
    rows = [f"q{number},{'ab'[number % 2]}\n" for number in range(n_items)]
    path.write_text("item_id,scenario\n" + "".join(rows))
    return path


def results(path, models, rng, n_items=80):
    rows = [f"{model},q{number},{int(rng.random() < 0.6)}\n" for model in models for number in range(n_items)]
    path.write_text("model_id,item_id,response\n" + "".join(rows))
    return path


def test_from_items_alone_to_an_estimate(run, tmp_path, rng):
    items = table(tmp_path / "items.csv", 240)
    outcome = run.ok("calibrate", "--items", items, "-o", tmp_path / "bank", "--format", "json")
    row = outcome.json["rows"][0]
    assert (row["n_models"], row["n_items"], row["method"]) == (0, 240, "few-models")
    assert row["half_width"] > row["half_width_3_models"] > row["half_width_10_models"]
    assert "More models that run all items narrow this to" in outcome.err
    run.ok("select", tmp_path / "bank", "-n", 40, "-o", tmp_path / "s.json")
    new = results(tmp_path / "new.csv", ["new"], rng, 240)
    outcome = run.ok("estimate", tmp_path / "bank", new, "--selection", tmp_path / "s.json", "--format", "json")
    assert {row["interval"] for row in outcome.json["rows"]} == {"design"}


def test_a_second_bank_takes_the_first_results(run, tmp_path, items, rng):
    past = results(tmp_path / "past.csv", ["m1", "m2"], rng)
    run.ok("calibrate", past, "--items", items, "-o", tmp_path / "bank")
    run.fails(1, "--force", "calibrate", past, "--items", items, "-o", tmp_path / "bank")
    run.ok("calibrate", past, "--items", items, "-o", tmp_path / "bank", "--force")


def test_a_bank_without_models_is_shown_checked_and_used(run, tmp_path, items, rng):
    outcome = run("calibrate", "--items", items, "-o", tmp_path / "bank")
    assert ("all 80 items needs no interval" in outcome.err, "+-0.0" in outcome.err) == (True, False)
    assert "few-models" in run.ok("info", tmp_path / "bank").out
    outcome = run("check", tmp_path / "bank", results(tmp_path / "new.csv", ["new"], rng), "-n", 40)
    assert outcome.code in {0, 3}
    assert "Traceback" not in outcome.err
    assert np.char.count(outcome.out, "new") > 0
    table = results(tmp_path / "my-model.csv", ["m"], rng)
    table.write_text("".join(line.partition(",")[2] for line in table.read_text().splitlines(keepends=True)))
    outcome = run("estimate", tmp_path / "bank", table, "--format", "json")
    assert {row["model_id"] for row in outcome.json["rows"]} == {"my-model"}
    assert "no column names a model, so that these are the results of one: 'my-model'" in outcome.err


def test_from_the_file_of_tiny_benchmarks_to_the_estimate_of_a_log(run, tmp_path, rng):
    write_tiny_benchmarks(tmp_path / "tinyBenchmarks.pkl")
    words = ("calibrate", "--items", tmp_path / "tinyBenchmarks.pkl", "--parameters")
    command = (*words, "-o", tmp_path / "bank")
    run.fails(2, "must be named (--benchmark NAME). There are 'lb' (scenarios 'truthfulqa', 'arc'); 'mmlu'", *command)
    outcome = run.ok(*words, "--benchmark", "mmlu", "-o", tmp_path / "bank")
    assert f"itembank estimate {tmp_path / 'bank'} RESULTS" in outcome.err
    assert ib.Selection.load(tmp_path / "bank" / "selection.json").item_ids[9] == "tinyMMLU/9"
    assert "known-parameters" in run("info", tmp_path / "bank").out
    right = (rng.random(10) < 0.6).astype(float).tolist()
    # of a run whose results_*.json is not there; the folder tells the model, as lm_eval names it
    log = write_run(tmp_path, "org/m", {"tinyMMLU": log_answers(*right, metric="acc_norm")}, results=False)
    outcome = run.ok("estimate", tmp_path / "bank", *log.glob("samples_tinyMMLU_*.jsonl"), "--format", "json")
    rows = outcome.json["rows"]
    assert {(row["model_id"], row["method"], row["interval"]) for row in rows} == {("org/m", "gp-irt", "model-based")}
    assert rows[0]["estimate"] == ib.estimate(tmp_path / "bank", right).scores.value[0, 0]
    assert "no past models, whose errors could calibrate intervals" in outcome.err


TASK_SIZES = {"arc": 20, "gsm8k": 15}


def samples_of(rng, ability, task, doc_ids, *, content=""):
    """Samples of a model with a better and a worse metric; hard items have high numbers."""
    rows = []
    for number in doc_ids:
        right = float(rng.random() < 1 / (1 + np.exp(0.3 * (number - 10) - ability)))
        rows.append(sample(number, acc=0.0, acc_norm=right, doc=f"{content}{task} question {number}"))
    return rows


@pytest.fixture
def logs_bank(run, tmp_path):
    rng = np.random.default_rng(5)
    for k in range(24):
        tasks = {task: samples_of(rng, rng.normal(), task, range(n)) for task, n in TASK_SIZES.items()}
        write_run(tmp_path / "logs", f"org/m{k}", tasks)
    run.ok("import", tmp_path / "logs", "-o", tmp_path / "r.parquet", "--metric", "acc_norm")
    run.ok("calibrate", tmp_path / "r.parquet", "-o", tmp_path / "bank", *QUICK)
    return tmp_path / "bank"


def test_a_run_of_the_selected_items_is_estimated_with_the_metric_of_the_bank(run, logs_bank, tmp_path):
    run.ok("select", logs_bank, "-n", 12, "-o", tmp_path / "selection.json")
    chosen = chosen_documents(ib.Selection.load(tmp_path / "selection.json").item_ids)
    tasks = {task: samples_of(np.random.default_rng(1), 0.5, task, ids) for task, ids in chosen.items()}
    log = write_run(tmp_path / "new", "org/new", tasks, sizes=TASK_SIZES)
    outcome = run.json("estimate", logs_bank, log, "--selection", tmp_path / "selection.json", "--method", "mean")
    rows = {row["target"]: row for row in outcome["rows"]}
    for task, samples in tasks.items():
        assert rows[task]["n_items"] == len(samples)
        assert rows[task]["estimate"] == pytest.approx(np.mean([row["acc_norm"] for row in samples]))
    (tmp_path / "new.csv").write_text("model_id,arc/0,arc/1,arc/2,gsm8k/0\nnew,1,,0,1\n")
    outcome = run.json("estimate", logs_bank, tmp_path / "new.csv", "--method", "mean")
    rows = {row["target"]: row for row in outcome["rows"]}
    assert (rows["arc"]["estimate"], rows["arc"]["n_items"]) == (0.5, 2)
    samples = samples_of(np.random.default_rng(1), 0.5, "arc", range(20), content="rewritten ")
    log = write_run(tmp_path / "changed", "org/new", {"arc": samples})
    run.fails(1, "got 20 of 20 with another: 'arc/0'", "estimate", logs_bank, log)
