import warnings

import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.readers.agreement import check_same_content, check_same_prompts, only_items, read_new_responses, spec_like
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix
from tests.readers.logs import sample, write_run
from tests.readers.public.stores import write_bfcl

ROWS = [sample(0, acc=1.0, acc_norm=0.0), sample(1, acc=1.0, acc_norm=0.5)]


def test_new_logs_are_read_with_the_metric_and_filter_of_the_known_items(tmp_path):
    maths = [sample(0, filter_name=name, exact_match=float(k)) for k, name in enumerate(("strict-match", "flexible"))]
    write_run(tmp_path / "old", "org/a", {"arc": ROWS, "gsm8k": maths})
    write_run(tmp_path / "new", "org/b", {"arc": ROWS, "gsm8k": maths})
    choices = ReadingSpec(metric=("acc_norm", "exact_match"), filter_name=("flexible", "none"))
    old = read_responses(tmp_path / "old", spec=choices)
    new = read_responses(tmp_path / "new", spec=spec_like(old.items, ReadingSpec()))
    assert new.responses.tolist() == old.responses.tolist() == [[0.0, 0.5, 1.0]]
    check_same_content(new.items, old.items)


def test_new_logs_hold_a_part_of_their_tasks_and_nobody_is_warned_of_it(tmp_path):
    write_run(tmp_path / "old", "org/a", {"arc": ROWS})
    write_run(tmp_path / "new", "org/b", {"arc": ROWS[:1]}, sizes={"arc": 2})
    old = read_responses(tmp_path / "old", metric="acc")
    new = read_new_responses([tmp_path / "new"], old.items)  # a warning would be an error here
    assert new.item_ids == ["arc/0"]
    assert new.models["is_partial"].to_list() == [True]


def test_items_that_are_not_wanted_are_told():
    matrix = ResponseMatrix.create([[1.0, 0.0, 1.0]], item_ids=["x", "y", "z"])
    kept, others = only_items(matrix, ["z", "x", "w"])
    assert (kept.item_ids, others) == (["x", "z"], ["y"])
    assert only_items(matrix, ["x", "y", "z"]) == (matrix, [])
    assert only_items(matrix, ["w"])[0].n_items == 0


def test_what_was_asked_for_stays():
    items = pl.DataFrame({"item_id": ["a[1]/0"], "task": ["a[1]"], "metric": ["acc"], "filter": ["none"]})
    spec = spec_like(items, ReadingSpec(metric=("f1",)))
    assert spec.metric == ("f1",)
    assert spec.filter_name == ("a[[]1]=none",)
    assert spec_like(items.select("item_id"), ReadingSpec()) == ReadingSpec()
    assert spec_like(items, ReadingSpec(metric=("wmt=bleu",))).metric == ("wmt=bleu", "a[[]1]=acc")


def test_items_of_another_content_are_refused():
    known = pl.DataFrame({"item_id": ["x", "y", "z"], "content_hash": ["1", "2", None]})
    check_same_content(pl.DataFrame({"item_id": ["x", "z", "w"], "content_hash": ["1", "3", "4"]}), known)
    check_same_content(pl.DataFrame({"item_id": ["y"]}), known)
    with pytest.raises(DataError, match="got 1 of 2 with another: 'y'"):
        check_same_content(pl.DataFrame({"item_id": ["y", "x"], "content_hash": ["other", "1"]}), known)


