"""Items, contents and prompts of new results beside those of a bank."""

import hashlib
import json
import warnings

import numpy as np
import polars as pl
import pytest

from itembank.auditing.run_conditions import changed_conditions, told_conditions
from itembank.bank.arguments import as_new_responses
from itembank.calibration.build import calibrate
from itembank.errors import DataError, DataWarning, IntegrityError, ParameterError
from itembank.readers.agreement import check_same_content, check_same_prompts, only_items, read_new_responses, spec_like
from itembank.readers.matching import Document, changed_contents, find_items, find_logged
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import content_digest
from itembank.responses.prompts import DIFFERS, join_prompts, settings_by_task
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from itembank_living.changes.growing import add_models
from tests.readers.logs import answers, sample, write_run
from tests.readers.public.stores import write_bfcl
from tests.readers.reading import put, read, refuses, warns

ROWS = [sample(0, acc=1.0, acc_norm=0.0), sample(1, acc=1.0, acc_norm=0.5)]


def test_new_logs_are_read_as_the_known_items_were_and_may_hold_a_part(tmp_path):
    maths = [sample(0, filter_name=name, exact_match=float(k)) for k, name in enumerate(("strict-match", "flexible"))]
    write_run(tmp_path / "old", "org/a", {"arc": ROWS, "gsm8k": maths})
    write_run(tmp_path / "new", "org/b", {"arc": ROWS, "gsm8k": maths})
    choices = ReadingSpec(metric=("acc_norm", "exact_match"), filter_name=("flexible", "none"))
    old = read_responses(tmp_path / "old", spec=choices)
    new = read_responses(tmp_path / "new", spec=spec_like(old.items, ReadingSpec()))
    assert new.responses.tolist() == old.responses.tolist() == [[0.0, 0.5, 1.0]]
    check_same_content(new.items, old.items)
    write_run(tmp_path / "b" / "old", "org/a", {"arc": ROWS})
    write_run(tmp_path / "b" / "new", "org/b", {"arc": ROWS[:1]}, sizes={"arc": 2})
    known = read_responses(tmp_path / "b" / "old", metric="acc").items
    new = read_new_responses([tmp_path / "b" / "new"], known)  # a warning would be an error here
    assert (new.item_ids, new.models["is_partial"].to_list()) == (["arc/0"], [True])


def test_what_was_asked_for_stays_and_other_items_and_contents_are_told():
    items = pl.DataFrame({"item_id": ["a[1]/0"], "task": ["a[1]"], "metric": ["acc"], "filter": ["none"]})
    spec = spec_like(items, ReadingSpec(metric=("f1",)))
    assert spec.metric == ("f1",)
    assert spec.filter_name == ("a[[]1]=none",)
    assert spec_like(items.select("item_id"), ReadingSpec()) == ReadingSpec()
    assert spec_like(items, ReadingSpec(metric=("wmt=bleu",))).metric == ("wmt=bleu", "a[[]1]=acc")
    matrix = ResponseMatrix.create([[1.0, 0.0, 1.0]], item_ids=["x", "y", "z"])
    kept, others = only_items(matrix, ["z", "x", "w"])
    assert (kept.item_ids, others) == (["x", "z"], ["y"])
    assert only_items(matrix, ["x", "y", "z"]) == (matrix, [])
    assert only_items(matrix, ["w"])[0].n_items == 0
    known = pl.DataFrame({"item_id": ["x", "y", "z"], "content_hash": ["1", "2", None]})
    check_same_content(pl.DataFrame({"item_id": ["x", "z", "w"], "content_hash": ["1", "3", "4"]}), known)
    check_same_content(pl.DataFrame({"item_id": ["y"]}), known)
    with pytest.raises(DataError, match="got 1 of 2 with another: 'y'"):
        check_same_content(pl.DataFrame({"item_id": ["y", "x"], "content_hash": ["other", "1"]}), known)


