"""Folders of which some files cannot be read: what is refused, what is advised, and what is left out on request."""

import re
import shlex

import pytest

from itembank.errors import DataError, DataWarning, command_line_words
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers import test_evalscope, test_opencompass
from tests.readers.inspect_writing import header, write_eval
from tests.readers.inspect_writing import sample as inspect_sample
from tests.readers.logs import answers, write_run
from tests.readers.public.stores import write_alpaca_eval, write_bfcl

LONG = "model_id,item_id,response\n"


def spoiled(folder):
    """A folder in which each of several programs has a file that cannot be read, and lm_eval one that can."""
    write_run(folder, "org/a", {"arc": answers(1, 0)})
    (folder / "old.json").write_text('{"results": {"arc": {"acc": 0.5}}, "versions": {"arc": 0}}')
    write_bfcl(folder / "bfcl", {"b": [0]})
    next((folder / "bfcl").rglob("*_result.json")).unlink()
    test_opencompass.write(folder / "oc", "results", "m", "d", test_opencompass.PREDICTION)
    (folder / "cut.eval").write_bytes(b"PK\x03\x04 and no more")
    (folder / "cut.csv").write_bytes(LONG.encode() + b"a,x,1\nb,x,\xff\n")
    (folder / "whole.csv").write_text(LONG + "org/a,x,1\n")
    test_evalscope.write(folder, "reviews", "m", "gsm8k_main", [{"index": 1}])


@pytest.mark.filterwarnings("ignore:1 run has no samples")
def test_every_reader_leaves_out_what_it_cannot_read(tmp_path):
    spoiled(tmp_path)
    with pytest.raises(DataError, match=r"(?s)_score.json.*To leave out what .* be read, add: spec=.*skip_unusable"):
        read_responses(tmp_path)
    with pytest.warns(DataWarning) as caught:
        matrix = read_responses(tmp_path, spec=ReadingSpec(skip_unusable=True))
    assert set(matrix.item_ids) == {"arc/0", "arc/1", "x"}
    said = [str(one.message) for one in caught if str(one.message).startswith("left out: ")]
    assert any("1 run has no samples and is left out: 'old.json'" in str(one.message) for one in caught)
    causes = ("_score.json", "m/d.json", "cut.eval", "cut.csv", "gsm8k_main.jsonl")
    assert all(sum(cause in one for one in said) == 1 for cause in causes)
    assert len(said) == len(causes)


@pytest.mark.parametrize(
    "left_out", [("old.json", "cut.*", "bfcl", "oc/*", "reviews"), ("*.eval", "c*.csv", "*d.json", "b*", "*main.jsonl")]
)
def test_files_are_left_out_by_pattern(tmp_path, left_out):
    spoiled(tmp_path)
    spec = ReadingSpec(exclude_files=left_out)
    with pytest.warns(DataWarning, match="1 of 3 items have no scenario"):
        matrix = read_responses(tmp_path, spec=spec)
    assert set(matrix.item_ids) == {"arc/0", "arc/1", "x"}
    with pytest.raises(DataError, match=r"there must be a file to read, got none but those of 'whole\.csv'"):
        read_responses(tmp_path / "whole.csv", spec=ReadingSpec(exclude_files=("whole.csv",)))


def test_tables_of_which_one_is_broken_are_read_without_it(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"{LONG}{name},x,1\n")
    (tmp_path / "c.csv").write_text(LONG + "c,x,7\n")
    paths = [tmp_path / f"{name}.csv" for name in "abc"]
    with pytest.raises(DataError, match=r"c\.csv: response must lie in \[0, 1\]"):
        read_responses(paths)
    with pytest.warns(DataWarning, match=r"left out: .*c\.csv: response must lie in"):
        assert read_responses(paths, spec=ReadingSpec(skip_unusable=True)).model_ids == ["a", "b"]
    with pytest.raises(DataError, match=r"c\.csv: response must lie"):
        read_responses(paths[2], spec=ReadingSpec(skip_unusable=True))


