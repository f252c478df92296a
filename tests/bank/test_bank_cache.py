import dataclasses
import os

import numpy as np
import pytest
from safetensors.numpy import save_file

from itembank.bank import bank_cache
from itembank.bank.bank_cache import FOLDER, BankCache, cache_name
from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import ParameterError
from itembank.estimation.asked import Asked
from itembank.estimation.estimator_specs import PIRT, Stacked
from itembank.estimation.folds import folds
from itembank.estimation.method_trials import try_methods
from itembank.selection.recipes import Recipe
from itembank.selection.select import select
from itembank.selection.selector_specs import VOptimal
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(autouse=True)
def user_cache(tmp_path, monkeypatch):
    """Let every test begin with nothing kept."""
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path / "user"))
    return tmp_path / "user"


class Counted:
    """A function that makes arrays and counts how often it was asked to."""

    def __init__(self, size=3):
        self.calls = 0
        self.size = size

    def __call__(self):
        self.calls += 1
        return {"numbers": np.arange(self.size, dtype=np.float64), "matrix": np.eye(2).T}


@pytest.fixture
def make():
    return Counted()


def has_three(arrays):
    return arrays.get("numbers", np.empty(0)).shape == (3,)


def test_what_was_made_is_remembered_unless_making_it_fails(make):
    cache = BankCache()
    with pytest.raises(ZeroDivisionError):
        cache.remember("key", lambda: 1 // 0)
    first = cache.remember("key", make)
    assert has_three(first)
    assert cache.remember("key", make) is first
    assert cache.remember("another key", make) is not first
    assert cache.arrays("name", make) is cache.arrays("name", make)  # without a folder in memory
    BankCache().arrays("name", make)
    assert make.calls == 4


def test_a_file_is_used_instead_of_making_arrays_again(make, tmp_path):
    made, read = (BankCache(user_folder=tmp_path).arrays("name", make, fits=has_three) for _ in range(2))
    assert (make.calls, read.keys()) == (1, made.keys())
    for name, array in made.items():
        np.testing.assert_array_equal(read[name], array)
    assert [path.name for path in tmp_path.iterdir()] == ["name.safetensors"]


def test_a_name_says_all_that_arrays_depend_on_by_values_and_never_by_classes():
    name = cache_name("kind", np.arange(3.0), 1, "text")
    assert name == cache_name("kind", np.arange(3.0), 1, "text")
    others = [
        cache_name("another", np.arange(3.0), 1, "text"),
        cache_name("kind", np.arange(3.0) + 1e-9, 1, "text"),
        cache_name("kind", np.arange(2_000.0), 1, "text"),
        cache_name("kind", np.arange(2_000.0) % 1_500, 1, "text"),
        cache_name("kind", np.arange(3.0), "1", "text"),
        cache_name("kind", np.arange(3.0), 1, "text", None),
    ]
    assert len({name, *others}) == 7
    assert name.startswith("kind-")
    assert name.replace("-", "").isalnum()
    assert cache_name("kind", {"a": 1, "b": (2.0, None)}) == cache_name("kind", {"b": [2.0, None], "a": np.int64(1)})
    with pytest.raises(TypeError, match="plain data"):
        cache_name("kind", [PIRT()])


def test_a_renamed_class_finds_what_was_kept_before(tmp_path, user_cache, monkeypatch):
    save_bank(make_bank(n_models=14, n_dims=1), tmp_path / "bank")

    def kept():
        bank = load_bank(tmp_path / "bank")
        trials = try_methods(Asked.of_past(bank, select(bank, 6, method="v-optimal")), Stacked().members)
        return trials, sorted(path.name for path in user_cache.rglob("*.safetensors"))

    trials, names = kept()
    for kind in (PIRT, VOptimal, Recipe):
        monkeypatch.setattr(kind, "__repr__", lambda _: "Renamed()")
    again, same_names = kept()
    assert same_names == names
    np.testing.assert_array_equal(again.values, trials.values)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not a file of arrays"),
        lambda path: path.write_bytes(path.read_bytes()[:100]),
        lambda path: save_file({"numbers": np.zeros(3)}, path),  # without a stamp
        lambda path: bank_cache._write(path, {"numbers": np.array([1.0, np.inf, 2.0])}, ""),
        lambda path: bank_cache._write(path, {"numbers": np.zeros(5)}, ""),
    ],
)
def test_a_file_of_something_else_is_made_anew(make, tmp_path, spoil):
    BankCache(user_folder=tmp_path).arrays("name", make)
    path = tmp_path / "name.safetensors"
    whole = path.read_bytes()
    spoil(path)
    made = BankCache(user_folder=tmp_path).arrays("name", make, fits=has_three)
    np.testing.assert_array_equal(made["numbers"], np.arange(3))
    assert (make.calls, path.read_bytes()) == (2, whole)


