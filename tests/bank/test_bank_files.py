import dataclasses
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from itembank.bank.bank_checks import bank_problems
from itembank.bank.bank_files import load_bank, save_bank
from itembank.bank.banks import bank_fingerprint, data_fingerprint
from itembank.errors import BankError, IntegrityError
from tests.bank.banks import make_bank, with_family
from tests.bank.crafted_banks import FURTHER, REVIEWED, craft, first
from tests.living.living import retired_bank


def assert_same(first, second, path=""):
    """Compare two results field by field, exactly."""
    if dataclasses.is_dataclass(first):
        for field in filter(lambda field: field.compare, dataclasses.fields(first)):  # not what is only remembered
            assert_same(getattr(first, field.name), getattr(second, field.name), f"{path}.{field.name}")
    elif isinstance(first, np.ndarray):
        np.testing.assert_array_equal(first, second, err_msg=path)
        assert first.dtype == second.dtype, path
    elif isinstance(first, pl.DataFrame):
        assert first.equals(second), path
    elif isinstance(first, dict):
        assert first.keys() == second.keys(), path
        for key in first:
            assert_same(first[key], second[key], f"{path}[{key}]")
    else:
        assert first == second, path


@pytest.mark.parametrize("with_extras", [False, True])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_what_is_written_is_read_back(tmp_path, with_extras, n_dims):
    bank = make_bank(n_dims=n_dims, with_extras=with_extras)
    save_bank(bank, tmp_path / "bank")
    assert_same(bank, load_bank(tmp_path / "bank"))


@pytest.mark.parametrize("family", ["binomial", "beta", "beta-binomial"])
def test_family_and_precision_are_kept_and_a_callers_columns_called_like_ours(tmp_path, family):
    bank = with_family(make_bank(), family)
    if bank.parameters.precision is not None:
        bank.parameters.precision[:] += np.arange(bank.n_items)
    items = bank.responses.items.with_columns(intercept=pl.lit("theirs"), score_weight=pl.lit(3))
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, items=items))
    save_bank(bank, tmp_path / "bank")
    assert_same(bank, load_bank(tmp_path / "bank"))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_continuous_responses_keep_every_bit(tmp_path, kind):
    bank = make_bank()
    values = np.random.default_rng(1).random(bank.responses.responses.shape).astype(kind)
    values[2, 3] = np.nan
    bank = dataclasses.replace(bank, responses=dataclasses.replace(bank.responses, responses=values))
    save_bank(bank, tmp_path / "bank")
    back = load_bank(tmp_path / "bank").responses.responses
    np.testing.assert_array_equal(back, values)
    assert back.dtype == kind


def test_the_folder_holds_open_formats_and_says_what_it_is(tmp_path):
    bank = make_bank(with_extras=True)
    save_bank(bank, tmp_path / "bank")
    names = sorted(path.name for path in (tmp_path / "bank").iterdir())
    assert names == ["arrays.safetensors", "bank.json", "items.parquet", "models.parquet", "responses.parquet"]
    record = json.loads((tmp_path / "bank" / "bank.json").read_text())
    assert (record["schema_version"], record["bank_id"]) == (1, bank.bank_id)
    assert record["data_fingerprint"] == data_fingerprint(bank.responses)
    items = pl.read_parquet(tmp_path / "bank" / "items.parquet")
    assert items["bank.expected_output_tokens"].is_between(1, 99).all()


def test_the_folder_has_the_scores_that_the_bank_has(tmp_path):
    """Scores were means of what was answered, though the bank counts what is missing as the item model expects."""
    bank = make_bank(n_models=12)
    bank.responses.responses[0, 0] = np.nan
    bank.responses.responses[1, 3:] = np.nan
    save_bank(bank, tmp_path / "bank")
    own = pl.read_parquet(tmp_path / "bank" / "models.parquet").select("^bank.score:.*$").to_numpy()
    np.testing.assert_array_equal(own, bank.models[list(bank.targets.names)].to_numpy())
    assert np.isnan(own[1, -1])
    assert own[0, -1] != bank.targets.with_overall(bank.scenario_scores)[0, -1]


