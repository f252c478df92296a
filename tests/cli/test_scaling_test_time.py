import pytest

from itembank.bank.bank_files import save_bank
from itembank.responses.response_files import write_responses
from tests.cli.conftest import spec_file
from tests.scaling.samples import known_bank, simulated_samples

QUICK = ("scaling", "test-time")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Samples of twelve models, and a bank that knows the items."""
    made = tmp_path_factory.mktemp("samples")
    samples = simulated_samples(n_models=12, n_items=24, n_trials=100)
    write_responses(samples.responses, made / "samples.parquet")
    save_bank(known_bank(samples), made / "bank")
    return made


@pytest.fixture
def samples_file(folder):
    return folder / "samples.parquet"


def test_curves_as_a_table_and_as_a_figure(run, samples_file, tmp_path):
    outcome = run.ok(*QUICK, samples_file, "--k", "1,10,1e4", "--model", "model-2", "--figure", tmp_path / "curves.png")
    first, *lines = [line for line in outcome.out.splitlines() if "model-2" in line]
    score, low, _, high = lines[-1].split()[3:7]
    assert first.startswith("pass@10000 of model-2 on ")
    assert first.endswith(f" should be {score} points ({low} to {high})")
    assert [line.split()[2] for line in lines] == ["1", "10", "10000"]
    assert "95 % interval" in outcome.out
    assert " to " in lines[0]
    assert lines[-1].split()[-1] == "-"  # the unbiased estimate has no value there, and a note says why
    assert "unbiased estimate has no value" in outcome.err
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_json_has_every_table(run, samples_file, folder):
    words = (*QUICK, samples_file, "--bank", folder / "bank", "--k", "1,10", "--budget", 20, "--model", "model-1")
    whole = run.json(*words)
    assert {"methods", "budget", "notes", "curves", "errors", "tail"} <= set(whole)
    assert len(whole["curves"]) == 2 * 6
    assert whole["tail"][0]["n_correct"] == 0
    assert [row["method"] for row in whole["errors"] if row["items"] == "all"] == whole["methods"]
    notes = run(*words, *spec_file(folder, 'interval = "model-based"')).err
    assert "Note: estimates use 20 samples" in notes
    assert "rest on the item model" in notes
    assert any("as wide as the item model says" in text for text in whole["notes"])


def test_the_bank_tells_of_models_it_knows(run, samples_file, folder):
    outcome = run(*QUICK, samples_file, "--bank", folder / "bank", "--k", "1", "--model", "model-1")
    assert "among the past models of this bank" in outcome.err


@pytest.mark.usefixtures("without_library")
def test_rows_of_single_samples_are_counted(run, tmp_path):
    """One row a sample: three models, four items, ten samples each."""
    lines = ["model_id,item_id,seed,response"]
    lines += [
        f"m{m},q{q},{seed},{int((seed * (q + 1)) % 7 < m + q)}"
        for m in range(3)
        for q in range(4)
        for seed in range(10)
    ]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    counted = tmp_path / "counted.parquet"
    run.ok("import", tmp_path / "long.csv", "--repeats", "count", "-o", counted)
    outcome = run.ok(*QUICK, counted, "--k", "5", "--method", "unbiased", "--format", "csv")
    assert len(outcome.out.splitlines()) == 4


def test_data_that_cannot_tell_fails(run, samples_file, tmp_path):
    outcome = run(*QUICK, samples_file, "--budget", 101)
    assert (outcome.code, outcome.out) == (1, "")
    assert "budget must be at most" in outcome.err
    (tmp_path / "shares.csv").write_text("model_id,item_id,response\na,q,0.5\nb,q,0.25\nc,q,0.75\n")
    outcome = run(*QUICK, tmp_path / "shares.csv")
    assert outcome.code == 1
    assert "n_correct and n_trials" in outcome.err
    outcome = run(*QUICK, "--builtin", "classifiers")
    assert "without counts" in outcome.err
