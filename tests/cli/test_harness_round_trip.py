"""From logs of the harness to an estimate from a run of the selected items alone."""

import numpy as np
import pytest

from itembank.bank.selections import Selection
from itembank.harnesses.id_forms import chosen_documents
from tests.readers.logs import sample, write_run

pytestmark = pytest.mark.usefixtures("few_folds")

N_ITEMS = {"arc": 20, "gsm8k": 15}
QUICK = ("--method", "map", "--dims", 1, "--no-folds")


def answers(rng, ability, task, doc_ids, *, content=""):
    """Samples of a model with a better and a worse metric; hard items have high numbers."""
    rows = []
    for number in doc_ids:
        right = float(rng.random() < 1 / (1 + np.exp(0.3 * (number - 10) - ability)))
        rows.append(sample(number, acc=0.0, acc_norm=right, doc=f"{content}{task} question {number}"))
    return rows


@pytest.fixture
def bank(run, tmp_path):
    rng = np.random.default_rng(5)
    for k in range(24):
        tasks = {task: answers(rng, rng.normal(), task, range(n)) for task, n in N_ITEMS.items()}
        write_run(tmp_path / "logs", f"org/m{k}", tasks)
    run.ok("import", tmp_path / "logs", "-o", tmp_path / "r.parquet", "--metric", "acc_norm")
    run.ok("calibrate", tmp_path / "r.parquet", "-o", tmp_path / "bank", *QUICK)
    return tmp_path / "bank"


def test_a_run_of_the_selected_items_is_estimated_with_the_metric_of_the_bank(run, bank, tmp_path):
    run.ok("select", bank, "-n", 12, "-o", tmp_path / "selection.json")
    chosen = chosen_documents(Selection.load(tmp_path / "selection.json").item_ids)
    tasks = {task: answers(np.random.default_rng(1), 0.5, task, ids) for task, ids in chosen.items()}
    log = write_run(tmp_path / "new", "org/new", tasks, sizes=N_ITEMS)
    outcome = run.json("estimate", bank, log, "--selection", tmp_path / "selection.json", "--method", "mean")
    rows = {row["target"]: row for row in outcome["rows"]}
    for task, samples in tasks.items():
        assert rows[task]["n_items"] == len(samples)
        assert rows[task]["estimate"] == pytest.approx(np.mean([row["acc_norm"] for row in samples]))


def test_a_run_of_changed_items_is_refused(run, bank, tmp_path):
    samples = answers(np.random.default_rng(1), 0.5, "arc", range(20), content="rewritten ")
    log = write_run(tmp_path / "new", "org/new", {"arc": samples})
    outcome = run("estimate", bank, log)
    assert (outcome.code, outcome.out) == (1, "")
    assert "got 20 of 20 with another: 'arc/0'" in outcome.err


def test_a_wide_table_of_the_items_that_were_run_is_estimated(run, bank, tmp_path):
    (tmp_path / "new.csv").write_text("model_id,arc/0,arc/1,arc/2,gsm8k/0\nnew,1,,0,1\n")
    outcome = run.json("estimate", bank, tmp_path / "new.csv", "--method", "mean")
    rows = {row["target"]: row for row in outcome["rows"]}
    assert (rows["arc"]["estimate"], rows["arc"]["n_items"]) == (0.5, 2)