def test_documents_of_a_task_that_nobody_knows_are_items_by_a_field_of_theirs(tmp_path):
    rows = [{**sample(k, acc=float(k)), "doc": {"question_id": 70 + k}} for k in (0, 1)]
    write_run(tmp_path / "new", "org/b", {"copy": rows})
    known = pl.DataFrame({"item_id": ["71", "70", "72"], "metric": "acc", "task": None}, schema_overrides={"task": str})
    new = warns(r"'copy': 2 documents are taken for the bank's items", read_new_responses, [tmp_path / "new"], known)
    assert dict(zip(new.item_ids, new.responses[0], strict=True)) == {"70": 0.0, "71": 1.0}
    few = known.filter(pl.col("item_id") == "70")
    assert read_new_responses([tmp_path / "new"], few).item_ids == ["copy/0", "copy/1"]  # not all are items: none is
    assert read_new_responses([tmp_path / "new"], few, match="doc.question_id").item_ids == ["70", "copy/1"]
    (tmp_path / "new.csv").write_text("model_id,item_id,response\nm,70,1\n")
    refuses("items are matched in logs", read_new_responses, [tmp_path / "new.csv"], known.drop("metric"), match="hash")


def test_programs_that_tell_no_lost_answers_powers_and_marks_are_read_as_the_bank_was(tmp_path):
    write_bfcl(tmp_path, {"m": [0]})
    found = read_new_responses([tmp_path], read(tmp_path).items.with_columns(pl.lit("wrong").alias("lost_as")))
    assert found.responses.tolist() == [[0.0, 1.0, 1.0, 1.0]]
    refuses("do not tell lost answers from others", read, tmp_path, errors="wrong", error=ParameterError)
    # Of four right trials and a lost one pass^4 is 1, or C(4, 4) / C(5, 4) where the lost one is wrong
    path = put(tmp_path / "r.csv", "model_id,item_id,n_correct,n_trials,n_errors\nm,x,4,4,1\nm,y,2,4,0\n")
    frame = pl.read_csv(path)
    for errors, expected in (("wrong", [0.2, 0.0]), ("missing", [1.0, 0.0])):
        own = read(path, metric=("pass^4",), errors=errors)
        items = own.items.with_columns(pl.lit(errors if errors == "wrong" else None, pl.String).alias("lost_as"))
        of_file = read_new_responses([path], items)
        in_memory = read_responses(frame, spec=spec_like(items, ReadingSpec()))
        assert own.responses.tolist() == of_file.responses.tolist() == in_memory.responses.tolist()
        assert own.responses[0].tolist() == pytest.approx(expected)
    # Marks up to 2 are not shares of the 10 that the bank's marks end at, though both lie in [0, 1] then
    path = put(tmp_path / "marks.csv", "model_id,item_id,response\nm,x,2\nm,y,1\n")
    by_two, by_ten = (read(path, max_response=most) for most in (2.0, 10.0))
    check_same_prompts(read(pl.read_csv(path), max_response=10.0).items, by_ten.items)
    says = r"scales differ for 2 of 2 items: the bank's runs had .* 10, these have .* 2\."
    refuses(says, check_same_prompts, by_two.items, by_ten.items)


