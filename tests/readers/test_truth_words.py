import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.readers.columns import PAIRS
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec

pytestmark = pytest.mark.filterwarnings("ignore:.*lost answers count as missing")


def long(*values):
    """Write responses of one model to as many items, as CSV."""
    return "model_id,item_id,response\n" + "".join(f"a,q{number},{value}\n" for number, value in enumerate(values))


def read(tmp_path, text, **choices):
    (tmp_path / "r.csv").write_text(text)
    return read_responses(tmp_path / "r.csv", spec=ReadingSpec(**choices)).responses[0]


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair != ("true", "false")])
def test_a_usual_pair_is_read_by_itself_and_told(tmp_path, pair):
    right, wrong = pair[0].upper(), pair[1].capitalize()
    with pytest.warns(DataWarning, match=f"read '{right}' as right and '{wrong}' as wrong"):
        found = read(tmp_path, long(right, wrong, "", f" {right} ", "NA"))
    np.testing.assert_array_equal(found, [1, 0, np.nan, 1, np.nan])


@pytest.mark.parametrize(
    ("words", "worth"), [("CPINc", [1, 0.5, 0, 0, 1]), (("Wins", "drawn", "LOSES", "ties"), [1, 0.5, 0, 0.5])]
)
def test_words_of_more_than_two_outcomes(tmp_path, words, worth):
    with pytest.warns(DataWarning, match="as 0.5"):
        np.testing.assert_array_equal(read(tmp_path, long(*words)), worth)


def test_one_word_of_a_pair_is_enough(tmp_path):
    with pytest.warns(DataWarning, match="read 'incorrect' as wrong"):
        np.testing.assert_array_equal(read(tmp_path, long("incorrect", "incorrect")), [0, 0])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (("C", "I", "Q", "C"), r"'C' 2 times, 'I' 1 time, 'Q' 1 time. If 'Q' marks .* missing_values=\('Q',\)\n"),
        (("correct", "fail"), "'correct' 1 time, 'fail' 1 time.*say which: true_value='correct' or true_value='fail'"),
        (("yes", "1"), "got 1 other value: 'a' item 'q0' = 'yes'"),
        (("A", "B", "C", "D"), r"or, if these are answers and another column says .*, add: response_column='...'$"),
        (("1", "0", '"1,000"'), r"'1,000' 1 time. Write numbers with a decimal point, .* thousands\.$"),
        (("true", "false", "lazy"), r"If 'lazy' marks an answer that is missing, add: missing_values=\('lazy',\)\n"),
        (("accepted", "rejected"), "'accepted' 1 time, 'rejected' 1 time"),
    ],
)
def test_what_is_not_one_pair_is_refused_with_its_counts(tmp_path, values, says):
    with pytest.raises(DataError, match=says):
        read(tmp_path, long(*values))


@pytest.mark.parametrize("true_value", ["accepted", " Accepted"])
def test_the_value_that_is_right_can_be_said(tmp_path, true_value):
    with pytest.warns(DataWarning, match="read 'accepted' as right and 'rejected' as wrong"):
        found = read(tmp_path, long("accepted", "rejected", ""), true_value=true_value)
    np.testing.assert_array_equal(found, [1, 0, np.nan])


def test_what_was_said_goes_before_the_usual_meaning(tmp_path):
    with pytest.warns(DataWarning, match="read 'fail' as right and 'pass' as wrong"):
        np.testing.assert_array_equal(read(tmp_path, long("pass", "fail"), true_value="fail"), [0, 1])


@pytest.mark.parametrize(
    ("values", "true_value", "says"),
    [
        (("C", "I", "P", "P"), "C", "must be 'C', which is right, or 'i', which is wrong, got 'P' 2 times"),
        (("a", "b", "c", "c"), "a", "must be 'a', which is right, or one other value, got 'c' 2 times, 'b' 1 time"),
        (("done", "failed", "lost"), "dome", "Did you mean 'done'"),
        (("resolved", "unresolved", "0.5"), "resolved", "got '0.5' 1 time"),
    ],
)
def test_what_is_neither_right_nor_wrong_is_refused_with_its_count(tmp_path, values, true_value, says):
    with pytest.raises(DataError, match=says):
        read(tmp_path, long(*values), true_value=true_value)


def test_columns_of_a_wide_table_are_judged_together(tmp_path):
    with pytest.warns(DataWarning, match="read 'C' as right and 'I' as wrong"):
        np.testing.assert_array_equal(read(tmp_path, "model_id,x,y,z\na,C,I,\nb,C,C,I\n"), [1, 0, np.nan])
    for text in ("model_id,x,y\na,C,1\nb,I,0\n", "model_id,family,x\na,yes,pass\nb,no,fail\n"):
        with pytest.raises(DataError, match="every column but model_id must hold the responses"):
            read(tmp_path, text)


@pytest.mark.parametrize("column", [[2, 1, None], [2.0, 1.0, None], ["2", "1", None]])
def test_numbers_can_stand_for_right_and_wrong_as_well(column):
    table = pl.DataFrame({"model_id": ["a"] * 3, "item_id": ["x", "y", "z"], "response": column})
    with pytest.warns(DataWarning, match="read '2' as right and '1' as wrong"):
        found = read_responses(table, spec=ReadingSpec(true_value="2"))
    np.testing.assert_array_equal(found.responses, [[1, 0, np.nan]])


@pytest.mark.parametrize("choices", [{"true_value": " "}, {"true_value": "yes", "max_response": 100.0}])
def test_choices_that_contradict_are_refused(choices):
    with pytest.raises(ParameterError, match="true_value must be a word"):
        ReadingSpec(**choices)
