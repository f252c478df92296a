import sys
from collections import Counter

import numpy as np
import pytest

from tests.attacks.conftest import SEED, TIMES
from tests.attacks.judging import ACCEPTED, REFUSED, problem_of_json, verdict
from tests.attacks.mutated_files import attack
from tests.attacks.mutating import mutate
from tests.attacks.running import HUNG, Outcome, run_here
from tests.attacks.targets import TARGETS


def test_a_damaged_file_is_taken_or_refused_clearly(workplace):
    start = 100_000 + 1_000_000 * SEED
    cases = [attack(seed, workplace) for seed in range(start, start + TIMES * len(TARGETS))]  # every kind of file
    sys.stdout.write(f"damaged files: {Counter(case.verdict for case in cases)}\n")
    assert [case for case in cases if case.verdict not in {ACCEPTED, REFUSED}] == []
    assert {case.target for case in cases} == set(TARGETS)


@pytest.mark.slow
def test_every_good_file_is_taken(workplace, monkeypatch):
    """Else the attacks would try refusals only."""
    monkeypatch.setattr("tests.attacks.mutated_files.mutate", lambda content, rng, others: content)
    cases = [attack(seed, workplace) for seed in range(len(TARGETS))]
    assert [case for case in cases if case.verdict != ACCEPTED] == []


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(0, "{}", ""), ACCEPTED),
        (Outcome(1, "", "Error: the file is cut: copy it again.\n"), REFUSED),
        (Outcome(1, "", "Error: KeyError: 'x' (run with --debug for the traceback)"), "internal error"),
        (Outcome(1, "", "", "Traceback (most recent call last):\n..."), "traceback"),
        (Outcome(1, "", "thread 'x' panicked at src/lib.rs\nError: it is damaged, copy it."), "traceback"),
        (Outcome(0, "{}", "/x/y.py:3: RuntimeWarning: invalid value"), "warning"),
        (Outcome(1, "", "oops"), "unclear"),
        (Outcome(70, "", "Error: a sentence of words"), "unclear"),
        (Outcome(HUNG, "", ""), "hang"),
        (Outcome(-9, "", ""), "death"),
    ],
)
def test_verdicts(outcome, expected):
    assert verdict(outcome) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[{"estimate": 0.5, "low": 0, "high": 1}]', ""),
        ('[{"difference": -0.5, "low": -0.9, "high": 0.1}]', ""),
        ('[{"estimate": null}]', "an estimate that is none"),
        ('{"scores": [{"low": -0.1}]}', "low = -0.1"),
        ('{"estimate": NaN}', "not JSON: NaN is no number of JSON"),
    ],
)
def test_problems_of_results(text, problem):
    assert problem_of_json(text) == problem


def test_a_number_makes_the_same_damage_again_and_streams_are_caught_where_the_system_writes_them(workplace, tmp_path):
    content = (workplace / "long.csv").read_bytes()
    one, two = (mutate(content, np.random.default_rng(5), [b"other"]) for _ in range(2))
    assert one == two != content
    outcome = run_here(["--version"])
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("itembank ")
    assert run_here(["nonsense"]).code == 2