@pytest.mark.parametrize(
    ("items", "warned"),
    [
        ({"scenario": "arc"}, True),
        ({"scenario": "gsm8k"}, False),
        ({"scenario": "all"}, False),  # nothing is told
        ({"scenario": "math", "subscenario": "gsm8k"}, False),
        ({"scenario": "math", "task": "gsm8k"}, False),
        ({"scenario": "arc", "content_hash": "1"}, False),  # contents are compared where both tell them
        ({}, False),
    ],
)
def test_items_of_another_scenario_are_told(items, warned):
    known = pl.DataFrame({"item_id": ["0", "1"], "scenario": "gsm8k", "subscenario": "hard", "content_hash": "1"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_same_prompts(pl.DataFrame({"item_id": ["0", "1"]} | items), known)
    says = "2 of 2 items are in another scenario than those of the bank's runs"
    assert [str(one.message).startswith(says) for one in caught] == [True] * warned


def test_ids_that_name_what_they_are_of_need_no_scenario():
    """A report of SWE-bench tells no split, and its ids are those of one benchmark alone."""
    ids = pl.DataFrame({"item_id": ["astropy__astropy-13453", "django__django-11099"]})
    check_same_prompts(ids.with_columns(scenario=pl.lit("swe-bench")), ids.with_columns(scenario=pl.lit("verified")))


def documents(task, ids, start=0, **more):
    """Documents with a field `question_id` each, and a text."""
    rows = ({"question_id": one, "text": f"{task} {one}", **more} for one in ids)
    return [Document(task, str(k), row, lambda row=row: f"hash {row['text']}") for k, row in enumerate(rows, start)]


def bank_of(ids, **columns):
    return pl.DataFrame({"item_id": ids, **columns})


def places(found):
    return {item: one.place for item, one in found.items()}


LAW, MATH = documents("pro_law", [7, 8]), documents("pro_math", [7, 9])


@pytest.mark.parametrize(
    ("items", "groups", "found"),
    [
        (bank_of(["pro_law/1", "pro_math/0"]), {}, ["pro_law/1", "pro_math/0"]),  # by place
        (bank_of(["PRO-law/7", "pack/pro_math/7"]), {}, ["pro_law/0", "pro_math/0"]),  # by id in a task called so
        (bank_of(["8", "9"]), {}, ["pro_law/1", "pro_math/1"]),
        (bank_of(["pro/8", "pro/9"]), {"pro": {"pro_law", "pro_math"}}, ["pro_law/1", "pro_math/1"]),
        (bank_of(["a", "b"], task="pro_math", native_id=["7", "9"]), {}, ["pro_math/0", "pro_math/1"]),
        (bank_of(["a", "b"], content_hash=["hash pro_math 7", "hash pro_law 7"]), {}, ["pro_math/0", "pro_law/0"]),
    ],
)
def test_items_are_found_by_the_first_rule_that_finds_all(items, groups, found):
    ids = items["item_id"].to_list()
    assert places(find_items(items, ids, [*LAW, *MATH], groups=groups)) == dict(zip(ids, found, strict=True))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["7", "8"], "1 of 2 that are there more than once: '7'"),
        (["a/8", "b/8"], "2 of 2 that are there more than once: 'a/8', 'b/8'"),  # one document for two items
        (["8", "10"], "1 of 2 that are in none: '10'"),
    ],
)
def test_an_item_that_is_not_one_document_is_refused(ids, message):
    refuses(message, find_items, bank_of(ids), ids, [*LAW, *MATH], error=IntegrityError)


@pytest.mark.parametrize("fields", ["5", "[1]", "no JSON"])
def test_fields_that_a_bank_names_must_be_names(fields):
    items = bank_of(["8"], content_hash=["x"], content_fields=[fields])
    refuses("content_fields of a bank must hold lists of names", find_logged, items, LAW)


def test_of_logs_a_rule_counts_that_knows_nearly_every_document():
    logged, ids = documents("law", range(20)), [str(one) for one in range(18)]
    assert find_logged(bank_of(ids), logged).keys() == set(ids)
    assert find_logged(bank_of([*ids[:17], "else"]), logged) == {}  # 17 of 20 documents
    assert find_logged(bank_of(ids[:3]), logged).keys() == set(ids[:3])  # all items of the bank
    items = bank_of(["other/7", "other/8"], task="other", doc_id=[7, 8])
    assert find_logged(items, LAW) == {}
    found = places(find_logged(items.with_columns(native_id=pl.Series(["7", "8"])), LAW))
    assert found == {"other/7": "pro_law/0", "other/8": "pro_law/1"}
    items = bank_of(["7", "8", "9", "11"])
    assert places(find_logged(items, LAW)) == {"7": "pro_law/0", "8": "pro_law/1"}
    assert find_logged(items, documents("other", [7, 12])) == {}
    assert places(find_logged(items, documents("other", [7, 12]), "doc.question_id")) == {"7": "other/0"}


def test_contents_are_compared_by_named_fields_or_by_the_harness_s_own_hash():
    found = dict(zip(["a", "b"], LAW, strict=True))
    digests = [content_digest("pro_law 7"), content_digest("another")]
    named = bank_of(["a", "b"], content_hash=digests, content_fields='["text"]')
    assert changed_contents(named, found, "lm-eval") == ["b"]
    with pytest.warns(DataWarning, match="no field 'question'"):
        assert not changed_contents(named.with_columns(content_fields=pl.lit('["question"]')), found, "lm-eval")
    own = bank_of(["a", "b"], content_hash=["hash pro_law 7", "hash"], task="t", doc_id=[0, 1])
    assert changed_contents(own, found, "lm-eval") == ["b"]
    assert not changed_contents(own, found, "inspect")  # which hashes otherwise


TOLD = {
    "n-shot": {"arc": 4, "dup": 0}, "versions": {"arc": 2.5, "dup": "1.0"}, "chat_template": None,
    "chat_template_sha": None, "fewshot_as_multiturn": True, "system_instruction": None, "system_instruction_sha": None,
}  # fmt: skip
CONFIG = {"model": "hf", "model_args": "pretrained=x", "limit": None, "fewshot_seed": 1234}
MIXED = ReadingSpec(allow_mixed_prompts=True)


