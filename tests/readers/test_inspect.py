"""Logs of Inspect, written in its format."""

import json
import zipfile

import numpy as np
import pytest

from itembank.errors import DataError, DataWarning, ModelWarning
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import zstandard
from itembank.responses.prompts import names_in_harness, settings_by_task, settings_in_words, short_digest
from itembank_harnesses.readers.inspect_samples import MOST_TEXT, OWN_SCORER, content_hash, sample_costs, score_value
from tests.readers.inspect_writing import header, sample, write_eval, write_json
from tests.readers.logs import read_inspect
from tests.readers.reading import read, refuses, warns

THREE = [sample("a", "C"), sample("b", "I"), sample("c", 0.25)]


def test_archives_of_every_kind_and_json_hold_the_same(tmp_path):
    folders = [tmp_path / name for name in ("stored", "deflated", "killed", "json")]
    write_eval(folders[0] / "a.eval", THREE, method=zipfile.ZIP_STORED)
    write_eval(folders[1] / "a.eval", THREE)
    write_eval(folders[2] / "a.eval", THREE, finished=False)
    folders[3].mkdir()
    write_json(folders[3] / "a.json", THREE)
    matrices = [read(folder) for folder in folders]
    for matrix in matrices:
        assert (matrix.responses.tolist(), matrix.item_ids) == ([[1.0, 0.0, 0.25]], ["toy/a", "toy/b", "toy/c"])
        assert matrix.items.equals(matrices[0].items)
        assert matrix.models.equals(matrices[0].models)
    assert matrices[0].items["sample_id"].to_list() == ["a", "b", "c"]
    assert set(matrices[0].items["scenario"]) == set(matrices[0].items["task"]) == {"toy"}
    assert set(matrices[0].items["metric"]) == {"match"}
    assert matrices[0].items["content_hash"][0] == content_hash("Question a", "x")
    plain = write_eval(tmp_path / "b" / "plain.eval", THREE, method=zipfile.ZIP_STORED)
    with zipfile.ZipFile(plain) as archive:
        packed = {one.filename: (one, zstandard().compress(archive.read(one.filename))) for one in archive.infolist()}
    path = tmp_path / "b" / "zstd" / "a.eval"
    path.parent.mkdir()
    path.write_bytes(zip_of(packed))
    assert read(path).responses.tolist() == [[1.0, 0.0, 0.25]]


def zip_of(packed):
    """Write a zip whose members are compressed by method 93, as its specification (4.3.7, 4.3.12, 4.3.16) says."""
    body, directory = b"", b""
    for name, (info, data) in packed.items():
        sizes = info.CRC.to_bytes(4, "little") + len(data).to_bytes(4, "little") + info.file_size.to_bytes(4, "little")
        middle = b"\x3f\x00\x00\x00" + (93).to_bytes(2, "little") + bytes(4) + sizes
        encoded = name.encode()
        lengths = len(encoded).to_bytes(2, "little") + bytes(2)
        directory += b"PK\x01\x02\x3f\x00" + middle + lengths + bytes(10) + len(body).to_bytes(4, "little") + encoded
        body += b"PK\x03\x04" + middle + lengths + encoded + data
    count = len(packed).to_bytes(2, "little")
    end = bytes(4) + count * 2 + len(directory).to_bytes(4, "little") + len(body).to_bytes(4, "little") + bytes(2)
    return body + directory + b"PK\x05\x06" + end


@pytest.mark.parametrize(("value", "number"), [
    ("C", 1), ("I", 0), ("P", 0.5), ("N", 0), ("yes", 1), ("False", 0), ("0.75", 0.75), (True, 1), (0.5, 0.5),
    (10**400, float("inf")),
])  # fmt: skip
def test_scores_are_numbers_as_inspect_has_them(value, number):
    assert score_value(value) == number


