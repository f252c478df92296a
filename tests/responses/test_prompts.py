"""Prompts and settings of items: compared, joined, in words."""

import hashlib

import numpy as np
import polars as pl
import pytest

from itembank.responses.prompts import (
    DIFFERS,
    ROLES,
    TASK_NAME,
    entries_text,
    hash_numbers,
    hash_texts,
    joined_settings,
    names_in_harness,
    prompt_differences,
    prompts_in_words,
    settings_by_task,
    settings_in_words,
    settings_text,
    warn_of_versions,
    words_of_items,
)
from tests.readers.reading import warns

HASHES = [hashlib.sha256(bytes([number])).hexdigest() for number in range(200)]
FOUR = {"num_fewshot": 4, "version": "2.5", "chat_template": False}


def table(hashes=None, settings=None):
    """Make an item table of four items."""
    columns = {"item_id": ["a", "b", "c", "d"]}
    if hashes is not None:
        columns["prompt_hash"] = hashes
    if settings is not None:
        columns["prompt_settings"] = [settings_text(settings)] * 4
    return pl.DataFrame(columns, schema_overrides={"prompt_hash": pl.String} if hashes is not None else None)


def test_numbers_of_hashes_keep_their_first_fifteen_digits_whatever_stands_beside_them():
    assert hash_texts(hash_numbers(HASHES)) == [one[:15] for one in HASHES]
    assert hash_numbers(HASHES).min() >= 0
    mixed = hash_numbers([HASHES[0], None, "short", HASHES[1].upper(), 7])
    np.testing.assert_array_equal(mixed[[0, 3]], hash_numbers(HASHES[:2]))
    assert mixed[1] == -1
    np.testing.assert_array_equal(mixed[2], hash_numbers(["short"])[0])
    assert np.unique(mixed).size == 5


@pytest.mark.parametrize("foreign", ["ab cd" * 4, "-" * 64, "\N{SNOWMAN}" * 16, "0x" + "1" * 62, [1], {"a": 1}, 1.5])
def test_what_is_no_hash_still_has_a_number(foreign):
    assert hash_numbers([foreign, HASHES[0]]).min() >= 0


@pytest.mark.parametrize(("settings", "words"), [
    (FOUR, "4 shots, task version 2.5, no chat template"),
    ({"num_fewshot": 1, "chat_template": True}, "1 shot, chat template"),
    ({"num_fewshot": 0, "system_prompt": ""}, "0 shots"),
    ({"system_prompt": "1a2b3c4d", "fewshot_seed": 42}, "system prompt 1a2b3c4d, few-shot seed 42"),
    ({"num_fewshot": DIFFERS, "version": DIFFERS}, "shots that differ, a task version that differs"),
    ({"chat_template": True, "fewshot_as_multiturn": True}, "chat template, shots as turns of a chat"),
    ({}, ""),
])  # fmt: skip
def test_settings_are_said_in_words(settings, words):
    assert settings_in_words(settings) == words


def test_settings_of_runs_are_joined_and_told_by_task():
    joined = joined_settings([FOUR, {"num_fewshot": 0, "version": "2.5"}, {"fewshot_seed": 1}])
    assert joined == {"num_fewshot": DIFFERS, "version": "2.5", "chat_template": False, "fewshot_seed": 1}
    assert joined_settings([{"chat_template": True}, {"chat_template": False}, {"chat_template": True}]) == {
        "chat_template": DIFFERS
    }
    items = pl.DataFrame({"task": ["x", "x", "y"], "prompt_settings": [settings_text(FOUR), settings_text(FOUR), None]})
    assert (settings_by_task(items), settings_by_task(items.drop("prompt_settings"))) == ({"x": FOUR}, {})


# compared


def test_hashes_are_compared_by_the_digits_and_items_that_they_share():
    other = {**FOUR, "version": "3.0"}
    assert prompt_differences(table(HASHES[:4], other), table(HASHES[:4], FOUR)) == ""
    assert prompt_differences(table(HASHES[:4]), table([one[:15] for one in HASHES[:4]])) == ""
    new = table(HASHES[4:8], FOUR).with_columns(item_id=pl.Series(["w", "x", "y", "d"]))
    assert prompt_differences(new, table(HASHES[:4], FOUR)).startswith("prompts differ for 1 of 1 items")


