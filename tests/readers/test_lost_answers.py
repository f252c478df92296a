"""Lost answers: told by every reader, kept in response files, counted by one policy."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning, ParameterError
from itembank.responses.error_kinds import KINDS, error_kind, is_error_word
from itembank.responses.lost_answers import LostAnswers
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.readers.reading import put, put_lines, read, refuses, warns, write_frame

pytestmark = pytest.mark.filterwarnings(
    "ignore:lost answers count as missing", "ignore:.*as lost answers, whose run", "ignore:.*read 'pass' as right"
)
NAN = np.nan


def kinds(matrix):
    return [[KINDS[code] for code in row] for row in matrix.lost.kind.tolist()]


def frame(**columns):
    n = len(next(iter(columns.values())))
    return pl.DataFrame({"model_id": ["a"] * n, "item_id": list("vwxyz")[:n], **columns}, strict=False)


TEXTS = {
    "time-out": ("AgentTimeoutError", "Its time was up.", "timed out after 600 s"),
    "harness": ("API call error: 429", "Rate limit reached", "docker: no space left", "EnvironmentStartTimeoutError"),
    "limit": ("ContextWindowExceededError", "LimitsExceeded", "length"),
    "judge": ("VerifierRuntimeError", "judge"),
    "error": ("ValueError: x", True),
    "answer": ("", "None", "No error", "stop", "{}", False, 0, 200.0, None, float("nan")),  # 200: a status of HTTP
}


@pytest.mark.parametrize(("text", "kind"), [(text, kind) for kind, texts in TEXTS.items() for text in texts])
def test_kinds_of_errors(text, kind):
    assert KINDS[error_kind(text)] == kind


@pytest.mark.parametrize(
    "word",
    ["timeout", "TIMED_OUT", "Time-out", "error", "ERR", "crashed", "exception", "ReadTimeoutError", "ERROR: HTTP 429"],
)
def test_words_of_errors_in_place_of_a_response(word):
    assert is_error_word(word)
    matrix = read(frame(response=["pass", "fail", word]))
    np.testing.assert_array_equal(matrix.responses, [[1, 0, NAN]])
    assert matrix.lost.n.tolist() == [[0, 0, 1]]


def test_other_words_are_none():
    words = ("failed", "wrong", "no", "skipped", "timeouts are bad", "no error", "error-free")
    assert not any(map(is_error_word, words))


def test_rows_without_a_response_were_asked_and_attempts_lost_beside_others_are_counted():
    table = pl.DataFrame(
        {"model_id": ["a", "a", "b", "b"], "item_id": list("xyxy"), "response": [1, None, 0, 1]}
    ).vstack(pl.DataFrame({"model_id": ["a"], "item_id": ["z"], "response": [1]}))
    matrix = read(table)
    assert (matrix.lost.n.tolist(), kinds(matrix)[0][1]) == ([[0, 1, 0], [0, 0, 0]], "no answer")
    np.testing.assert_array_equal(matrix.responses, [[1, NAN, 1], [0, 1, NAN]])
    columns = {"model_id": ["a"] * 4, "item_id": ["x"] * 3 + ["y"], "response": [1, 0, None, 1], "seed": [1, 2, 3, 1]}
    matrix = read(pl.DataFrame({**columns, "error": [None, None, "timeout", None]}), repeats="count")
    assert (matrix.n_trials.tolist(), matrix.lost.n.tolist()) == ([[2, 1]], [[1, 0]])
    wrong = matrix.with_errors("wrong")
    np.testing.assert_allclose(wrong.responses, [[1 / 3, 1]])
    assert wrong.n_trials.tolist() == [[3, 1]]
    # A cell keeps one kind: three time-outs and a judge's error were called four of the latter
    columns = {"model_id": ["a"] * 4, "item_id": ["x"] * 2 + ["y"] * 2, "seed": [1, 2, 1, 2]}
    table = pl.DataFrame({**columns, "error": ["timeout", "judge", "timeout", "timeout"]})
    table = pl.concat([table, table.head(1).with_columns(item_id=pl.lit("z"), error=None)])
    matrix = read(table.with_columns(response=pl.Series([None] * 4 + [1])), repeats="count")
    assert (matrix.lost.n.tolist(), kinds(matrix)) == ([[2, 2, 0]], [["error", "time-out", "answer"]])
    table = pl.DataFrame(
        {"model_id": ["a"] * 3, "item_id": list("xxy"), "response": [None, 1, 0], "error": ["429", None, None]}
    )
    assert read(table).lost is None


@pytest.mark.parametrize("values", [[None, "timeout", "docker died"], ["", "Time limit", "infra"]])
def test_a_column_of_errors(values, tmp_path):
    table = frame(response=[1, 0, 0], error=values)
    for name in ("r.csv", "r.parquet", "r.jsonl"):
        matrix = read(write_frame(table, tmp_path / name))
        np.testing.assert_array_equal(matrix.responses, [[1, NAN, NAN]])
        assert kinds(matrix) == [["answer", "time-out", "harness"]]
        np.testing.assert_array_equal(read(tmp_path / name, errors="wrong").responses, [[1, 0, 0]])


def test_columns_that_may_tell_errors(tmp_path):
    (tmp_path / "r.csv").write_text("model,item,score,Error\na,x,1,\na,y,0,Read timed out\na,z,0,\n")
    matrix = warns("'Error' as error", read, tmp_path / "r.csv")
    np.testing.assert_array_equal(matrix.responses, [[1, NAN, 0]])
    assert kinds(matrix) == [["answer", "time-out", "answer"]]
    (tmp_path / "r.csv").write_text("model_id,item_id,response,Error\na,x,1,0.37\na,y,0,2.5\n")
    with pytest.warns(DataWarning) as told:
        assert read(tmp_path / "r.csv").lost is None
    assert "the column is left out" in str(told[-1].message)
    (tmp_path / "r.csv").write_text("model_id,item_id,response,error_type\na,x,1,\na,y,0,value_error:string\n")
    assert read(tmp_path / "r.csv").lost is None
    np.testing.assert_array_equal(read(frame(response=[1, 0, 0], error=[False, True, False])).responses, [[1, NAN, 0]])
    matrix = warns("of errors, or true and false, got numbers", read, frame(response=[1, 0, 0], error=[0.1, 0.4, 0.0]))
    assert matrix.lost is None
    with pytest.raises(DataError, match="Name the column that tells whether an answer was lost"):
        read(frame(response=[1, 0, 0], gap=[0.1, 0.4, 0.0]), columns={"error": "gap"})
    table = frame(response=[1, 1, 0], error=["", "timeout", "timeout"])
    matrix = warns("1 row has an error and a response above 0", read, table)
    np.testing.assert_array_equal(matrix.responses, [[1, NAN, NAN]])
    np.testing.assert_array_equal(read(table, columns={"error": ""}).responses, [[1, 1, 0]])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(
    ("name", "words"),
    [("Status", ["completed", "timeout", "done"]), ("exception_type", [None, "ReadTimeout", "IndexError"])],
)
def test_errors_of_runs_that_no_column_tells_are_named_and_can_be_counted(ending, name, words, tmp_path):
    rows = pl.DataFrame({"model_id": "a", "item_id": ["x", "y", "z"], "response": [1, 0, 0], name: words})
    path = tmp_path / f"r.{ending}"
    path.write_text(rows.write_csv() if ending == "csv" else rows.write_ndjson())
    says = f"1 row has '{words[1]}' as '{name}', .*add: columns={{'error': '{name}'}}"
    np.testing.assert_array_equal(warns(says, read, path).responses, [[1, 0, 0]])
    assert read(path, columns={"error": name}).lost.n.tolist() == [[0, 1, int(name != "Status")]]


@pytest.mark.parametrize("policy", ["missing", "wrong", "bounds"])
def test_response_files_keep_them_and_the_policy(policy, tmp_path):
    matrix = read(frame(response=[1, 0, None, None], error=[None, None, "timeout", "judge"]), errors=policy)
    write_responses(matrix, tmp_path / "r.parquet")
    again = read(tmp_path / "r.parquet")
    np.testing.assert_array_equal(again.responses, matrix.responses)
    assert (kinds(again), again.lost.errors) == ([["answer", "answer", "time-out", "judge"]], policy)
    np.testing.assert_array_equal(read(tmp_path / "r.parquet", errors="missing").responses, [[1, 0, NAN, NAN]])
    long = pl.read_parquet(tmp_path / "r.parquet")
    assert long["error"].cast(pl.String).to_list() == [None, None, "time-out", "judge"]
    long.write_csv(tmp_path / "plain.csv")  # any table of these columns says the same
    assert kinds(read(tmp_path / "plain.csv")) == kinds(again)


def test_files_of_two_policies_are_not_joined_unasked_and_a_choice_needs_a_reader_that_tells(tmp_path):
    for name, policy in (("a", "wrong"), ("b", "missing")):
        table = frame(response=[1, None]).with_columns(model_id=pl.lit(name))
        write_responses(read(table, errors=policy), tmp_path / f"{name}.parquet")
    paths = sorted(tmp_path.iterdir())
    refuses(r"must count as the same in all sources, got wrong in .* but missing in", read, paths)
    np.testing.assert_array_equal(read(paths, errors="wrong").responses, [[1, 0], [1, 0]])
    put(tmp_path / "b" / "BFCL_v3_simple_score.json", '{"accuracy": 1.0, "correct_count": 1, "total_count": 1}\n')
    with pytest.raises(ParameterError, match="do not tell lost answers from others"):
        read(tmp_path / "b", format="bfcl", errors="wrong")


def test_wide_tables_tell_them_by_words_and_one_lost_item_stops_no_import(tmp_path):
    matrix = read(put(tmp_path / "r.csv", "model_id,x,y,z\na,1,,0\nb,timeout,1,1\n"), errors="wrong")
    np.testing.assert_array_equal(matrix.responses, [[1, NAN, 0], [0, 1, 1]])
    assert read(put(tmp_path / "r.csv", "model_id,x,y,z\na,1,,0\nb,0,1,1\n")).lost is None
    refuses("answers from questions that were not asked, got 1 empty cell", read, tmp_path / "r.csv", errors="wrong")
    (tmp_path / "r.csv").write_text("item_id,a\nx,1\ny,\n")  # of one model, all were asked
    assert read(tmp_path / "r.csv").lost.n.tolist() == [[0, 1]]
    (tmp_path / "r.csv").write_text("item_id,response\nx,1\ny,\nz,0\n")
    assert warns("results of one", read, tmp_path / "r.csv").lost.n.tolist() == [[0, 1, 0]]
    (tmp_path / "r.csv").write_text("item_id,response\nx,\ny,\n")
    warns("results of one", refuses, "must be at least one response", read, tmp_path / "r.csv")


PROMPTFOO = [
    {"testIdx": 0, "promptIdx": 0, "success": True, "failureReason": 0},
    {"testIdx": 1, "promptIdx": 0, "success": False, "failureReason": 1, "error": "Expected output to contain x"},
    {"testIdx": 2, "promptIdx": 0, "success": False, "failureReason": 2, "error": "API error: 503", "latencyMs": 250},
]


def promptfoo(*rows, **more):
    return [{"provider": {"id": "p:a"}, "score": 0, **one, **more} for one in rows]


def test_promptfoo_tells_errors_and_broken_graders_from_failed_assertions(tmp_path):
    path = tmp_path / "out.json"
    matrix = read(put(path, {"evalId": "e", "results": {"version": 3, "results": promptfoo(*PROMPTFOO)}}))
    assert matrix.model_ids == ["p:a"]
    np.testing.assert_array_equal(matrix.responses, [[1, 0, NAN]])
    assert kinds(matrix) == [["answer", "answer", "harness"]]
    lines = put_lines(tmp_path / "out.jsonl", promptfoo(*PROMPTFOO))
    np.testing.assert_array_equal(read(lines).responses, matrix.responses)
    broken = {"pass": False, "score": 0, "reason": "no JSON", "metadata": {"graderError": True}}
    no, yes = {"pass": False, "score": 0, "reason": "too long"}, {"pass": True, "score": 1}
    graded = [[broken], [no], [broken, no], [broken, yes]]
    rows = [
        {**PROMPTFOO[1], "testIdx": k, "gradingResult": {"pass": False, "componentResults": parts}}
        for k, parts in enumerate(graded)
    ]
    rows.append({**PROMPTFOO[1], "testIdx": 4, "gradingResult": broken})
    matrix = read(put(tmp_path / "out.json", {"results": {"results": promptfoo(*rows)}}))
    np.testing.assert_array_equal(matrix.responses, [[NAN, 0, 0, NAN, NAN]])
    assert kinds(matrix) == [["judge", "answer", "answer", "judge", "judge"]]


def test_promptfoo_of_2024_names_no_test_and_no_reason(tmp_path):
    rows = [
        {"vars": {"q": "a"}, "success": True, "gradingResult": {"pass": True}},
        {"vars": {"q": "b"}, "success": False, "error": "Contains x", "gradingResult": {"pass": False}},
        {"vars": {"q": "c"}, "success": False, "error": "API error: 429 Too Many Requests"},
        {"vars": {"q": "d"}, "success": False, "error": "Expected output to contain x"},
    ]
    rows = promptfoo(*rows, latencyMs=3)
    path = tmp_path / "out.json"
    for results in ({"version": 2, "results": rows}, rows):
        matrix = read(put(path, {"results": results}))
        np.testing.assert_array_equal(matrix.responses, [[1, 0, NAN, 0]])
        assert kinds(matrix) == [["answer", "answer", "harness", "answer"]]


def test_a_test_of_promptfoo_that_is_repeated_is_one_item(tmp_path):
    tests = [{"vars": {"q": word}, "assert": [{"value": value}]} for word, value in (("x", 1), ("x", 2), ("y", 1))]
    for repeat in (1, 2):
        every = [test for test in tests for _ in range(repeat)]
        rows = [
            {**PROMPTFOO[index % 2], "testIdx": 5 + index, "vars": test["vars"], "testCase": test}
            for index, test in enumerate(every)
        ]
        rows = promptfoo(*rows, provider={"id": str(repeat)})
        put(tmp_path / f"{repeat}.json", {"evalId": "e", "results": {"results": rows}})
    refuses(r"repeated attempts .* never averaged unasked", read, tmp_path)
    matrix = read(tmp_path, repeats="count")
    assert (matrix.item_ids, matrix.responses.tolist()) == (["5", "6", "7"], [[1, 0, 1], [0.5, 0.5, 0.5]])
    assert matrix.n_trials.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_prompts_and_suites_of_promptfoo_are_told_apart(tmp_path):
    rows = promptfoo(*PROMPTFOO, prompt={"label": "short"})
    rows += promptfoo(*PROMPTFOO, promptIdx=1, prompt={"label": "long"})
    put(tmp_path / "out.json", {"results": {"results": rows}})
    assert read(tmp_path / "out.json").model_ids == ["p:a + short", "p:a + long"]
    rows = [{**one, "prompt": {"label": "short"}} for one in rows]  # two settings of a provider without labels
    put(tmp_path / "out.json", {"results": {"results": rows}})
    assert read(tmp_path / "out.json").model_ids == ["p:a + #0", "p:a + #1"]
    for name, words, session in (("a", "x", 1), ("b", "x", 2), ("c", "y", 3)):
        row = {**PROMPTFOO[0], "provider": {"id": name}, "vars": {"q": words, "sessionId": session}}
        put(tmp_path / "b" / f"{name}.json", {"results": {"results": [row]}})
    assert read([tmp_path / "b" / "a.json", tmp_path / "b" / "b.json"]).responses.tolist() == [[1], [1]]
    refuses("must ask the same in all rows, got another content for 1 item: '0'", read, tmp_path / "b")


def rollouts(path, rewards, **metadata):
    about = {"answer": "x", "completion": []}
    records = [
        {**about, "example_id": k // 2, "prompt": f"q{k // 2}", "reward": reward, "error": error}
        for k, (reward, error) in enumerate(rewards)
    ]
    put_lines(path / "results.jsonl", records)
    if metadata:
        put(path / "metadata.json", metadata)


def test_rollouts_of_verifiers_tell_a_run_from_a_copy_and_an_example_from_another(tmp_path):
    same = {"example_id": 0, "reward": 1.0, "prompt": "q"}
    for run, completion in (("1", "x"), ("2", "x"), ("3", "y")):
        path = put_lines(tmp_path / "env--m" / run / "results.jsonl", [{**same, "completion": completion}])
    assert warns("1 row repeats an earlier row", read, tmp_path, repeats="count").n_trials.tolist() == [[2]]
    put_lines(path, [{**same, "completion": "", "prompt": q} for q in "qr"])
    refuses(r"a task must ask the same in all its trials, .* 1 task: 'env/0'", read, path)


def test_verifiers_counts_rollouts_its_errors_are_lost_and_rewards_between_are_attempts(tmp_path):
    failed = {"error": "ModelError", "error_chain_str": "ModelError -> ReadTimeout"}
    rewards = [(1.0, None), (0.0, failed), (0.0, None), (1.0, None)]
    rollouts(tmp_path / "wordle--org--a" / "r1", rewards, model="org/a", env_id="wordle")
    rollouts(tmp_path / "wordle--org--b" / "r2", rewards)
    matrix = read(tmp_path)
    assert (matrix.model_ids, matrix.item_ids) == (["org/a", "org/b"], ["wordle/0", "wordle/1"])
    np.testing.assert_array_equal(matrix.responses, [[1.0, 0.5]] * 2)
    assert (matrix.n_trials.tolist(), kinds(matrix)[0]) == ([[1, 2]] * 2, ["time-out", "answer"])
    np.testing.assert_array_equal(matrix.with_errors("wrong").responses, [[0.5, 0.5]] * 2)
    rollouts(tmp_path / "b" / "e--a" / "r", [(0.3, None), (0.5, None)], model="a")
    refuses("repeated attempts", read, tmp_path / "b")
    assert read(tmp_path / "b", repeats="mean").responses.tolist() == [[pytest.approx(0.4)]]


CELL = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4)).filter(lambda one: one[0] <= one[1])


@given(st.lists(CELL, min_size=1, max_size=8).filter(lambda some: any(one[1] for one in some)))
def test_counting_them_is_adding_wrong_or_right_trials_and_can_be_taken_back(cells):
    right, trials, lost = (np.array([column]) for column in zip(*cells, strict=True))
    matrix = ResponseMatrix.from_counts(right, trials, lost=LostAnswers(lost, (lost > 0).astype(np.int64) * 2))
    for value, counted in ((0.0, matrix.with_errors("wrong")), (1.0, matrix.with_lost_as(1.0))):
        n = trials + lost
        expected = np.divide(right + value * lost, n, out=np.full(n.shape, NAN), where=n > 0)
        np.testing.assert_allclose(counted.responses, expected)
        np.testing.assert_array_equal(counted.n_trials, n)
    back = matrix.with_errors("wrong").with_errors("missing")
    np.testing.assert_allclose(back.responses, matrix.responses)
    np.testing.assert_array_equal(back.n_trials, matrix.n_trials)