def test_the_advice_for_logs_of_several_programs_holds_for_all_of_them(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0), "wmt": answers(0.5, metric="bleu")})
    test_evalscope.write(tmp_path, "reviews", "m", "q_all", [test_evalscope.review(0, {"f1": 1.0})])
    write_eval(tmp_path / "a.eval", [inspect_sample("q", scorer="match")], header("toy", n_items=1))
    write_alpaca_eval(tmp_path, {"a": [1.0, 2.0]}, win_rates={"a": 50.0})
    with pytest.raises(DataError) as error, command_line_words():
        read_responses(tmp_path, metric="acc")
    (line,) = re.findall(r"^To read them, add: (.*)$", str(error.value), re.M)
    words = shlex.split(line)
    assert words[::2] == ["--metric"] * 4
    assert {"toy=match", "wmt=bleu", "q_all=f1"} < {*words[1::2]}
    assert read_responses(tmp_path, metric=["acc", *words[1::2]]).n_items == 7


def test_choices_are_advised_beside_what_no_choice_mends(tmp_path):
    tasks = {"arc": answers(1, 0), "q1": answers(1, metric="f1", bleu=0.5), "q2": answers(1, metric="f1", bleu=0.5)}
    place = write_run(tmp_path, "org/a", tasks)
    (cut,) = place.glob("samples_arc_*")
    (tmp_path / "r.csv").write_text(f"{LONG}c,x,7\n")

    def choose():
        with pytest.raises(DataError) as error, command_line_words():
            read_responses(tmp_path)
        (line,) = re.findall(r"^To choose, add: (.*)$", str(error.value), re.M)
        assert str(error.value).endswith(" skip_unusable = true in the file of --spec")
        return shlex.split(line)[1::2]

    chosen = choose()
    assert len(chosen) == 2
    (tmp_path / "r.csv").unlink()
    whole = cut.read_text()
    cut.write_text(whole + "{")
    write_run(tmp_path, "org/b", {"wmt": answers(1)})
    assert choose() == chosen
    cut.write_text(whole)
    assert read_responses(tmp_path, metric=chosen).n_items == 5


def test_a_task_that_one_program_has_leaves_the_others_out(tmp_path):
    write_run(tmp_path, "org/a", {"arc": answers(1, 0)})
    (tmp_path / "r.csv").write_text("model_id,item_id,scenario,response\na,x,law,1\na,y,quiz,0\n")
    with pytest.warns(DataWarning, match="left out: no task matches 'quiz'; there are 'arc'"):
        assert read_responses(tmp_path, spec=ReadingSpec(tasks=("quiz",))).item_ids == ["y"]
    matrix = read_responses(tmp_path, spec=ReadingSpec(exclude_tasks=("law",)))
    assert sorted(matrix.item_ids) == ["arc/0", "arc/1", "y"]
    with pytest.raises(DataError, match="no task matches 'nowhere'"):
        read_responses(tmp_path, spec=ReadingSpec(tasks=("nowhere",)))


def test_journals_of_sessions_are_told_from_tables(tmp_path):
    (tmp_path / "run.jsonl").write_text('{"kind":"itembank session","model_id":"m"}\n{"item_id":"q"}\n')
    with command_line_words(), pytest.raises(DataError, match=r"journal .*: itembank import \S+ -o answers.parquet"):
        read_responses(tmp_path / "run.jsonl")


def test_a_scorer_that_some_tasks_lack_is_chosen_for_them(tmp_path):
    write_eval(tmp_path / "1.eval", [inspect_sample("q", scorer="match")], header("toy", n_items=1))
    write_eval(tmp_path / "2.eval", [inspect_sample("q", scorer="graded")], header("essay", n_items=1))
    with pytest.raises(DataError, match=r"(?s)unknown scorer 'match' .*metric=\('match', 'essay=graded'"):
        read_responses(tmp_path, metric="match")
    with pytest.warns(DataWarning, match="left out: unknown scorer 'match' for task 'essay'"):
        matrix = read_responses(tmp_path, spec=ReadingSpec(metric=("match",), skip_unusable=True))
    assert matrix.item_ids == ["toy/q"]


def test_scores_that_are_no_numbers_leave_their_task_out(tmp_path):
    write_eval(tmp_path / "1.eval", [inspect_sample("q")], header("toy", n_items=1))
    write_eval(tmp_path / "2.eval", [inspect_sample("q", "splendid")], header("essay", n_items=1))
    with pytest.raises(DataError, match="a score must be a number"):
        read_responses(tmp_path)
    with pytest.warns(DataWarning, match="left out: .*essay/q"):
        assert read_responses(tmp_path, spec=ReadingSpec(skip_unusable=True)).item_ids == ["toy/q"]