def test_other_hashes_are_explained_with_every_way_in_which_they_differ():
    new = table([*HASHES[:1], *HASHES[5:8]], {**FOUR, "num_fewshot": 0})
    assert prompt_differences(new, table(HASHES[:4], FOUR)) == (
        "prompts differ for 3 of 4 items: the bank's runs had 4 shots, these have 0 shots"
    )
    several = table(HASHES[4:8], {"num_fewshot": 1, "version": "3", "system_prompt": "1a2b3c4d"})
    assert prompt_differences(several, table(HASHES[:4], {**FOUR, "system_prompt": ""})) == (
        "prompts differ for 4 of 4 items: the bank's runs had 4 shots and task version 2.5 and no system prompt, "
        "these have 1 shot and task version 3 and system prompt 1a2b3c4d"
    )
    message = prompt_differences(table([*HASHES[:3], HASHES[9]], FOUR), table(HASHES[:4], FOUR))
    assert message == ("prompts differ for 1 of 4 items, although the settings that are known are the same: 'd'")
    assert prompt_differences(table(HASHES[4:8]), table(HASHES[:4])).startswith("prompts differ for 4 of 4 items")
    known = pl.concat([table(None, {**FOUR, "num_fewshot": n})[k:j] for n, k, j in ((3, 0, 2), (2, 2, 3), (0, 3, 4))])
    assert prompt_differences(table(None, {**FOUR, "num_fewshot": 0}), known) == (
        "prompts differ for 3 of 4 items: the bank's runs had 3 shots, these have 0 shots (2 items); "
        "the bank's runs had 2 shots, these have 0 shots (1 item)"
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        ({ROLES: "grader=lab/a"}, {ROLES: "grader=lab/b"}, "model roles differ for 4 of 4 items"),
        ({ROLES: ""}, {ROLES: "grader=lab/b"}, "had model roles grader=lab/b, these have no model roles"),
        ({ROLES: "grader=a, user=u"}, {ROLES: "grader=b, user=u"}, "had model roles grader=b, these have model roles"),
        ({"scorer_args": "fact.model=a"}, {"scorer_args": "fact.model=b"}, "scorer arguments differ for 4 of 4"),
        ({"scorer_args": "fact.model=a"}, {}, ""),
        ({}, {ROLES: "grader=lab/b"}, ""),  # an older log, or bank
    ],
)
def test_graders_and_other_models_are_compared_as_prompts_are(ours, theirs, words):
    found = prompt_differences(table(None, {**FOUR, **ours}), table(None, {**FOUR, **theirs}))
    assert words in found
    assert bool(words) == bool(found)


def test_another_version_with_equal_prompts_is_a_warning():
    later, said = (
        {**FOUR, "version": "3"},
        "3 of 4 items: the bank's runs had task version 2.5, these have .* version 3",
    )
    new = pl.concat([table(HASHES[:4], later)[:3], table(HASHES[:4], FOUR)[3:]])
    assert prompt_differences(new, table(HASHES[:4], FOUR)) == ""
    warns(said, warn_of_versions, new, table(HASHES[:4], FOUR))
    for unknown in ({**FOUR, "version": DIFFERS}, {}, None, FOUR):
        warn_of_versions(table(HASHES[:4], unknown), table(HASHES[:4], FOUR))


@pytest.mark.parametrize("hashes", [None, [None] * 4, [DIFFERS] * 4])
def test_settings_decide_where_a_hash_is_unknown_or_differs(hashes):
    known = table(hashes, FOUR)
    assert prompt_differences(table(HASHES[:4], FOUR), known) == ""
    assert "4 shots, these have 2 shots" in prompt_differences(table(HASHES[:4], {"num_fewshot": 2}), known)
    assert "4 shots, these have 2 shots" in prompt_differences(table(hashes, {"num_fewshot": 2}), known)