@pytest.mark.parametrize("value", ["correct-ish", "", [1.0], {}])
def test_scores_that_are_no_numbers_are_refused(tmp_path, value):
    with pytest.raises(DataError, match=r"a score must be a number or one of 'C', 'I'.*1 sample: 'toy/a'"):
        read(write_eval(tmp_path / "a.eval", [{**sample("a"), "scores": {"match": {"value": [value]}}}, *THREE[1:]]))


def test_epochs_are_trials_unless_scores_are_between_right_and_wrong(tmp_path):
    samples = [sample("a", value, epoch=epoch) for epoch, value in enumerate("CIC", start=1)]
    samples += [sample("b", value, epoch=epoch) for epoch, value in enumerate(["I", "I", None], start=1)]
    path = write_eval(tmp_path / "a.eval", samples, header(n_items=2))
    matrix = warns("lost answers count as missing, not wrong: 1 of", read, path)
    assert (matrix.responses[0].tolist(), matrix.n_trials[0].tolist()) == ([2 / 3, 0.0], [3, 2])
    assert (matrix.lost.n[0].tolist(), read(path, errors="wrong").n_trials[0].tolist()) == ([0, 1], [3, 3])
    assert read(path, repeats="last").responses[0].tolist() == [1.0, 0.0]
    samples = [sample("a", value, epoch=epoch) for epoch, value in enumerate([0.2, 0.6], start=1)]
    path = write_eval(tmp_path / "b" / "a.eval", samples, header(n_items=1))
    refuses(r"epochs are counted as trials .*got 0\.2, 0\.6 for 'toy/a'.*repeats='mean'", read, path)
    assert read(path, repeats="mean").responses[0].tolist() == pytest.approx([0.4])


def test_errors_and_limits_are_apart_from_wrong_answers(tmp_path):
    samples = [
        sample("a", "C"),
        sample("b", None, error="RuntimeError: provider down"),
        sample("c", "I", error={"message": "down", "traceback": ""}),  # as .json tells it, scored on error
        sample("d", None, limit="token"),
        sample("e", "I", limit={"type": "token", "limit": 10}),
        sample("f", None),
        sample("g", float("nan")),
    ]
    path = write_eval(tmp_path / "a.eval", samples, header(n_items=7))
    with pytest.warns(DataWarning) as caught:
        matrix = read(path)
    assert matrix.responses[0].tolist() == pytest.approx([1, np.nan, 0, np.nan, 0, np.nan, np.nan], nan_ok=True)
    texts = " ".join(str(one.message) for one in caught)
    assert "2 of 7 samples ended in an error or at a limit and were scored anyway" in texts
    assert "count as missing, not wrong: 4 of 'lab/a' (2 without a response, 1 error, 1 stopped by a limit)" in texts


def test_retries_replace_a_run_and_another_run_is_repeated_attempts(tmp_path):
    first = [sample("a", "C"), sample("b", None, error="down"), sample("c", "I")]
    last = [sample("b", "C"), sample("c", "C")]
    write_eval(tmp_path / "z.eval", first, header(created="2026-01-01T00:00:00Z", task_id="T"))
    write_eval(tmp_path / "a.eval", last, header(created="2026-01-02T00:00:00Z", task_id="T"), finished=False)
    assert read(tmp_path).responses[0].tolist() == [1.0, 1.0, 1.0]
    for number in (1, 2):
        write_eval(tmp_path / "b" / f"{number}.eval", THREE[:2], header(task_id=str(number), n_items=2))
    refuses("repeated attempts", read, tmp_path / "b")
    assert read(tmp_path / "b", repeats="count").n_trials[0].tolist() == [2, 2]


def test_the_first_scorer_is_taken_unless_another_is_asked_for(tmp_path):
    samples = [
        {**sample(name), "scores": {"graded": {"value": {"tone": 0.5, "facts": 1}}, "match": {"value": value}}}
        for name, value in zip("abc", "CIC", strict=True)
    ]
    path = write_eval(tmp_path / "a.eval", samples)
    with pytest.warns(DataWarning, match=r"scorer 'graded/tone' of task 'toy' \(it also has 'graded/facts', 'match'\)"):
        assert read(path).responses[0].tolist() == [0.5, 0.5, 0.5]
    assert read_inspect(path, metric="match").responses[0].tolist() == [1, 0, 1]
    assert read_inspect(path, metric=["none", "toy=graded/facts"]).responses[0].tolist() == [1, 1, 1]
    refuses(r"unknown scorer 'mach' for task 'toy': it has .* Did you mean 'match'", read_inspect, path, metric="mach")