def test_a_file_with_one_bit_changed_is_made_anew(tmp_path):
    BankCache(user_folder=tmp_path).arrays("name", Counted())
    path = tmp_path / "name.safetensors"
    whole, rng = path.read_bytes(), np.random.default_rng(4)
    for place in rng.integers(0, len(whole), 60).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << int(rng.integers(8)))]) + whole[place + 1 :])
        make = Counted()
        assert has_three(BankCache(user_folder=tmp_path).arrays("name", make))
        assert (make.calls, path.read_bytes()) == (1, whole)


def test_arrays_of_another_bank_or_by_another_release_are_made_anew(make, tmp_path, monkeypatch):
    def calls(bank_id="bank"):
        BankCache(bank_id=bank_id, user_folder=tmp_path).arrays("name", make)
        return make.calls

    assert calls() == 1
    monkeypatch.setattr(bank_cache, "REVISION", bank_cache.REVISION + 1)
    assert calls() == 2
    monkeypatch.setattr(bank_cache.importlib.metadata, "version", lambda _: "999.0")
    assert calls() == 3
    # as when a bank is replaced while a process that loaded the one before still works, and keeps what it found
    assert [calls("another") for _ in range(2)] == [4, 4]


def test_a_place_that_cannot_be_written_costs_time_only_and_in_a_bank_is_said(make, tmp_path):
    (tmp_path / FOLDER).write_text("a file stands where the folder should be", encoding="utf-8")
    for expected in (1, 2):
        assert has_three(BankCache(user_folder=tmp_path / FOLDER).arrays("name", make))
        assert make.calls == expected
    assert (tmp_path / FOLDER).is_file()
    cache = BankCache(tmp_path)
    cache.arrays("name", make)
    with pytest.raises(ParameterError, match="cannot be written"):
        cache.keep_in_bank()
    with pytest.raises(ParameterError, match="in memory only"):
        BankCache().keep_in_bank()


def test_what_is_kept_in_the_bank_is_found_there(make, tmp_path):
    cache = BankCache(tmp_path / "bank", "id", tmp_path / "of user")
    cache.arrays("name", make)
    assert not (tmp_path / "bank").exists()
    cache.keep_in_bank()
    assert [path.name for path in (tmp_path / "bank" / FOLDER).iterdir()] == ["name.safetensors"]
    assert has_three(BankCache(tmp_path / "bank", "id", tmp_path / "of another").arrays("name", make))
    assert make.calls == 1
    assert not (tmp_path / "of another").exists()


def test_a_part_keeps_its_work_among_that_of_the_bank_and_apart_from_it(make, tmp_path):
    def parts_of(cache):
        parts = (cache, cache.of_part("one"), cache.of_part("other"))
        return parts, [part.arrays("name", make) for part in parts]

    places = (tmp_path / "bank", "id", tmp_path / "of user")
    cache = BankCache(*places)
    parts, numbers = parts_of(cache)
    assert make.calls == 3
    assert [part.arrays("name", make) is one for part, one in zip(parts, numbers, strict=True)] == [True] * 3
    cache.keep_in_bank()
    names = ["name.safetensors", "one-name.safetensors", "other-name.safetensors"]
    for folder in (tmp_path / "of user", tmp_path / "bank" / FOLDER):
        assert sorted(path.name for path in folder.iterdir()) == names
    parts_of(BankCache(*places))
    assert make.calls == 3
    BankCache(tmp_path / "bank", "another", tmp_path / "of user").of_part("one").arrays("name", make)
    assert make.calls == 4
    alone, holder = BankCache(), BankCache()  # the memory of a part outlives what asked for it
    alone.of_part("one").arrays("name", make)
    holder.share(alone.of_part("one"))
    holder.arrays("name", make)
    assert make.calls == 5


