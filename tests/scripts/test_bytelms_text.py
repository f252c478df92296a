"""The training texts of `bytelms`: they hold no test item, and the mixtures are what they say."""

import re

import pytest

from tests.scripts.bytelms import load, suite

N_BYTES = 60_000


def mixtures():
    return {mixture.name: mixture for mixture in load("bytelms_text").mixtures()}


def text_of(name, seed=11):
    sources, drawn = suite()
    return load("bytelms_text").training_text(
        mixtures()[name], n_bytes=N_BYTES, held_out=drawn.held_out, sources=sources, seed=seed
    )


@pytest.mark.parametrize(
    "name", ["balanced", "code", "arithmetic", "facts", "symbols", "corrupted", "english", "repeated"]
)
def test_no_test_item_stands_in_a_training_text(name):
    text = text_of(name)
    drawn = suite()[1]
    for item in drawn.multiple_choice + drawn.generative:
        whole = item.prompt + item.choices[item.correct]
        assert (whole if item.scenario in ("code", "prose") else "\n" + whole) not in text, item


def test_prompts_of_problems_are_not_trained_on_with_any_answer_or_the_other_way_round():
    lines = text_of("arithmetic").split("\n")
    sums = {tuple(map(int, found.groups())) for line in lines if (found := re.match(r"(\d+)\+(\d+)=", line))}
    items = suite()[1].multiple_choice + suite()[1].generative
    tested = {tuple(map(int, item.prompt[:-1].split("+"))) for item in items if item.scenario.endswith("addition")}
    assert len(sums) > 300
    assert not tested & sums
    assert not {(b, a) for a, b in tested} & sums


def test_texts_are_the_same_every_time_and_hold_what_models_can_read():
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
    mixture = mixtures()["repeated"]
    text = load("bytelms_text").training_text(
        mixture, n_bytes=3 * mixture.repeat_bytes, held_out=suite()[1].held_out, sources=suite()[0], seed=1
    )
    lines = [line for line in text.split("\n") if line]
    assert len(set(lines)) < 0.4 * len(lines)