def test_the_first_scorer_is_one_that_scored_every_run(tmp_path):
    both = {"scores": {"strict": {"value": "I"}, "match": {"value": "C"}}}
    first = [{**sample("a"), **both}, sample("b", scorer="match")]
    write_json(tmp_path / "1.json", first[::-1], header(n_items=2))
    with (
        pytest.warns(ModelWarning, match="lost answers"),
        pytest.warns(DataWarning, match=r"scorer 'strict' of task 'toy' \(it also has 'match'\)"),
    ):
        read(tmp_path)
    write_json(tmp_path / "2.json", [sample("a"), sample("b")], header(model="lab/b", n_items=2))
    with pytest.warns(DataWarning, match=r"scorer 'match' of task 'toy' \(it also has 'strict'\)"):
        assert read(tmp_path).responses.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(DataError, match=r"'strict' of task 'toy' must have scored every run, got 1 .*'2\.json'"):
        read_inspect(tmp_path, metric="strict")
    write_json(tmp_path / "3.json", [sample("a", scorer="other")], header(model="lab/c", n_items=2))
    refuses(r"must have scored every run, got 2 .*Score those logs again", read, tmp_path)


@pytest.mark.parametrize("kind", ["json", "eval"])
def test_samples_that_somebody_invalidated_are_lost(kind, tmp_path):
    samples = [{**sample("a"), "invalidation": {"author": "me"}}, sample("b")]
    about = {**header(n_items=2), "invalidated": True}
    path = tmp_path / f"1.{kind}"
    if kind == "json":
        write_json(path, samples, about)
    else:
        write_eval(path, [sample("a"), sample("b")], about)
        with zipfile.ZipFile(path, "a") as archive:
            for one in samples:
                archive.writestr(f"samples/{one['id']}_epoch_1.json", json.dumps(one))
    matrix = warns("lost answers", read, path, category=ModelWarning)
    assert (matrix.lost.n.tolist(), matrix.responses[0, 1]) == ([[1, 0]], 1)


def test_ids_may_be_whole_numbers_and_hold_slashes(tmp_path):
    write_eval(tmp_path / "1.eval", [sample(1), sample(2)], header(n_items=2))
    write_json(tmp_path / "2.json", [sample("1", "I"), sample("2", "I")], header(model="lab/b", n_items=2))
    matrix = read(tmp_path)
    assert (matrix.item_ids, matrix.responses.tolist()) == (["toy/1", "toy/2"], [[1, 1], [0, 0]])
    deep = write_eval(tmp_path / "deep.eval", [sample("x/y")], header("pack/toy", n_items=1))
    assert read(deep).items.select("item_id", "task", "sample_id").rows() == [("pack/toy/x/y", "pack/toy", "x/y")]
    with pytest.raises(DataError, match=r"must be once in each epoch, got 1 that have other scores .*: '1'"):
        read(write_eval(tmp_path / "twice.eval", [sample("1"), sample("1", "I")]))
    refuses(r"as text, got 1 that are .*: '1'", read, write_eval(tmp_path / "both.eval", [sample(1), sample("1")]))


