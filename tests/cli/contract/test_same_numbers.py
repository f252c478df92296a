"""A command and the verb of the same name, both without choices, give the same to the last digit."""

import numpy as np
import pytest

import itembank as ib
import itembank_studies
from tests.calibration.test_dimensions import simulated

pytestmark = [pytest.mark.filterwarnings("ignore:.*answer like another one"), pytest.mark.usefixtures("few_folds")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of past models, which differ in two abilities, and of a new one."""
    path = tmp_path_factory.mktemp("doors")
    everyone = simulated(41, 150, 2, seed=4)
    ib.write_responses(everyone.take(models=np.arange(40)), path / "past.parquet")
    ib.write_responses(everyone.take(models=np.array([40])), path / "new.parquet")
    return path


@pytest.fixture(scope="module")
def bank(folder):
    return ib.calibrate(folder / "past.parquet")


@pytest.fixture
def calibrated(run, folder):
    """The bank as the command writes it."""
    if not (folder / "bank").exists():
        run.ok("calibrate", folder / "past.parquet", "-o", folder / "bank")
    return folder / "bank"


def rows(run, *arguments, name="rows"):
    done = run(*arguments, "--format", "json")
    assert done.code in {0, 3}, done.err
    return done.json[name]


def test_banks(bank, calibrated):
    assert bank.calibration.n_dims > 1  # not the one dimension of a spec's default
    assert ib.load_bank(calibrated).bank_id == bank.bank_id
    np.testing.assert_array_equal(ib.load_bank(calibrated).parameters.loadings, bank.parameters.loadings)


def test_banks_of_two_models(run, tmp_path):
    """The command began a bank of two models' counts, and the verb fitted an item model."""
    counts = ib.ResponseMatrix.create(np.array([[0.5, 0.75, 0.0], [1.0, 0.25, 0.5]]), n_trials=np.full((2, 3), 4))
    ib.write_responses(counts, tmp_path / "past.parquet")
    run.ok("calibrate", tmp_path / "past.parquet", "-o", tmp_path / "bank")
    with pytest.raises(ib.errors.DataError, match=r"few: ib\.banks\.start\(responses\.items, responses\)"):
        ib.calibrate(counts)
    assert ib.banks.start(counts.items, counts).bank_id == ib.load_bank(tmp_path / "bank").bank_id


@pytest.mark.parametrize("method", ["auto", "random", "anchor-irt"])
def test_selections(run, bank, calibrated, method):
    done = run.json("select", calibrated, "-n", 20, "--method", method)
    assert done["items"] == ib.select(bank, 20, method=method).to_dict()["items"]


def test_estimates(run, folder, bank, calibrated):
    ib.select(bank, 20).save(folder / "selection.json")
    arguments = (folder / "new.parquet", "--selection", folder / "selection.json")
    made = ib.estimate(bank, folder / "new.parquet", selection=folder / "selection.json")
    assert rows(run, "estimate", calibrated, *arguments) == made.rows()


def test_plans(run, bank, calibrated):
    assert rows(run, "plan", calibrated, "--half-width", 0.1, name="sizes") == ib.plan(bank, half_width=0.1).rows()


def test_checks(run, folder, bank, calibrated):
    checked = ib.diagnostics.check_bank(bank, folder / "new.parquet").rows()
    assert rows(run, "check", calibrated, folder / "new.parquet", "--only", "accuracy", name="scores") == checked


def test_sessions(run, tmp_path, bank, calibrated):
    run.ok("session", "start", calibrated, "-o", tmp_path / "a.jsonl", "--model-id", "new")
    asked = rows(run, "session", "ask", tmp_path / "a.jsonl", "-n", 9, name="items")
    with ib.start_session(tmp_path / "b.jsonl", bank, model_id="new") as session:
        assert [row["item_id"] for row in asked] == list(session.ask(9))


def test_sessions_of_a_bank_that_was_published_with_its_items(run, tmp_path, bank):
    chosen = ib.select(bank, 12)
    published = ib.publishing.without_responses(bank, selections=[chosen])
    published.save(tmp_path / "bank")
    command = ("session", "start", tmp_path / "bank", "-o", tmp_path / "a.jsonl", "--model-id", "new")
    assert "Only items that the bank was published with" in run(*command).err
    asked = rows(run, "session", "ask", tmp_path / "a.jsonl", "-n", 30, name="items")
    with ib.start_session(tmp_path / "b.jsonl", published, model_id="new") as session:
        items = session.ask(30)
    assert sorted(items) == sorted(row["item_id"] for row in asked) == sorted(chosen.item_ids)


def test_banks_with_items_retired(run, tmp_path, bank, calibrated):
    command = ("bank", "retire", calibrated, bank.item_ids[3], "--reason", "wrong key", "-o", tmp_path / "bank")
    run.ok(*command)
    retired = ib.banks.retire(bank, [bank.item_ids[3]], reason="wrong key")
    assert ib.load_bank(tmp_path / "bank").bank_id == retired.bank_id


def test_small_subsets(run, tmp_path, bank, calibrated):
    run.ok("publish-tiny", calibrated, "-n", 20, "-o", tmp_path / "a")
    ib.publishing.publish_tiny(bank, tmp_path / "b", 20)
    first, second = (ib.load_bank(tmp_path / name) for name in "ab")
    assert first.bank_id == second.bank_id
    assert first.items_to_run.item_ids == second.items_to_run.item_ids


def test_simulations(run, tmp_path):
    shape = ("--n-models", 5, "--n-items", 40, "--n-tasks", 2)
    run.ok("simulate", "-o", tmp_path / "made.parquet", *shape)
    made = itembank_studies.simulate(itembank_studies.SimulationSpec(n_models=5, n_items=40, n_tasks=2)).responses
    np.testing.assert_array_equal(ib.read_responses(tmp_path / "made.parquet").responses, made.responses)