def test_documents_of_a_task_that_nobody_knows_are_items_by_a_field_of_theirs(tmp_path):
    rows = [{**sample(k, acc=float(k)), "doc": {"question_id": 70 + k}} for k in (0, 1)]
    write_run(tmp_path / "new", "org/b", {"copy": rows})
    known = pl.DataFrame({"item_id": ["71", "70", "72"], "metric": "acc", "task": None}, schema_overrides={"task": str})
    with pytest.warns(DataWarning, match=r"2 documents of 'copy' are taken for the bank's items by their ids alone"):
        new = read_new_responses([tmp_path / "new"], known)
    assert dict(zip(new.item_ids, new.responses[0], strict=True)) == {"70": 0.0, "71": 1.0}
    few = known.filter(pl.col("item_id") == "70")
    assert read_new_responses([tmp_path / "new"], few).item_ids == ["copy/0", "copy/1"]  # not all are items: none is
    assert read_new_responses([tmp_path / "new"], few, match="doc.question_id").item_ids == ["70", "copy/1"]
    (tmp_path / "new.csv").write_text("model_id,item_id,response\nm,70,1\n")
    with pytest.raises(DataError, match="items are matched in logs of lm-evaluation-harness and Inspect"):
        read_new_responses([tmp_path / "new.csv"], known.drop("metric"), match="hash")


def test_powers_of_trials_count_lost_ones_as_the_bank_did(tmp_path):
    """Of four right trials and a lost one pass^4 is 1, or C(4, 4) / C(5, 4) where the lost one is wrong."""
    frame = pl.DataFrame(
        {"model_id": "m", "item_id": ["x", "y"], "n_correct": [4, 2], "n_trials": [4, 4], "n_errors": [1, 0]}
    )
    frame.write_csv(tmp_path / "r.csv")
    for errors, expected in (("wrong", [0.2, 0.0]), ("missing", [1.0, 0.0])):
        own = read_responses(tmp_path / "r.csv", spec=ReadingSpec(metric=("pass^4",), errors=errors))
        items = own.items.with_columns(pl.lit(errors if errors == "wrong" else None, pl.String).alias("lost_as"))
        of_file = read_new_responses([tmp_path / "r.csv"], items)
        in_memory = read_responses(frame, spec=spec_like(items, ReadingSpec()))
        assert own.responses.tolist() == of_file.responses.tolist() == in_memory.responses.tolist()
        assert own.responses[0].tolist() == pytest.approx(expected)


def test_a_program_that_tells_no_lost_answers_is_read_for_a_bank_that_has_some(tmp_path):
    write_bfcl(tmp_path, {"m": [0]})
    items = read_responses(tmp_path).items
    found = read_new_responses([tmp_path], items.with_columns(pl.lit("wrong").alias("lost_as")))
    assert found.responses.tolist() == [[0.0, 1.0, 1.0, 1.0]]
    with pytest.raises(ParameterError, match="do not tell lost answers from others"):
        read_responses(tmp_path, spec=ReadingSpec(errors="wrong"))


def test_marks_out_of_another_number_are_other_responses(tmp_path):
    """Marks up to 2 are not shares of the 10 that the bank's marks end at, though both lie in [0, 1] then."""
    (tmp_path / "r.csv").write_text("model_id,item_id,response\nm,x,2\nm,y,1\n")
    by_two, by_ten = (read_responses(tmp_path / "r.csv", spec=ReadingSpec(max_response=most)) for most in (2.0, 10.0))
    in_memory = read_responses(pl.read_csv(tmp_path / "r.csv"), spec=ReadingSpec(max_response=10.0))
    check_same_prompts(in_memory.items, by_ten.items)
    with pytest.raises(
        DataError, match=r"scales differ for 2 of 2 items: the bank's runs had .* 10, these have .* 2\."
    ):
        check_same_prompts(by_two.items, by_ten.items)


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
    told = [str(one.message) for one in caught]
    assert [text.startswith("2 of 2 items are in another scenario than those of the bank's runs") for text in told] == (
        [True] * warned
    )


def test_ids_that_name_what_they_are_of_need_no_scenario():
    """A report of SWE-bench tells no split, and its ids are those of one benchmark alone."""
    ids = pl.DataFrame({"item_id": ["astropy__astropy-13453", "django__django-11099"]})
    check_same_prompts(ids.with_columns(scenario=pl.lit("swe-bench")), ids.with_columns(scenario=pl.lit("verified")))