def test_contents_are_compared_and_the_hash_is_the_same_for_what_summaries_cut(tmp_path):
    write_eval(tmp_path / "1.eval", THREE)
    other = [{**sample("a"), "input": "Another question"}, *THREE[1:]]
    write_eval(tmp_path / "2.eval", other, header(model="lab/b"))
    refuses(r"same content \(input and target\) .*'toy/a' for 'lab/a' and 'lab/b'", read, tmp_path)
    with pytest.warns(DataWarning, match="1 of 3 items have another content"):
        assert read(tmp_path, ignore_content=True).items["content_hash"].null_count() == 1
    long = "word " * MOST_TEXT
    cut = long[:MOST_TEXT] + "...\n(content truncated)"
    image = {"type": "image", "image": "data:..."}
    whole = [{"role": "user", "content": [{"type": "text", "text": long}, image], "id": "x1"}]
    thin = [{"role": "user", "content": [{"type": "text", "text": cut}, {"type": "text", "text": "(Image)"}]}]
    assert content_hash(long, "a") == content_hash(cut, ["a"])
    assert content_hash(whole, "a") == content_hash(thin, "a") != content_hash(whole, "b")


def test_costs_are_those_of_all_models_and_models_are_told_apart(tmp_path):
    usage = {
        "lab/a": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "total_cost": 0.25},
        "lab/judge": {"input_tokens": 100, "output_tokens": 1, "input_tokens_cache_read": 20, "total_tokens": 321},
    }
    costs = sample_costs({"model_usage": usage, "total_time": 9.0, "working_time": 2.5})
    # Of the judge's 321 tokens 120 were read; the money of one model alone is not that of the sample.
    assert costs == {"input_tokens": 130.0, "output_tokens": 206.0, "seconds": 2.5}
    samples = [sample("a", model_usage={"lab/a": usage["lab/a"]}), sample("b", model_usage=None)]
    matrix = read(write_eval(tmp_path / "a.eval", samples, header(n_items=2)))
    assert matrix.costs["cost_usd"][0].tolist() == pytest.approx([0.25, np.nan], nan_ok=True)
    assert matrix.costs["output_tokens"][0].tolist() == pytest.approx([5, np.nan], nan_ok=True)
    assert "seconds" not in matrix.costs
    write_eval(tmp_path / "b" / "one" / "1.eval", THREE, header(model_args={"quant": 4}))
    write_eval(tmp_path / "b" / "two" / "2.eval", THREE[:2], header(model_args={"quant": 8}, task_id="other"))
    assert read(tmp_path / "b" / "one", model_id_from="args").model_ids == ["lab/a,quant=4"]
    about = {"quant": 4, "api_key": "Zx9SECRET", "extra": {"Authorization": "Zx9SECRET"}, "path": "/home/alice/m"}
    write_eval(tmp_path / "c" / "3.eval", THREE, header(model_args=about, task_id="third"))
    secret = read(tmp_path / "c", model_id_from="args")
    hidden = "api_key=***,extra={'Authorization': '***'},path=~/m,quant=4"
    assert (secret.model_ids, secret.models["model_args"].to_list()) == ([f"lab/a,{hidden}"], [hidden])
    matrix = warns(r"'two' \(2 of 3 items\)", read, tmp_path / "b", model_id_from="folder")
    assert matrix.models.select("model_id", "is_partial").rows() == [("one", False), ("two", True)]
    assert read(tmp_path / "b" / "one", model_id="mine").model_ids == ["mine"]


def test_tasks_are_chosen_renamed_and_known_by_the_one_that_ran(tmp_path):
    write_eval(tmp_path / "1.eval", THREE)
    write_eval(tmp_path / "2.eval", [sample("q", None)], header("raw", n_items=1))
    refuses("a task must have scored samples, got 1 task without: 'raw'", read, tmp_path)
    assert set(read(tmp_path, exclude_tasks=("raw",)).items["task"]) == {"toy"}
    warns("left out: a task must have scored", read, tmp_path, skip_unusable=True)
    refuses(r"no task matches 'toys'.*Did you mean 'toy'", read, tmp_path, tasks=("toys",))
    about = header("itembank/adaptive", n_items=1, metadata={"itembank": {"task": "toy", "n_items_full": 40}})
    samples = [{**sample("a"), "scores": {"match": {"value": "C"}, "itembank": {"value": 0.3}}}]
    matrix = warns("1 of 40 items", read, write_eval(tmp_path / "b" / "a.eval", samples, about))
    assert (matrix.item_ids, matrix.responses.tolist()) == (["toy/a"], [[1.0]])
    write_eval(tmp_path / "c" / "1.eval", THREE)
    write_eval(tmp_path / "c" / "2.eval", THREE, header("other", "lab/b"))
    matrix = read(tmp_path / "c", task_names={"other": "toy"}, metric=("toy=match",))
    assert (matrix.n_models, matrix.n_items, names_in_harness(matrix.items)) == (2, 3, {"toy": "other"})


