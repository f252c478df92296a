"""Prompts of past models in logs of lm-evaluation-harness: kept where they agree, refused where they do not."""

import hashlib
import json

import numpy as np
import polars as pl
import pytest

from itembank.auditing.run_conditions import changed_conditions, told_conditions
from itembank.bank.arguments import as_new_responses
from itembank.calibration.build import calibrate
from itembank.errors import DataError, DataWarning
from itembank.living.growing import add_models
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.prompts import DIFFERS, join_prompts, settings_by_task
from itembank.responses.response_files import write_responses
from tests.readers.logs import answers, write_run

TOLD = {
    "n-shot": {"arc": 4, "dup": 0},
    "versions": {"arc": 2.5, "dup": "1.0"},
    "chat_template": None,
    "chat_template_sha": None,
    "fewshot_as_multiturn": True,
    "system_instruction": None,
    "system_instruction_sha": None,
}
CONFIG = {"model": "hf", "model_args": "pretrained=x", "limit": None, "fewshot_seed": 1234}
MIXED = ReadingSpec(allow_mixed_prompts=True)


def prompt_hash(text):
    return hashlib.sha256(text.encode()).hexdigest()


def asked(prompt, *values, documents=None):
    """Make answers of documents whose prompts begin with this text; None leaves out the hash."""
    rows = answers(*values)
    for row in rows:
        row["prompt_hash"] = prompt_hash(f"{prompt} {row['doc_id']}")
        if prompt is None:
            del row["prompt_hash"]
    return rows if documents is None else [rows[k] for k in documents]


def write(folder, model, prompt, *, task="arc", values=(1, 0, 1), **told):
    return write_run(folder, model, {task: asked(prompt, *values)}, **{"config": CONFIG, **TOLD, **told})


def several(folder, n, prompt="usual", **told):
    for number in range(n):
        write(folder, f"org/{prompt}{number}", prompt, **told)


def test_hashes_and_settings_of_past_models_are_kept(tmp_path):
    several(tmp_path, 3)
    items = read_responses(tmp_path).items
    assert items["prompt_hash"].to_list() == [prompt_hash(f"usual {number}")[:15] for number in range(3)]
    assert settings_by_task(items) == {
        "arc": {"num_fewshot": 4, "version": "2.5", "chat_template": False, "system_prompt": "", "fewshot_seed": 1234}
    }