def test_a_bank_is_never_overwritten_unasked_and_what_is_no_bank_never(tmp_path):
    save_bank(make_bank(), tmp_path / "bank")
    with pytest.raises(BankError, match="is a bank already"):
        save_bank(make_bank(seed=1), tmp_path / "bank")
    save_bank(make_bank(seed=1), tmp_path / "bank", overwrite=True)
    assert load_bank(tmp_path / "bank").bank_id == make_bank(seed=1).bank_id
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(BankError, match="not a bank"):
        save_bank(make_bank(), tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    with pytest.raises(BankError, match=r"holds no bank\.json"):
        load_bank(tmp_path)


DAMAGE = {"change": lambda old: old[:50] + bytes([old[50] ^ 1]) + old[51:], "cut": lambda old: old[:-10]}


@pytest.mark.parametrize("name", ["items.parquet", "models.parquet", "responses.parquet", "arrays.safetensors"])
@pytest.mark.parametrize("damage", [*DAMAGE, "remove"])
def test_a_damaged_bank_is_refused(tmp_path, name, damage):
    save_bank(make_bank(), tmp_path / "bank")
    path = tmp_path / "bank" / name
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(IntegrityError, match=name):
        load_bank(tmp_path / "bank")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"converged": true', '"converged": false', r"bank\.json is not what was written"),
        ('"calibration": {', "", "cannot be read"),
    ],
)
def test_another_record_is_refused(tmp_path, old, new, message):
    save_bank(make_bank(), tmp_path / "bank")
    path = tmp_path / "bank" / "bank.json"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(BankError, match=message):
        load_bank(tmp_path / "bank")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 6}, r"must be 1 with a list of features, got 6.*Calibrate the bank again"),
        ({"features": None}, r"must be 1 with a list of features, got 1.*Calibrate the bank again"),
        ({"features": ["family", "halves"]}, r"features that this release does not know, 'halves'"),
    ],
)
def test_banks_of_another_version_or_unknown_features_are_refused(tmp_path, change, message):
    folder = craft(tmp_path / "bank", lambda _, record: record.update(change))
    with pytest.raises(BankError, match=message):
        load_bank(folder)


def test_fingerprints_follow_the_data_and_every_number_that_estimates_depend_on():
    bank = make_bank()
    responses, parameters, targets = bank.responses, bank.parameters, bank.targets
    assert data_fingerprint(make_bank().responses) == data_fingerprint(responses)
    flipped = responses.responses.copy()
    flipped[3, 4] = 1 - flipped[3, 4]
    renamed = responses.with_tables(models=responses.models.with_columns(model_id=pl.col("model_id") + "x"))
    changed = (dataclasses.replace(responses, responses=flipped), renamed, responses)
    assert len(set(map(data_fingerprint, changed))) == 3
    families = [with_family(bank, "beta"), with_family(bank, "beta", precision=11.0), with_family(bank, "binomial")]
    shifted = dataclasses.replace(parameters, intercept=parameters.intercept + 1e-9)
    ids = {bank_fingerprint(responses, one, targets) for one in (shifted, *(one.parameters for one in families))}
    ids |= {bank_fingerprint(responses, parameters, targets, np.full(3, value)) for value in (0.0, 0.1)}
    assert len({bank.bank_id, *ids}) == 7


def test_what_a_bank_has_besides_right_and_wrong_answers_is_named(tmp_path):
    banks = {"plain": make_bank(), "beta": with_family(make_bank(), "beta"), "aside": retired_bank()}
    features = {}
    for name, bank in banks.items():
        save_bank(bank, tmp_path / name)
        record = json.loads((tmp_path / name / "bank.json").read_text())
        assert record["schema_version"] == 1
        features[name] = record["features"]
    assert features == {"plain": [], "beta": ["family"], "aside": ["items-aside"]}


@pytest.mark.parametrize("name", [*REVIEWED, *FURTHER])
def test_a_bank_of_right_digests_and_impossible_content_is_refused(tmp_path, name):
    folder = craft(tmp_path / "bank", (REVIEWED | FURTHER)[name])
    with pytest.raises(IntegrityError, match=r"(Calibrate|get) it(em|) ?.*again|Calibrate the bank again"):
        load_bank(folder)


def test_the_message_says_what_must_hold_what_came_where_and_what_to_do(tmp_path):
    folder = craft(tmp_path / "bank", first("intercept", float("nan")))
    with pytest.raises(IntegrityError) as caught:
        load_bank(folder)
    assert str(caught.value) == (
        f"{folder} holds what no calibration gives: intercept must be finite, got nan and the like for 'math/0'. Its "
        "files match its record, so another program wrote them. Calibrate the bank again, or get it from another "
        "place."
    )


def test_the_command_line_exits_with_4(tmp_path):
    folder = craft(tmp_path / "bank", first("lower_asymptote", 7.0))
    done = subprocess.run(
        [sys.executable, "-m", "itembank", "info", folder], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert "asymptotes must keep 0 <= lower < upper <= 1, got 7 and 1 for 'math/0'" in " ".join(done.stderr.split())


@pytest.mark.parametrize("family", ["bernoulli", "binomial", "beta", "beta-binomial"])
def test_a_sound_bank_has_no_problems(family):
    bank = make_bank(with_extras=True)
    assert bank_problems(bank if family == "bernoulli" else with_family(bank, family)) == []


def test_rounding_is_no_problem_and_every_problem_is_named_at_once():
    bank = make_bank()
    targets = dataclasses.replace(bank.targets, weights=bank.targets.weights * (1.0 + 1e-9))
    assert bank_problems(dataclasses.replace(bank, targets=targets)) == []
    bank.parameters.intercept[:2] = np.nan
    bank.calibration.abilities[3] = np.inf
    found = " ".join(bank_problems(bank))
    for words in ("intercept must be finite", "'math/0', 'code/1'.", "got inf and the like for 'org/model-3'."):
        assert words in found