def test_empty_and_unreadable_logs_are_left_out_and_bombs_refused(tmp_path):
    write_eval(tmp_path / "1.eval", THREE)
    write_json(tmp_path / "2.json", [], header(model="lab/b"))
    (tmp_path / "eval-set.json").write_text('{"eval_set_id": "x"}', encoding="utf-8")
    assert warns(r"1 log holds no samples and is left out: '2\.json'", read, tmp_path).n_models == 1
    refuses("hold no samples", read, tmp_path / "2.json")
    write_eval(tmp_path / "b" / "1.eval", THREE)
    damaged(tmp_path / "b" / "2.eval", "cut")
    assert warns(r"left out: .*2\.eval", read, tmp_path / "b", skip_unusable=True).n_models == 1
    path = tmp_path / "c.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header()))
        archive.writestr("summaries.json", b" " * 5_000_000)
    refuses("a JSON document, must have at most", read, path, max_memory=16e6)


def damaged(path, what):
    """Make a log that cannot be read, of one kind."""
    write_eval(path, THREE)
    content = path.read_bytes()
    if what == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif what == "empty":
        path.write_bytes(b"")
    elif what == "flipped":
        with zipfile.ZipFile(path) as archive:
            place = archive.getinfo("summaries.json").header_offset + 60
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(*what)


@pytest.mark.parametrize(("what", "message"), [
    ("cut", "cannot be read: .*Copy it again"), ("empty", "cannot be read"), ("flipped", "cannot be read|is damaged"),
    (("other.json", "{}"), "there is no '_journal/start.json'"),
    (("header.json", "{"), "header.json cannot be read as JSON"),
    (("header.json", "[]"), "the header must be an object, got list"),
    (("header.json", "{}"), "is no log of Inspect"),
    (("header.json", '{"eval": {"task": "t"}}'), "must name its task and its model"),
    (("../../header.json", "{}"), "there is no '_journal/start.json'"),
], ids=str)  # fmt: skip
def test_damaged_and_hostile_archives_are_refused(tmp_path, what, message):
    damaged(tmp_path / "a.eval", what)
    refuses(rf"a\.eval.*{message}", read, tmp_path / "a.eval")


@pytest.mark.parametrize(
    "bad", [{"id": None}, {"id": True}, {"epoch": "x"}, {"scores": [1]}], ids=["no id", "bool id", "epoch", "scores"]
)
def test_samples_that_are_none_are_refused(tmp_path, bad):
    with pytest.raises(DataError, match=r"a\.eval: (a sample must have an id|the scores of a sample must)"):
        read(write_eval(tmp_path / "a.eval", [{**sample("a"), **bad}]))


def test_real_runs_have_the_accuracy_and_tokens_that_inspect_says(shared_dir):
    matrices = [read(path) for path in sorted((shared_dir / "logs" / "inspect_ai").rglob("2025-09-15*.eval"))]
    accuracy = {matrix.model_ids[0]: matrix.responses.mean() for matrix in matrices}
    assert sorted(accuracy.values()) == pytest.approx([0.52, 0.57, 0.66])
    gemini = next(matrix for matrix in matrices if matrix.model_ids == ["google/gemini-2.5-pro"])
    tokens = [int(gemini.costs[kind].sum()) for kind in ("input_tokens", "output_tokens")]
    assert tokens == [5249, 68456 - 5249]  # answers, and 63,107 of reasoning


@pytest.mark.parametrize("pair", [("log_formats.json", "log_formats.eval")])
def test_real_logs_of_both_formats_hold_the_same(shared_dir, pair):
    with pytest.warns(DataWarning, match="1 of 100 items"):
        one, two = (read(shared_dir / "logs" / "inspect_ai" / name) for name in pair)
    assert one.items.equals(two.items)
    assert np.array_equal(one.responses, two.responses)


