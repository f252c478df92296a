import json
import re
import shutil

import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import ParameterError
from itembank.sessions.limits import Budget
from itembank.sessions.preparation import prepare, prepare_sessions
from itembank.sessions.session import AdaptiveSession
from itembank.sessions.session_spec import SessionSpec
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture
def bank_folder(tmp_path, user_cache):
    """Return a bank of which nothing is kept yet; all tests have the same."""
    shutil.rmtree(user_cache, ignore_errors=True)
    save_bank(make_bank(), tmp_path / "bank")
    return tmp_path / "bank"


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def heard(work):
    said = []
    work(lambda text, share: said.append((text, share)))
    return said


def test_what_was_prepared_goes_with_the_bank(run, bank_folder, tmp_path, user_cache):
    outcome = run("prepare", bank_folder, "--format", "json")
    assert outcome.code == 0
    assert json.loads(outcome.out) == [{"bank": load_bank(bank_folder).bank_id, "models": 12, "fits": 3}]
    assert "prepare: fitting without models" in outcome.err
    shutil.rmtree(user_cache)
    shutil.move(bank_folder, tmp_path / "elsewhere")
    assert heard(lambda progress: prepare(tmp_path / "elsewhere", progress=progress)) == []


def test_a_bank_of_few_models_has_nothing_to_prepare(run, tmp_path):
    save_bank(make_bank(n_models=8), tmp_path / "bank")
    outcome = run("prepare", tmp_path / "bank", "--format", "json")
    assert json.loads(outcome.out)[0]["fits"] == 0
    assert "too few models" in outcome.err


def test_verbs_that_read_a_bank_leave_its_folder_as_it_is(bank_folder, user_cache):
    """Also where it cannot be written: what was found is found again by the next."""
    before = contents(bank_folder)
    spec = SessionSpec(budget=Budget(n_items=3))
    assert heard(lambda progress: prepare_sessions(bank_folder, spec, progress=progress))
    assert contents(bank_folder) == before
    names = [re.sub("^fold-[0-9a-f]+-", "without some models ", path.name) for path in contents(user_cache)]
    kinds = {name.rpartition("-")[0] or name.removesuffix(".safetensors") for name in names}
    of_parts = {"factor-model", "discrepancy", "siblings"}
    without = {f"without some models {name}" for name in of_parts}
    assert kinds == {"folds", "past-sessions", "past-sessions-expected"} | of_parts | without
    assert heard(lambda progress: prepare_sessions(bank_folder, spec, progress=progress)) == []


def test_sessions_prepared_with_the_bank_go_with_it(bank_folder, user_cache):
    spec = SessionSpec(budget=Budget(n_items=3))
    first = prepare_sessions(bank_folder, spec, keep_in_bank=True)
    shutil.rmtree(user_cache)
    again = []
    second = prepare_sessions(bank_folder, spec, progress=lambda *said: again.append(said))
    assert again == []
    assert (first.past.value.tobytes(), first.past.truth.tobytes()) == (
        second.past.value.tobytes(),
        second.past.truth.tobytes(),
    )


def test_a_bank_in_memory_has_no_folder_to_keep_it_in():
    with pytest.raises(ParameterError, match="save_bank"):
        prepare(make_bank(), keep_in_bank=True)


def test_a_session_takes_what_was_prepared_and_nothing_else(bank_folder):
    with pytest.raises(ParameterError, match=r"prepare_sessions\(bank, SessionSpec"):
        AdaptiveSession(load_bank(bank_folder))