def test_what_is_unknown_or_differs_says_nothing_and_templates_are_alike():
    unknown = [None, {}, {"num_fewshot": DIFFERS}, {"fewshot_seed": 3}]
    for settings in unknown:
        assert prompt_differences(table(None, settings), table(None, FOUR)) == ""
        assert prompt_differences(table(None, FOUR), table(None, settings)) == ""
    assert prompt_differences(table(HASHES[:4]), table()) == ""
    with_template = {**FOUR, "chat_template": True}
    assert prompt_differences(table(HASHES[4:8], with_template), table(HASHES[:4], with_template)) == ""
    fewer = {**with_template, "num_fewshot": 0}
    assert "4 shots, these have 0 shots" in prompt_differences(
        table(HASHES[4:8], fewer), table(HASHES[:4], with_template)
    )
    assert "had no chat template, these have chat template" in prompt_differences(
        table(HASHES[4:8], with_template), table(HASHES[:4], FOUR)
    )


@pytest.mark.parametrize("text", ["[1]", "{", "null", "3", ""])
def test_settings_that_are_no_object_say_nothing(text):
    assert prompt_differences(table(None, FOUR), table(None, FOUR).with_columns(prompt_settings=pl.lit(text))) == ""


# of arguments


def test_arguments_are_compared_one_by_one_and_many_by_their_digest():
    known = table(None, {"task_args": "cot=false, n=40", "solver": "generate"})
    assert prompt_differences(table(None, {"task_args": "fresh=1, n=40"}), known) == ""
    assert prompt_differences(table(None, {"task_args": "cot=true, n=40"}), known) == (
        "prompts differ for 4 of 4 items: the bank's runs had task arguments cot=false, these have task arguments "
        "cot=true"
    )
    joined = joined_settings([{"task_args": "cot=false, n=40"}, {"task_args": "cot=true, fresh=1"}])
    assert (joined, prompt_differences(table(None, joined), known)) == ({"task_args": "cot=differs, fresh=1, n=40"}, "")
    many = {f"argument_{number}": number for number in range(40)}
    assert len(entries_text(many)) == 8
    other = table(None, {"task_args": entries_text({**many, "argument_0": 1})})
    assert prompt_differences(other, table(None, {"task_args": entries_text(many)})) != ""
    assert entries_text({"api_key": "Zx9", "n": 40, "path": "/home/alice/x"}) == "api_key=***, n=40, path=~/x"


# said of a bank


def test_ways_of_asking_are_listed_with_their_tasks():
    items = pl.DataFrame(
        {"item_id": ["a", "b", "c", "d"], "task": ["x", "y", "y", "z"],
            "prompt_settings": [settings_text(FOUR), None, None, settings_text(FOUR)], "metric": ["acc"] * 4}
    )  # fmt: skip
    assert prompts_in_words(items) == [
        "'x', 'z': 4 shots, task version 2.5, no chat template, metric acc",
        "'y': settings unknown, metric acc",
    ]
    assert prompts_in_words(items, most=1)[1:] == ["and 1 more way"]
    assert prompts_in_words(items.filter(pl.col("task") == "x")) == [
        "4 shots, task version 2.5, no chat template, metric acc"
    ]
    assert prompts_in_words(items.drop("prompt_settings")) == []
    words = "4 shots, task version 2.5, no chat template"
    assert words_of_items(items).to_list() == [words, None, None, words]
    assert words_of_items(items.drop("prompt_settings")).null_count() == 4


def test_the_name_of_a_renamed_task_is_kept_and_makes_no_prompt():
    old, other = {**FOUR, TASK_NAME: "old"}, {**FOUR, TASK_NAME: "older"}
    known = table(settings=old)
    assert names_in_harness(known.with_columns(task=pl.lit("new"))) == {"new": "old"}
    assert names_in_harness(table(settings=FOUR).with_columns(task=pl.lit("new"))) == {}
    assert (prompt_differences(known, table(settings=other)), joined_settings([FOUR, old])[TASK_NAME]) == ("", "old")
    assert names_in_harness(table(settings=joined_settings([old, other])).with_columns(task=pl.lit("new"))) == {}
    assert settings_in_words(old).endswith("task name old")