@pytest.mark.parametrize(
    ("name", "n_items", "n_full"),
    [("2025-05-12T20-28-13-04-00_popularity.json", 3, 100), ("mmlu-summary-choices.eval", 1, 14042)],
)
def test_a_real_run_of_a_part_is_read_as_far_as_it_came(shared_dir, name, n_items, n_full):
    assert warns(f"{n_items} of {n_full} items", read, shared_dir / "logs" / "inspect_ai" / name).n_items == n_items


def test_the_journal_and_zstandard_members_of_real_runs(shared_dir, tmp_path):
    path = sorted((shared_dir / "logs" / "inspect_ai" / "history").glob("2025-09-15*.eval"))[0]
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(tmp_path / path.name, "w") as killed:
        for member in whole.namelist():
            if member.startswith("_journal/"):
                killed.writestr(member, whole.read(member))
    one, two = read(path), read(tmp_path / path.name)
    order = one.item_indices(two.item_ids)  # the journal is in order of completion
    assert np.array_equal(one.responses[:, order], two.responses)
    assert np.array_equal(one.costs["output_tokens"][:, order], two.costs["output_tokens"])
    with pytest.raises(DataError, match="must have scored samples"):
        read(shared_dir / "logs" / "inspect_ai" / "history" / "retry-2-then-success.eval")


STEPS = [
    {"solver": "system_message", "params": {"template": "Be short."}},
    {"solver": "multiple_choice", "params": {"cot": False, "max_tokens": 5, "template": "T" * 100}},
    {"solver": "generate", "params": {"tool_calls": "loop", "kwargs": {}}},
]


def write(folder, model, *, steps=STEPS, ids=("a", "b"), config=None, **about):
    about = header(model=model, n_items=len(ids), **{"task_version": 2, "task_args": {"cot": False, "n": 40}, **about})
    plan = {"steps": steps, "config": config or {}}
    return write_eval(folder / f"{model.replace('/', '_')}.eval", [sample(one) for one in ids], {**about, "plan": plan})


def settings_of(path, **choices):
    return settings_by_task(read_inspect(path, spec=ReadingSpec(**choices)).items)["toy"]


def test_settings_of_a_log_are_kept_and_logs_without_a_plan_join_everything(tmp_path):
    settings = settings_of(write(tmp_path, "lab/a"))
    assert settings == {
        "version": "2",
        "task_args": "cot=false, n=40",
        "solver": "system_message > multiple_choice > generate",
        "solver_args": f"multiple_choice.cot=false, multiple_choice.template={short_digest('T' * 100)}",
        "system_prompt": short_digest("Be short."),
        "model_roles": "",
    }
    assert settings_in_words(settings).startswith("task version 2, system prompt ")
    write(tmp_path, "lab/a")
    write_eval(tmp_path / "b.eval", [sample("a"), sample("b")], header(model="lab/b", n_items=2))
    assert settings_of(tmp_path)["version"] == "2"


def test_inner_tasks_and_new_arguments_are_compared(tmp_path):
    write(tmp_path, "lab/a")
    ours = {"task": "toy", "bank": "b1", "n_items_full": 2}
    given = {"task": "demo.py@toy", "bank": "bank", "selection": "s.json", "task_args": {"n": 40}}
    write(tmp_path, "lab/b", task="subset", metadata={OWN_SCORER: ours}, task_args=given)
    assert settings_of(tmp_path)["task_args"] == "cot=false, n=40"
    given = {**given, "task_args": {"cot": True}}
    write(tmp_path, "lab/c", task="subset", metadata={OWN_SCORER: ours}, task_args=given)
    refuses(r"task 'toy': .*1 model \('lab/c'\) task arguments cot=true", read_inspect, tmp_path)
    write(tmp_path / "b", "lab/a")
    later = [*STEPS[:1], {"solver": "multiple_choice", "params": {"cot": False, "new": 1, "max_tokens": 9}}, STEPS[2]]
    write(tmp_path / "b", "lab/b", steps=later, task_args={"cot": False, "fresh": True})
    assert settings_of(tmp_path / "b")["task_args"] == "cot=false, fresh=true, n=40"


