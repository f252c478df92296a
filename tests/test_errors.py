import contextlib
import os
import re
import shutil
import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePath

import pytest

import itembank
from itembank.errors import (
    DataError,
    DataWarning,
    ModelWarning,
    command_line_words,
    did_you_mean,
    missing_package,
    remedy,
    shell_word,
    shown,
    unsaid,
    warn,
    warned_once,
)
from tests.bank.banks import make_bank


def test_a_warning_points_at_the_line_that_led_to_it():
    with pytest.warns(DataWarning, match="odd") as caught:
        warn("odd", DataWarning)
    assert caught[0].filename == __file__


def test_a_decorator_between_changes_nothing():
    decorated = contextlib.contextmanager(lambda: iter([None]))()(warn)
    with pytest.warns(DataWarning) as caught:
        decorated("odd", DataWarning)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a", 3], "'a', '3'"), (list("abcdefg"), "'a', 'b', 'c', 'd', 'e' and 2 more")]
)
def test_only_the_first_names_are_shown(names, text):
    assert shown(names) == text


@warned_once()
def clip_three_times():
    for number in (3, 17, 1e-6):
        warn(f"{number} of 9 are clipped", DataWarning)
    warn("another", DataWarning)


@warned_once()
def fail():
    warn("explains", DataWarning)
    raise DataError("fails")


@warned_once()
def warn_as_numpy_does():
    warnings.simplefilter("always")
    for number in range(2):
        warnings.warn(f"{number} of numpy", RuntimeWarning, stacklevel=1)


@warned_once()
def say_nothing():
    return 7


def test_warnings_that_differ_in_numbers_are_one():
    with pytest.warns(DataWarning) as caught:
        clip_three_times()
    assert [str(one.message) for one in caught] == ["3 of 9 are clipped (And 2 more like it.)", "another"]


def test_an_error_passes_after_its_warnings():
    with pytest.warns(DataWarning, match="explains"), pytest.raises(DataError, match="fails"):
        fail()


def test_warnings_of_others_stay_as_they_are():
    with pytest.warns(RuntimeWarning) as caught:
        warn_as_numpy_does()
    assert [str(one.message) for one in caught] == ["0 of numpy", "1 of numpy"]


def test_nothing_is_said_of_nothing():
    assert say_nothing() == 7


def test_a_long_id_is_cut_in_messages():
    text = shown(["x" * 19_999 + "7", "short"])
    assert text == f"'{'x' * 50}'...'{'x' * 49}7' (20,000 characters), 'short'"


@pytest.mark.parametrize(
    ("wrong", "known", "meant"),
    [
        ("gpirt", ["mean", "gp-irt", "p-irt"], " Did you mean 'gp-irt'?"),
        ("GPT-5", ["gpt-4", "gpt-5"], " Did you mean 'gpt-5'?"),
        ("usd", ["seconds", "cost_usd"], " Did you mean 'cost_usd'?"),
        ("17", ["mmlu/18", "mmlu/17"], ""),
        ("mmlu/99999", ["mmlu/9999", "mmlu/99998"], ""),
        ("arithmetic", ["law", "code"], ""),
        (["laws", "cod", "x"], ["law", "code"], " Did you mean 'law' for 'laws', 'code' for 'cod'?"),
        ([], ["law"], ""),
    ],
)
def test_near_misses_name_what_was_meant(wrong, known, meant):
    assert did_you_mean(wrong, known) == meant


def test_remedies_speak_the_words_of_whoever_asks():
    assert remedy("a=1", "--a 1") == "a=1"
    with command_line_words():
        assert remedy("a=1", "--a 1") == "--a 1"
    assert remedy("a=1", "--a 1") == "a=1"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModuleNotFoundError("no 'lm_eval'", name="lm_eval"), "which is not installed .*: pip install lm_eval"),
        (
            ModuleNotFoundError("no 'peft'", name="peft.tuners"),
            "is installed but imports another .*: pip install peft$",
        ),
        (ImportError("no name 'x'", name="lm_eval.api"), "cannot be imported .*: pip install --upgrade lm_eval"),
        (ImportError("lm_eval is required"), "which is not installed .*: pip install lm_eval"),
    ],
)
def test_a_missing_package_is_told_from_one_that_it_imports(error, words):
    assert re.search(words, str(missing_package("a run needs lm_eval", "lm_eval", error)))


def test_names_that_people_try_first_are_told_what_to_write():
    bank = make_bank()
    with pytest.raises(TypeError, match=r"select\(\) has no argument 'n_items'. Write n=..."):
        itembank.select(bank, n_items=12)
    with pytest.raises(TypeError, match="Write rng="):
        itembank.select(bank, 12, seed=3)
    assert itembank.select(bank, n=12, method="random").n_items == 12
    for verb in (itembank.estimate, itembank.compare, itembank.plan, itembank.gate, itembank.start_gate):
        with pytest.raises(TypeError, match=rf"{verb.__name__}\(\) has no argument 'confidence'\. Write level=\.\.\.$"):
            verb(bank, confidence=0.9)
    for verb, means in ((itembank.estimate, r"level=1 - alpha\."), (itembank.gate, r"false_alarm=\.\.\.")):
        with pytest.raises(TypeError, match=rf"has no argument 'alpha'\. Write {means}$"):
            verb(bank, bank, alpha=0.1)
    with pytest.raises(TypeError, match="Write half_width="):
        itembank.plan(bank, margin=0.02)


def test_warnings_of_some_models_are_given_and_not_listed():
    def work():
        with warned_once() as told:
            warn("of all 3", DataWarning)
            warn("of all 4", DataWarning)
            warn("of 'a'", ModelWarning)
        return told

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        told = work()
    assert told == ["of all 3 (And 1 more like it.)"]
    assert len(caught) == 2


@warned_once(["a.csv", "b/c.csv", "d.csv"])
def read_odd_files():
    for file, n in (("a.csv", 2), ("b/c.csv", 3), ("d.csv", 4)):
        warn(f"{file}: {n} rows are odd: 'x' of {file}.", DataWarning)
    for file, what in (("d.csv", "read 'kind'"), ("b/c.csv", "read 'state'"), ("e.csv", "1 rows are odd: 'x'")):
        warn(f"{file}: {what}.", DataWarning)


def test_a_warning_that_many_files_cause_is_one_with_the_number_of_all_rows():
    with pytest.warns(DataWarning) as caught:
        read_odd_files()
    assert [str(one.message) for one in caught] == [
        "a.csv and 2 more files: 9 rows are odd: 'x' of a.csv.",
        *("d.csv: read 'kind'.", "b/c.csv: read 'state'.", "e.csv: 1 rows are odd: 'x'."),
    ]


NAMES = (
    "a b",
    "$(touch x)",
    "`touch x`",
    "it's",
    '"; touch x; "',
    "a\nb",
    "\x1b[31m",
    "\u202e\xa0",
    "-x",
    "!!",
    "~",
    "\\",
    "\udcff",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_takes_any_name_of_advice_for_one_word(name, tmp_path):
    word = shell_word(PurePath(name))
    assert word.isprintable()
    command = [shutil.which("bash"), "-c", f"printf %s {word}"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert os.fsdecode(ran.stdout) == ("./-x" if name == "-x" else name)
    assert not [*tmp_path.iterdir()]


def test_warnings_are_unsaid_in_one_thread_alone():
    with unsaid(DataWarning) as kept, ThreadPoolExecutor(1) as others:
        with pytest.warns(DataWarning, match="there"):
            others.submit(warn, "there", DataWarning).result()
        warn("here", DataWarning)
    assert kept == [("here", DataWarning)]