def test_files_written_first_give_way(make, user_cache, monkeypatch):
    for number in range(4):
        BankCache(user_folder=user_cache / f"bank {number}").arrays("name", make)
        path = user_cache / f"bank {number}" / "name.safetensors"
        os.utime(path, (number, number))
    monkeypatch.setattr("itembank.files.atomic.MOST_BYTES", 3 * path.stat().st_size)
    BankCache(user_folder=user_cache / "bank 4").arrays("name", make)
    assert sorted(path.parent.name for path in user_cache.rglob("*.safetensors")) == ["bank 2", "bank 3", "bank 4"]


def test_a_bank_that_claims_the_name_of_another_finds_none_of_its_work(tmp_path):
    for name, seed in (("one", 0), ("other", 1)):
        save_bank(dataclasses.replace(make_bank(seed=seed), bank_id="the same"), tmp_path / name)
    one, other = load_bank(tmp_path / "one"), load_bank(tmp_path / "other")
    assert one.bank_id == other.bank_id
    assert said_when_fitting(one)
    assert said_when_fitting(other)


def assert_same_folds(one, other):
    for ours, theirs in zip(folds(one), folds(other), strict=True):
        np.testing.assert_array_equal(ours.held_out, theirs.held_out)
        np.testing.assert_array_equal(ours.bank.parameters.loadings, theirs.bank.parameters.loadings)
        np.testing.assert_array_equal(ours.bank.calibration.abilities, theirs.bank.calibration.abilities)


def test_a_changed_copy_of_a_bank_starts_empty(tmp_path):
    save_bank(make_bank(), tmp_path / "bank")
    bank = load_bank(tmp_path / "bank")
    bank.cache.remember("key", lambda: 1)
    copy = dataclasses.replace(bank, item_model_bias=np.full(3, 0.1))
    assert (copy.cache.folder, copy.cache.memory) == (None, {})
    assert bank.cache.folder == tmp_path / "bank"


def said_when_fitting(bank):
    said = []
    folds(bank, progress=lambda text, share: said.append((text, share)))
    return said


def test_a_bank_loaded_a_second_time_is_not_fitted_again(tmp_path):
    save_bank(make_bank(), tmp_path / "bank")
    first, second = load_bank(tmp_path / "bank"), load_bank(tmp_path / "bank")
    assert said_when_fitting(first)
    assert not said_when_fitting(second)
    assert_same_folds(first, second)


def test_a_bank_that_is_saved_keeps_what_was_derived_from_it(tmp_path):
    """Cached files are no part of it: they are not checked, and go when another bank takes the place."""
    made, folder = make_bank(), tmp_path / "bank" / FOLDER
    assert said_when_fitting(made)
    save_bank(made, tmp_path / "bank")
    kept = sorted(path.name for path in folder.iterdir())
    assert kept == ["content-order.safetensors", "folds.safetensors", "siblings.safetensors"]
    loaded = load_bank(tmp_path / "bank")
    assert not said_when_fitting(loaded)
    assert_same_folds(made, loaded)
    for path in folder.iterdir():
        path.write_bytes(b"broken")
    assert said_when_fitting(load_bank(tmp_path / "bank"))
    save_bank(make_bank(seed=1), tmp_path / "bank", overwrite=True)
    assert not folder.exists()
    assert said_when_fitting(load_bank(tmp_path / "bank"))
