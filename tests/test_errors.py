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


def test_a_warning_points_at_the_line_that_led_to_it_also_through_a_decorator():
    for say in (warn, contextlib.contextmanager(lambda: iter([None]))()(warn)):
        with pytest.warns(DataWarning, match="odd") as caught:
            say("odd", DataWarning)
        assert caught[0].filename == __file__


LONG = "x" * 19_999 + "7"


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a", 3], "'a', '3'"),
        (list("abcdefg"), "'a', 'b', 'c', 'd', 'e' and 2 more"),
        ([LONG, "short"], f"'{LONG[:50]}'...'{LONG[-50:]}' (20,000 characters), 'short'"),
    ],
)
def test_only_the_first_names_are_shown_and_a_long_one_cut(names, text):
    assert shown(names) == text


def said_by(work, files=()):
    """What is warned of while a function works, and what `warned_once` then tells of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with warned_once(files) as told:
            work()
    return [str(one.message) for one in caught], told


def test_warnings_that_differ_in_numbers_are_one_but_those_of_some_models_and_of_others():
    def work():
        for number in (3, 17, 1e-6):
            warn(f"{number} of 9 are clipped", DataWarning)
        warn("another", DataWarning)
        for model in "ab":
            warn(f"of '{model}'", ModelWarning)
        for number in range(2):
            warnings.warn(f"{number} of numpy", RuntimeWarning, stacklevel=1)

    said, told = said_by(work)
    ours = ["3 of 9 are clipped (And 2 more like it.)", "another"]
    assert sorted(said) == sorted([*ours, "of 'a'", "of 'b'", "0 of numpy", "1 of numpy"])
    assert told == ours
    assert said_by(lambda: None) == ([], [])


@warned_once()
def fail():
    warn("explains", DataWarning)
    raise DataError("fails")


def test_an_error_passes_after_its_warnings():
    with pytest.warns(DataWarning, match="explains"), pytest.raises(DataError, match="fails"):
        fail()


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
    verbs = (itembank.estimate, itembank.compare, itembank.plan, itembank.gate, itembank.start_gate)
    for verb, given, advice in (
        (itembank.select, {"n_items": 12}, "n=..."),
        (itembank.select, {"n": 12, "seed": 3}, "rng="),
        *((verb, {"confidence": 0.9}, "level=...") for verb in verbs),
        (itembank.estimate, {"alpha": 0.1}, "level=1 - alpha."),
        (itembank.gate, {"alpha": 0.1}, "false_alarm=..."),
        (itembank.plan, {"margin": 0.02}, "half_width="),
    ):
        name = [*given][-1]
        words = f"{verb.__name__}() has no argument '{name}'. Write {advice}"
        with pytest.raises(TypeError, match=re.escape(words)):
            verb(bank, **given)
    assert itembank.select(bank, n=12, method="random").n_items == 12


def test_a_warning_that_many_files_cause_is_one_with_the_number_of_all_rows():
    def read():
        for file, n in (("a.csv", 2), ("b/c.csv", 3), ("d.csv", 4)):
            warn(f"{file}: {n} rows are odd: 'x' of {file}.", DataWarning)
        for file, what in (("d.csv", "read 'kind'"), ("b/c.csv", "read 'state'"), ("e.csv", "1 rows are odd: 'x'")):
            warn(f"{file}: {what}.", DataWarning)

    assert said_by(read, ["a.csv", "b/c.csv", "d.csv"])[0] == [
        "a.csv and 2 more files: 9 rows are odd: 'x' of a.csv.",
        *("d.csv: read 'kind'.", "b/c.csv: read 'state'.", "e.csv: 1 rows are odd: 'x'."),
    ]


NAMES = (
    *("a b", "$(touch x)", "`touch x`", "it's", '"; touch x; "', "a\nb", "\x1b[31m", "\u202e\xa0"),
    *("-x", "!!", "~", "\\", "\udcff"),
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