def prompt_hash(text):
    return hashlib.sha256(text.encode()).hexdigest()


def asked(prompt, *values):
    """Make answers of documents whose prompts begin with this text; None leaves out the hash."""
    rows = answers(*values)
    for row in rows:
        row["prompt_hash"] = prompt_hash(f"{prompt} {row['doc_id']}")
        if prompt is None:
            del row["prompt_hash"]
    return rows


def write(folder, model, prompt, *, task="arc", values=(1, 0, 1), **told):
    return write_run(folder, model, {task: asked(prompt, *values)}, **{"config": CONFIG, **TOLD, **told})


def several(folder, n, prompt="usual", **told):
    for number in range(n):
        write(folder, f"org/{prompt}{number}", prompt, **told)


def test_hashes_and_settings_are_kept(tmp_path):
    several(tmp_path, 3)
    items = read(tmp_path).items
    assert items["prompt_hash"].to_list() == [prompt_hash(f"usual {number}")[:15] for number in range(3)]
    assert settings_by_task(items) == {
        "arc": {"num_fewshot": 4, "version": "2.5", "chat_template": False, "system_prompt": "", "fewshot_seed": 1234}
    }
    path = next(write(tmp_path / "b", "org/a", "usual").glob("samples_*"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    order = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics")
    path.write_text("".join(json.dumps({k: row[k] for k in (*order, *row)}) + "\n" for row in rows))
    assert read(tmp_path / "b").items["prompt_hash"][0] == prompt_hash("usual 0")[:15]
    write(tmp_path / "c", "org/a", "usual", task="dup")
    assert settings_by_task(read(tmp_path / "c").items) == {
        "dup": {"num_fewshot": 0, "version": "1.0", "chat_template": False, "system_prompt": ""}
    }
    for model in ("org/a", "org/b"):
        write_run(tmp_path / "d", model, {"arc": asked(None, 1, 0)}, versions={})
    assert {"prompt_hash", "prompt_settings"}.isdisjoint(read(tmp_path / "d").items.columns)
    write(tmp_path / "d", "org/c", "usual", values=(1, 0))
    assert read(tmp_path / "d").items["prompt_hash"].null_count() == 0


@pytest.mark.parametrize(
    ("template", "turns", "is_applied"),
    [("{{ messages }}", True, True), ("", True, True), ("", False, None), (None, False, False)],
)
def test_whether_a_template_was_applied(tmp_path, template, turns, is_applied):
    write(tmp_path, "org/a", "usual", chat_template=template, fewshot_as_multiturn=turns)
    assert settings_by_task(read(tmp_path).items)["arc"].get("chat_template") is is_applied


def test_mixtures_are_refused_or_marked_and_say_how_many_models_had_what(tmp_path):
    several(tmp_path, 3)
    write(tmp_path, "org/zero", "without", **{"n-shot": {"arc": 0}})
    write(tmp_path, "org/chat", "chat", chat_template="x")
    refused = refuses(".", read, tmp_path)
    assert refused == (
        "all models of a task must have been asked with the same prompts, and in 1 they differ. task 'arc': 3 models 4 "
        "shots, no chat template; 1 model ('org/zero') 0 shots, no chat template; 1 model ('org/chat') 4 shots, chat "
        "template. Give the logs of one kind alone, or leave the tasks out (exclude_tasks=['NAME']). To take them "
        "together anyway, add spec=ReadingSpec(allow_mixed_prompts=True)."
    )
    several(tmp_path / "b", 3)
    write(tmp_path / "b", "org/zero", "without", values=(1, 0), **{"n-shot": {"arc": 0}})
    items = read_responses(tmp_path / "b", spec=MIXED).items
    assert items["prompt_hash"].to_list() == [DIFFERS, DIFFERS, prompt_hash("usual 2")[:15]]
    assert settings_by_task(items)["arc"]["num_fewshot"] == DIFFERS
    assert settings_by_task(items)["arc"]["version"] == "2.5"


def test_what_is_a_mixture_and_what_is_none(tmp_path):
    several(tmp_path, 2)
    write(tmp_path, "org/later", "usual", versions={"arc": 3})
    items = warns(r"2 models task version 2.5; 1 model .'org/later'. task version 3. The prompts", read, tmp_path).items
    assert items["prompt_hash"][0] == prompt_hash("usual 0")[:15]
    assert settings_by_task(items)["arc"]["version"] == DIFFERS
    write(tmp_path / "b", "org/a", "one", chat_template="x")
    write(tmp_path / "b", "org/b", "two", chat_template="y")
    items = read(tmp_path / "b").items
    assert items["prompt_hash"].to_list() == [DIFFERS] * 3
    assert settings_by_task(items)["arc"]["chat_template"] is True
    write(tmp_path / "b", "org/c", "three", chat_template="y", **{"n-shot": {"arc": 2}})
    refuses(r"2 models 4 shots; 1 model .'org/c'. 2 shots", read, tmp_path / "b")
    several(tmp_path / "c", 3)
    rows = asked("usual", 1, 0, 1)
    rows[1]["prompt_hash"] = prompt_hash("another")
    write_run(tmp_path / "c", "org/other", {"arc": rows}, config=CONFIG, **TOLD)
    refuses(r"3 models the usual prompts; 1 model .'org/other'. other prompts for 1 item", read, tmp_path / "c")
    several(tmp_path / "d", 2)
    write(tmp_path / "d", "org/same", None)
    read(tmp_path / "d")
    write(tmp_path / "d", "org/other", None, versions={"arc": 3})
    refuses(r"3 models task version 2.5; 1 model .'org/other'. task version 3", read, tmp_path / "d")


# in several sources, and beside a bank


def response_file(folder, name, model, prompt, **told):
    write(folder / name, model, prompt, **told)
    path = folder / f"{name}.parquet"
    write_responses(read(folder / name), path)
    return path


def test_prompts_of_several_sources_are_joined(tmp_path):
    one = response_file(tmp_path, "one", "org/a", "usual")
    other = response_file(tmp_path, "other", "org/b", "without", **{"n-shot": {"arc": 0}})
    refuses(r"prompts differ for 3 of 3 items: .*one.parquet had 4 shots, these have 0 sh", read, [one, other])
    items = read_responses([one, other], spec=MIXED).items
    assert (items["prompt_hash"].to_list(), settings_by_task(items)["arc"]["num_fewshot"]) == ([DIFFERS] * 3, DIFFERS)
    same = response_file(tmp_path, "same", "org/c", "usual", versions={"arc": 3})
    joined = warns(r"3 of 3 items: .*one.parquet had task version 2.5, these have .* 3", read, [one, same]).items
    assert joined["prompt_hash"].to_list() == read(one).items["prompt_hash"].to_list()
    one = response_file(tmp_path / "b", "one", "org/a", "usual")
    pl.DataFrame({"model_id": ["z"], "item_id": ["arc/0"], "response": [1.0]}).write_csv(tmp_path / "b" / "plain.csv")
    joined = read([tmp_path / "b" / "plain.csv", one]).items.sort("item_id")
    assert joined["prompt_hash"].to_list() == read(one).items["prompt_hash"].to_list()
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
    return calibrate(read(tmp_path / "past"), "map")


def test_new_results_of_other_prompts_are_refused_unless_read_before_and_a_bank_says_so(tmp_path, bank):
    told = {"n-shot": {"arc": 0}}
    new = write(tmp_path / "new", "org/new", "without", values=[1, 0] * 15, **told)
    refuses("for 30 of 30 items: the bank's runs had 4 shots, these have 0", as_new_responses, bank, new)
    assert as_new_responses(bank, new, allow_mixed_prompts=True).n_items == 30
    assert as_new_responses(bank, read(new)).n_items == 30
    assert list(changed_conditions(read(new), bank.responses)) == [
        "prompts differ for 30 of 30 items: the bank's runs had 4 shots, these have 0 shots."
    ]
    found = told_conditions(bank.responses)
    assert found["prompts"] == "4 shots, task version 2.5, no chat template, few-shot seed 1234"
    new = write(tmp_path / "b" / "new", "org/new", "without", values=[1, 0] * 15, **{"n-shot": {"arc": 0}})
    refuses("prompts differ", add_models, bank, new, how="complete")
    grown = add_models(bank, read(new), how="complete")
    assert set(grown.responses.items["prompt_hash"]) == {DIFFERS}
    assert settings_by_task(grown.responses.items)["arc"]["num_fewshot"] == DIFFERS
    same = write(tmp_path / "b" / "same", "org/same", "usual", values=[1, 0] * 15)
    assert add_models(bank, same, how="complete").n_models == 13