def test_long_documents_that_are_not_parsed_keep_their_hashes(tmp_path):
    place = write(tmp_path, "org/a", "usual")
    path = next(place.glob("samples_*"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    order = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
    path.write_text("".join(json.dumps({k: row[k] for k in (*order, *row)}) + "\n" for row in rows))
    assert read_responses(tmp_path).items["prompt_hash"][0] == prompt_hash("usual 0")[:15]


def test_settings_that_change_no_prompt_are_left_out(tmp_path):
    write(tmp_path, "org/a", "usual", task="dup")
    assert settings_by_task(read_responses(tmp_path).items) == {
        "dup": {"num_fewshot": 0, "version": "1.0", "chat_template": False, "system_prompt": ""}
    }


@pytest.mark.parametrize(
    ("template", "turns", "is_applied"),
    [("{{ messages }}", True, True), ("", True, True), ("", False, None), (None, False, False)],
)
def test_whether_a_template_was_applied(tmp_path, template, turns, is_applied):
    write(tmp_path, "org/a", "usual", chat_template=template, fewshot_as_multiturn=turns)
    assert settings_by_task(read_responses(tmp_path).items)["arc"].get("chat_template") is is_applied


def test_old_logs_without_hashes_and_settings_are_joined_without_a_word(tmp_path):
    for model in ("org/a", "org/b"):
        write_run(tmp_path, model, {"arc": asked(None, 1, 0)}, versions={})
    items = read_responses(tmp_path).items
    assert {"prompt_hash", "prompt_settings"}.isdisjoint(items.columns)
    write(tmp_path, "org/c", "usual", values=(1, 0))
    assert read_responses(tmp_path).items["prompt_hash"].null_count() == 0


def test_mixtures_are_refused_and_say_how_many_models_had_what(tmp_path):
    several(tmp_path, 3)
    write(tmp_path, "org/zero", "without", **{"n-shot": {"arc": 0}})
    write(tmp_path, "org/chat", "chat", chat_template="x")
    with pytest.raises(DataError) as refused:
        read_responses(tmp_path)
    assert str(refused.value) == (
        "all models of a task must have been asked with the same prompts, and in 1 they differ. task 'arc': 3 models 4 "
        "shots, no chat template; 1 model ('org/zero') 0 shots, no chat template; 1 model ('org/chat') 4 shots, chat "
        "template. Give the logs of one kind alone, or leave the tasks out (exclude_tasks=['NAME']). To take them "
        "together anyway, add spec=ReadingSpec(allow_mixed_prompts=True)."
    )


def test_mixtures_that_are_allowed_are_marked(tmp_path):
    several(tmp_path, 3)
    write(tmp_path, "org/zero", "without", values=(1, 0), **{"n-shot": {"arc": 0}})
    items = read_responses(tmp_path, spec=MIXED).items
    assert items["prompt_hash"].to_list() == [DIFFERS, DIFFERS, prompt_hash("usual 2")[:15]]
    assert settings_by_task(items)["arc"]["num_fewshot"] == DIFFERS
    assert settings_by_task(items)["arc"]["version"] == "2.5"


def test_equal_hashes_are_no_mixture_whatever_the_settings(tmp_path):
    several(tmp_path, 2)
    write(tmp_path, "org/later", "usual", versions={"arc": 3})
    with pytest.warns(
        DataWarning, match=r"2 models task version 2.5; 1 model .'org/later'. task version 3. The prompts"
    ):
        items = read_responses(tmp_path).items
    assert items["prompt_hash"][0] == prompt_hash("usual 0")[:15]
    assert settings_by_task(items)["arc"]["version"] == DIFFERS


def test_templates_of_two_models_are_no_mixture_but_other_shots_are(tmp_path):
    write(tmp_path, "org/a", "one", chat_template="x")
    write(tmp_path, "org/b", "two", chat_template="y")
    items = read_responses(tmp_path).items
    assert items["prompt_hash"].to_list() == [DIFFERS] * 3
    assert settings_by_task(items)["arc"]["chat_template"] is True
    write(tmp_path, "org/c", "three", chat_template="y", **{"n-shot": {"arc": 2}})
    with pytest.raises(DataError, match=r"2 models 4 shots; 1 model .'org/c'. 2 shots"):
        read_responses(tmp_path)


def test_other_prompts_under_the_same_settings_are_a_mixture(tmp_path):
    several(tmp_path, 3)
    rows = asked("usual", 1, 0, 1)
    rows[1]["prompt_hash"] = prompt_hash("another")
    write_run(tmp_path, "org/other", {"arc": rows}, config=CONFIG, **TOLD)
    with pytest.raises(DataError, match=r"3 models the usual prompts; 1 model .'org/other'. other prompts for 1 items"):
        read_responses(tmp_path)


def test_logs_without_hashes_are_told_apart_by_their_settings(tmp_path):
    several(tmp_path, 2)
    write(tmp_path, "org/same", None)
    read_responses(tmp_path)
    write(tmp_path, "org/other", None, versions={"arc": 3})
    with pytest.raises(DataError, match=r"3 models task version 2.5; 1 model .'org/other'. task version 3"):
        read_responses(tmp_path)


# in several sources, and beside a bank


def response_file(folder, name, model, prompt, **told):
    write(folder / name, model, prompt, **told)
    path = folder / f"{name}.parquet"
    write_responses(read_responses(folder / name), path)
    return path


def test_response_files_of_other_prompts_are_joined_only_when_allowed(tmp_path):
    one = response_file(tmp_path, "one", "org/a", "usual")
    other = response_file(tmp_path, "other", "org/b", "without", **{"n-shot": {"arc": 0}})
    with pytest.raises(DataError, match=r"prompts differ for 3 of 3 items: .*one.parquet had 4 shots, these have 0 sh"):
        read_responses([one, other])
    items = read_responses([one, other], spec=MIXED).items
    assert items["prompt_hash"].to_list() == [DIFFERS] * 3
    assert settings_by_task(items)["arc"]["num_fewshot"] == DIFFERS
    same = response_file(tmp_path, "same", "org/c", "usual", versions={"arc": 3})
    with pytest.warns(
        DataWarning, match=r"3 of 3 items: .*one.parquet had task version 2.5, these have task version 3"
    ):
        joined = read_responses([one, same]).items
    assert joined["prompt_hash"].to_list() == read_responses(one).items["prompt_hash"].to_list()


def test_what_one_source_does_not_tell_another_does(tmp_path):
    one = response_file(tmp_path, "one", "org/a", "usual")
    pl.DataFrame({"model_id": ["z"], "item_id": ["arc/0"], "response": [1.0]}).write_csv(tmp_path / "plain.csv")
    joined = read_responses([tmp_path / "plain.csv", one]).items.sort("item_id")
    assert joined["prompt_hash"].to_list() == read_responses(one).items["prompt_hash"].to_list()


def test_joined_prompts_of_tables():
    one = pl.DataFrame({"item_id": ["a", "b"], "prompt_hash": ["1", None], "prompt_settings": ['{"version": "1"}'] * 2})
    two = pl.DataFrame({"item_id": ["b", "c"], "prompt_settings": ['{"version": "2"}'] * 2})
    assert join_prompts([one, two]).rows() == [
        ("a", "1", '{"version": "1"}'),
        ("b", None, '{"version": "differs"}'),
        ("c", None, '{"version": "2"}'),
    ]
    assert join_prompts([one.select("item_id"), two.select("item_id")]).columns == ["item_id"]


@pytest.fixture
def bank(tmp_path):
    """Return a bank of 12 models, asked 30 items with 4 shots."""
    chance = np.random.default_rng(1)
    for number in range(12):
        values = chance.random(30) < 0.2 + 0.05 * number
        write(tmp_path / "past", f"org/p{number}", "usual", values=values)
    return calibrate(read_responses(tmp_path / "past"), "map")


def test_new_results_of_other_prompts_are_refused_unless_read_before(tmp_path, bank):
    told = {"n-shot": {"arc": 0}}
    new = write(tmp_path / "new", "org/new", "without", values=[1, 0] * 15, **told)
    with pytest.raises(DataError, match="for 30 of 30 items: the bank's runs had 4 shots, these have 0"):
        as_new_responses(bank, new)
    assert as_new_responses(bank, new, allow_mixed_prompts=True).n_items == 30
    assert as_new_responses(bank, read_responses(new)).n_items == 30
    assert list(changed_conditions(read_responses(new), bank.responses)) == [
        "prompts differ for 30 of 30 items: the bank's runs had 4 shots, these have 0 shots."
    ]
    assert told_conditions(bank.responses)["prompts"] == (
        "4 shots, task version 2.5, no chat template, few-shot seed 1234"
    )


def test_a_bank_that_takes_models_of_other_prompts_says_so(tmp_path, bank):
    new = write(tmp_path / "new", "org/new", "without", values=[1, 0] * 15, **{"n-shot": {"arc": 0}})
    with pytest.raises(DataError, match="prompts differ"):
        add_models(bank, new, how="complete")
    grown = add_models(bank, read_responses(new), how="complete")
    assert set(grown.responses.items["prompt_hash"]) == {DIFFERS}
    assert settings_by_task(grown.responses.items)["arc"]["num_fewshot"] == DIFFERS
    assert (
        add_models(bank, write(tmp_path / "same", "org/same", "usual", values=[1, 0] * 15), how="complete").n_models
        == 13
    )
