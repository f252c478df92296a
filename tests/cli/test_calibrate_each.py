import csv
import io
import json

import pytest

from itembank.bank.bank_files import load_bank
from itembank.calibration.build import build_bank
from itembank.errors import DataWarning, warn
from itembank.responses.response_files import write_responses
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")

EACH = ("--each", "--method", "map", "--dims", 1, "--no-folds")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three files of results, of which the second holds none."""
    folder = tmp_path_factory.mktemp("results")
    for name, n_items in (("arc", 30), ("mmlu", 40)):
        write_responses(make_bank(n_models=20, n_items=n_items).responses, folder / f"{name}.parquet")
    (folder / "broken.csv").write_text("model_id,item_id\na,b\n", encoding="utf-8")
    return folder


def test_each_file_becomes_a_bank_and_one_that_fails_stops_no_other(run, results, tmp_path):
    files = [results / name for name in ("arc.parquet", "broken.csv", "mmlu.parquet")]
    outcome = run("calibrate", *files, "-o", tmp_path / "banks", *EACH, "--format", "json")
    assert outcome.code == 1
    rows = json.loads(outcome.out)
    assert [(row["name"], row["status"]) for row in rows] == [("arc", "made"), ("broken", "failed"), ("mmlu", "made")]
    assert "got none called 'response'" in rows[1]["error"]
    assert rows[1]["bank"] is None
    assert "Error: broken: " in outcome.err
    assert sorted(path.name for path in (tmp_path / "banks").iterdir()) == ["arc", "mmlu"]
    for row in (rows[0], rows[2]):
        bank = load_bank(tmp_path / "banks" / row["name"])
        assert (row["bank"], row["n_items"], row["error"]) == (bank.bank_id, bank.n_items, None)


def same_as_alone(run, files, folder, *more):
    outcome = run("calibrate", *files, "-o", folder / "banks", *EACH, *more)
    assert outcome.code == 0, outcome.err
    assert run("calibrate", files[0], "-o", folder / "alone", *EACH[1:]).code == 0
    alone, bank = load_bank(folder / "alone"), load_bank(folder / "banks" / files[0].stem)
    return bank.bank_id == alone.bank_id and (bank.parameters.loadings == alone.parameters.loadings).all()


def test_a_bank_is_that_of_a_single_call(run, results, tmp_path):
    assert same_as_alone(run, [results / "arc.parquet"], tmp_path)


@pytest.mark.slow
def test_a_bank_is_that_of_a_single_call_in_processes_as_well(run, results, tmp_path):
    assert same_as_alone(run, [results / "arc.parquet", results / "mmlu.parquet"], tmp_path, "--jobs", 2)


def test_banks_that_stand_there_are_kept_and_made_anew_on_request(run, results, tmp_path):
    call = ("calibrate", results / "arc.parquet", results / "mmlu.parquet", "-o", tmp_path, *EACH, "--format", "csv")

    def statuses(*more):
        outcome = run(*call, *more)
        assert outcome.code == 0, outcome.err
        rows = list(csv.DictReader(io.StringIO(outcome.out)))
        return [row["status"] for row in rows], [row["bank"] for row in rows], outcome.err

    assert statuses()[0] == ["made", "made"]
    (tmp_path / "mmlu").rename(tmp_path / "elsewhere")
    kept, banks, err = statuses()
    assert kept == ["kept", "made"]
    assert "1 of 2 banks stood there already" in err
    assert statuses("--force")[:2] == (["made", "made"], banks)


def test_folds_that_a_stop_left_out_are_made_for_a_kept_bank(run, results, tmp_path):
    call = ("calibrate", results / "arc.parquet", "-o", tmp_path, "--each", "--method", "map", "--dims", 1)
    assert run(*call, "--no-folds").code == 0
    assert not (tmp_path / "arc" / "cache").exists()
    assert run(*call).code == 0
    assert any((tmp_path / "arc" / "cache").iterdir())


def test_a_damaged_bank_is_told_and_stands(run, results, tmp_path):
    call = ("calibrate", results / "arc.parquet", "-o", tmp_path, *EACH)
    assert run(*call).code == 0
    (tmp_path / "arc" / "arrays.safetensors").write_bytes(b"")
    outcome = run(*call)
    assert outcome.code == 1
    assert "Error: arc: " in outcome.err
    assert "failed" in outcome.out


def test_two_of_one_name_are_refused(run, results, tmp_path):
    other = tmp_path / "arc.csv"
    other.write_text("", encoding="utf-8")
    outcome = run("calibrate", results / "arc.parquet", other, "-o", tmp_path / "banks", *EACH)
    assert outcome.code == 2
    assert "their names must differ" in outcome.err
    assert not (tmp_path / "banks").exists()


def test_a_folder_that_is_a_bank_is_refused(run, results, tmp_path):
    assert run("calibrate", results / "arc.parquet", "-o", tmp_path / "bank", *EACH[1:]).code == 0
    outcome = run("calibrate", results / "arc.parquet", "-o", tmp_path / "bank", *EACH)
    assert outcome.code == 2
    assert "must name a folder for several" in outcome.err


def test_a_folder_of_something_else_is_not_written_over(run, results, tmp_path):
    (tmp_path / "arc").mkdir()
    (tmp_path / "arc" / "notes.txt").write_text("mine", encoding="utf-8")
    outcome = run("calibrate", results / "arc.parquet", "-o", tmp_path, *EACH)
    assert outcome.code == 1
    assert "is not a bank" in outcome.err
    assert (tmp_path / "arc" / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_warnings_say_of_which_bank(run, results, tmp_path, monkeypatch):
    def warning_too(*arguments, **options):
        warn("something is odd", DataWarning)
        return build_bank(*arguments, **options)

    monkeypatch.setattr("itembank.build_bank", warning_too)
    outcome = run("calibrate", results / "arc.parquet", results / "mmlu.parquet", "-o", tmp_path / "b", *EACH)
    assert "Warning: arc: something is odd" in outcome.err
    assert "Warning: mmlu: something is odd" in outcome.err
