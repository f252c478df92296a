"""The test items of `bytelms` are right and those of the built-in files; its training texts do not hold them."""

import random
import re
from collections import Counter

import numpy as np
import pytest

from itembank.readers.builtin import load_builtin
from tests.scripts.bytelms import load, suite

CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
FROM_PYTHON = ("code", "prose")  # these depend on the version of Python


def still_open(text):
    """Closing brackets that are missing, by taking away pairs until none is left."""
    for _ in text:
        for pair in ("()", "[]", "{}", "<>"):
            text = text.replace(pair, "")
    return "".join(CLOSING[one] for one in reversed(text))


SOLVERS = {
    "addition": lambda asked: str(sum(int(part) for part in asked[0].split("+"))),
    "subtraction": lambda asked: str(int(asked[0].split("-")[0]) - int(asked[0].split("-")[1])),
    "comparison": lambda asked: str(max(int(part) for part in asked[1:])),
    "copying": lambda asked: asked[1],
    "reversal": lambda asked: asked[1][::-1],
    "sorting": lambda asked: "".join(sorted(asked[1])),
    "counting": lambda asked: str(Counter(asked[2])[asked[1]]),
    "spelling": lambda asked: "-".join(asked[1]),
    "brackets": lambda asked: still_open(asked[1]),
}
"""The answer to a prompt, worked out from its wording alone."""


def every_item():
    return suite()[1].multiple_choice + suite()[1].generative


def test_right_answers_are_right_agree_with_their_first_noun_and_are_facts_that_are_never_asked_for():
    checked = Counter()
    for item in every_item():
        scenario = item.scenario.removeprefix("sampled-")
        if scenario in SOLVERS:
            end = " " if scenario == "brackets" else ">= "
            expected = SOLVERS[scenario](item.prompt.rstrip(end).split(" "))
            assert item.choices[item.correct] == expected + "\n", item
            checked[scenario] += 1
    assert len(checked) == 9
    assert sum(checked.values()) > 1300
    words = load("bytelms_words")
    for item in suite()[1].multiple_choice:
        first = next((word for word in item.prompt.split(" ")[1:] if word not in words.ADJECTIVES), "")
        right = item.choices[item.correct]
        if item.scenario == "agreement":
            assert (right.rstrip(".") in words.VERBS) == (first in words.NOUNS), item
        elif item.scenario == "pronouns":
            assert right.startswith("his" if first in words.HIS else "her"), item
    knowledge = load("bytelms_knowledge")
    known = {fact.question: fact for fact in (*knowledge.facts(), *knowledge.kinds())}
    asked = [item for item in every_item() if item.scenario in ("facts", "kinds", "sampled-facts")]
    assert len(asked) == 250
    for item in asked:
        assert item.choices[item.correct] == known[item.prompt].answer + "."
        assert not known[item.prompt].is_asked


def test_choices_differ_ids_do_not_repeat_and_right_answers_stand_at_any_place():
    items = every_item()
    assert len({item.item_id for item in items}) == len(items)
    for item in suite()[1].multiple_choice:
        assert 2 <= len(item.choices) == len(set(item.choices)) <= 4, item
    places = np.array([item.correct for item in suite()[1].multiple_choice if len(item.choices) == 4])
    counts = np.bincount(places, minlength=4)
    assert ((counts - places.size / 4) ** 2 / (places.size / 4)).sum() < 16.3  # chi-square, three degrees, 0.1 %


@pytest.mark.parametrize("name", ["bytelms", "bytelms-samples"])
def test_built_in_items_are_those_of_the_script(name):
    items = load_builtin(name).items
    drawn = suite()[1].multiple_choice if name == "bytelms" else suite()[1].generative
    kept = [item for item in drawn if item.scenario not in FROM_PYTHON]
    table = items.filter(~items["scenario"].is_in(FROM_PYTHON))
    assert table["item_id"].to_list() == [item.item_id for item in kept]
    assert table["prompt"].to_list() == [item.prompt for item in kept]
    answers = table["choices"].to_list() if name == "bytelms" else [[answer] for answer in table["answer"]]
    assert answers == [list(item.choices) for item in kept]


N_BYTES = 60_000


def mixtures():
    return {mixture.name: mixture for mixture in load("bytelms_text").mixtures()}


def text_of(name, seed=11, n_bytes=N_BYTES):
    given = {"held_out": suite()[1].held_out, "sources": suite()[0], "seed": seed}
    return load("bytelms_text").training_text(mixtures()[name], n_bytes=n_bytes, **given)


@pytest.mark.parametrize(
    "name", ["balanced", "code", "arithmetic", "facts", "symbols", "corrupted", "english", "repeated"]
)
def test_no_test_item_stands_in_a_training_text(name):
    text = text_of(name)
    for item in every_item():
        whole = item.prompt + item.choices[item.correct]
        assert (whole if item.scenario in ("code", "prose") else "\n" + whole) not in text, item


def test_prompts_of_problems_are_not_trained_on_with_any_answer_or_the_other_way_round():
    lines = text_of("arithmetic").split("\n")
    sums = {tuple(map(int, found.groups())) for line in lines if (found := re.match(r"(\d+)\+(\d+)=", line))}
    additions = [item for item in every_item() if item.scenario.endswith("addition")]
    tested = {tuple(map(int, item.prompt[:-1].split("+"))) for item in additions}
    assert len(sums) > 300
    assert not tested & sums
    assert not {(b, a) for a, b in tested} & sums


def test_items_and_texts_are_the_same_every_time_and_hold_what_models_can_read():
    draw = load("bytelms_problems").FAMILIES["addition"].draw
    first, second = ([draw(one, 2) for one in [random.Random(3)] * 5] for _ in range(2))  # noqa: S311
    assert first == second
    text = text_of("balanced")
    assert text == text_of("balanced")
    assert text != text_of("balanced", seed=12)
    assert len(text) >= N_BYTES
    assert set(text) <= {"\n", *map(chr, range(32, 127))}


@pytest.mark.parametrize(("name", "share"), [("balanced", 0.0), ("corrupted", 0.3)])
def test_share_of_wrong_sums(name, share):
    found = [re.fullmatch(r"(\d+)\+(\d+)=(\d+)", line) for line in text_of(name).split("\n")]
    sums = [tuple(map(int, one.groups())) for one in found if one]
    wrong = sum(a + b != c for a, b, c in sums) / len(sums)
    assert wrong == pytest.approx(share, abs=4 * (share * (1 - share) / len(sums)) ** 0.5)


def test_favoured_domains_fill_their_share_of_the_bytes():
    for mixture in mixtures().values():
        assert sum(mixture.shares.values()) == pytest.approx(1.0)
    lines = text_of("arithmetic").split("\n")
    sums = sum(len(line) + 1 for line in lines if re.match(r"\d+[+-]\d+=|max \d", line))
    assert sums / N_BYTES == pytest.approx(0.55, abs=0.02)


@pytest.mark.slow
def test_repeated_text_repeats():
    text = text_of("repeated", seed=1, n_bytes=3 * mixtures()["repeated"].repeat_bytes)
    lines = [line for line in text.split("\n") if line]
    assert len(set(lines)) < 0.4 * len(lines)