@pytest.mark.parametrize(("other", "words"), [
    ({"task_version": 3}, "task version 3"), ({"steps": STEPS[1:]}, "no system prompt"),
    ({"steps": [{**STEPS[0], "params": {"template": "Be long."}}, *STEPS[1:]]}, "system prompt"),
    ({"steps": STEPS[:1] + STEPS[2:]}, "solver system_message > generate"),
    ({"config": {"system_message": "Think."}}, "system prompt"),
    ({"model_roles": {"grader": {"model": "lab/judge-2", "config": {}}}}, "model roles grader=lab/judge-2"),
    ({"model_roles": {"grader": "/home/me/judge"}}, "model roles grader=[0-9a-f]{8}"),
])  # fmt: skip
def test_mixtures_are_refused_unless_allowed(tmp_path, other, words):
    for model in ("lab/a", "lab/b"):
        write(tmp_path, model)
    write(tmp_path, "lab/c", **other)
    refuses(rf"in 1 they differ. task 'toy': 2 models .*1 model \('lab/c'\) .*{words}", read_inspect, tmp_path)
    assert "differs" in str(settings_of(tmp_path, allow_mixed_prompts=True))


def test_graders_that_scorers_or_roles_name_are_kept(tmp_path):
    graded = {"name": "model_graded_qa", "options": {"model": "lab/judge", "instructions": "I" * 50}}
    ours = {"name": f"{OWN_SCORER}/{OWN_SCORER}", "options": {"bank": "b"}}
    write(tmp_path, "lab/a", scorers=[graded, ours, "?", {"name": None, "options": None}])
    write(tmp_path, "lab/b", scorers=None, packages={"inspect_ai": "0.3.60"}, model_roles=None)  # which tells no roles
    write(tmp_path, "lab/c", scorers=[{"name": "match", "options": {}}], model_roles={})
    settings = settings_of(tmp_path)
    told = f"model_graded_qa.instructions={short_digest('I' * 50)}, model_graded_qa.model=lab/judge"
    assert (settings["scorer_args"], settings["model_roles"]) == (told, "")
    write(tmp_path, "lab/d", scorers=[{**graded, "options": {"model": "lab/other"}}])
    refuses(r"1 model \('lab/d'\) scorer arguments model_graded_qa.model=lab/other", read_inspect, tmp_path)


def test_logs_whose_samples_all_ended_in_errors_say_which(tmp_path):
    error = {"message": "KeyError('x')\nmore", "traceback": "T"}
    for name, about in (("a", {"status": "error", "error": error}), ("b", {"status": "cancelled"})):
        broken = [sample("q1", None), sample("q2", None, **({"error": "TimeoutError()"} if name == "b" else {}))]
        write_eval(tmp_path / f"{name}.eval", broken, {**header(f"task-{name}"), **about})
    write_eval(tmp_path / "c.eval", [sample("q1", None, limit="token")], header("task-c"))
    write_eval(tmp_path / "d.eval", [sample("q1", None)], header("task-d"))
    write_eval(tmp_path / "e.eval", [sample("q1", None, error="TimeoutError()")], header("task-d", "other/m"))
    with pytest.raises(DataError) as refused:
        read_inspect(tmp_path)
    assert [words in str(refused.value) for words in (
        "got 3 tasks whose samples ended before: 'task-a', 'task-b', 'task-c'",
        "a.eval has status 'error': KeyError('x'), b.eval has status 'cancelled': TimeoutError(), c.eval has",
        "status 'success': token. Mend the cause and run them again ('inspect eval-retry LOG')",
        "got 1 task without: 'task-d' (in d.eval). Score their logs ('inspect score LOG')",
    )] == [True] * 4, refused.value  # fmt: skip
