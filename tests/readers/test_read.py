import gzip
import re
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from itembank.errors import DataError, DataWarning, ParameterError, command_line_words
from itembank.readers.read import read_responses, read_table
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.opening import zstandard
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from tests.readers.bad_files import LONG, WRONG, lines, one
from tests.readers.logs import read_as, read_lm_eval, sample, write_run
from tests.readers.reading import put, read, refuses, warns, write_frame

EXPECTED = np.array([[1.0, 0.0, 0.5], [0.25, np.nan, 1.0]])


def check_expected(matrix):
    np.testing.assert_array_equal(matrix.responses, EXPECTED)
    assert (matrix.model_ids, matrix.item_ids) == (["a", "b"], ["x", "y", "z"])


def long_frame():
    return pl.DataFrame(
        {"model_id": list("aaabb"), "item_id": list("xyzxz"), "response": [1.0, 0.0, 0.5, 0.25, 1.0],
            "extra": ["?"] * 5}
    )  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_file_gives_an_error_that_says_what_and_where(wrong, tmp_path):
    paths = wrong.write(tmp_path)
    spec = ReadingSpec(format="py-irt" if wrong.command == "py-irt" else "auto", **wrong.spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        with pytest.raises(DataError) as caught, command_line_words():
            read_responses(paths, spec=spec)
    for text in wrong.says:
        assert re.search(text, str(caught.value)), f"{text!r} not in {caught.value}"
    assert any(str(path) in str(caught.value) for path in paths)


@pytest.mark.parametrize(
    "suffix",
    ["parquet", "csv", "tsv", "jsonl", "jsonlines", "ndjson", "json", "csv.gz", "jsonl.gz", "csv.zst", "jsonl.zst"],
)
def test_long_tables_of_every_kind_are_the_same_matrix(suffix, tmp_path):
    path = tmp_path / f"r.{suffix}"
    frame = long_frame()
    if suffix == "parquet":
        frame.write_parquet(path)
    elif suffix == "json":
        frame.write_json(path)
    else:
        separator = "\t" if "tsv" in suffix else ","
        text = frame.write_csv(separator=separator) if "sv" in suffix else frame.write_ndjson()
        path.write_bytes(packed(text.encode(), suffix))
    check_expected(read(path))


def packed(content, name):
    """Pack content as the suffix of a name says."""
    if name.endswith("zst"):
        return zstandard().compress(content)
    return gzip.compress(content) if name.endswith("gz") else content


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: content[:40] + b"?" * 30])
@pytest.mark.parametrize("suffix", ["csv.zst", "jsonl.zst"])
def test_a_damaged_stream_of_zstandard_is_refused(suffix, damage, tmp_path):
    frame = long_frame()
    text = frame.write_csv() if "csv" in suffix else frame.write_ndjson()
    (tmp_path / f"r.{suffix}").write_bytes(damage(packed(text.encode(), suffix)))
    refuses(r"the packed stream is cut or damaged\. Copy it again", read, tmp_path / f"r.{suffix}")


def test_frames_of_zstandard_after_one_another_are_one_file(tmp_path):
    first, *others = long_frame().write_csv().splitlines(keepends=True)
    pieces = [first + "".join(others[:3]), "".join(others[3:])]
    (tmp_path / "r.csv.zst").write_bytes(b"".join(packed(one.encode(), "zst") for one in pieces))
    check_expected(read(tmp_path / "r.csv.zst"))


def test_wide_tables_either_way_round_and_py_irt_are_the_same_matrix(tmp_path):
    by_model = long_frame().pivot("item_id", index="model_id", values="response")
    by_item = long_frame().pivot("model_id", index="item_id", values="response")
    for name, frame in (("models", by_model), ("items", by_item)):
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
        frame.write_ndjson(tmp_path / f"{name}.jsonl")
    (tmp_path / "pyirt.jsonl").write_text(
        lines(
            {"subject_id": "a", "responses": {"x": 1, "y": False, "z": 0.5}},
            {"subject_id": "b", "responses": {"x": 0.25, "y": None, "z": 1}},
        )
    )
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 7
    for path in paths:
        if path.name == "pyirt.jsonl":
            check_expected(warns("1 of 'b' .1 without a response", read, path))
        else:
            check_expected(read(path))


def test_text_numbers_and_truth_values_are_responses(tmp_path):
    (tmp_path / "r.csv").write_text(LONG + "a,x,True\na,y, 0 \nb,x,1e-1\nb,y,FALSE\nc,x,NA\nc,y,none\nc,z,1\na,z,nan\n")
    matrix = warns("2 of 'c', 1 of 'a'", read, tmp_path / "r.csv")
    np.testing.assert_array_equal(matrix.responses, [[1, 0, np.nan], [0.1, 0, np.nan], [np.nan, np.nan, 1]])
    (tmp_path / "r.jsonl").write_text(lines(one(response=True), one(item="y", response="0"), one("b", response=0.5)))
    np.testing.assert_array_equal(read(tmp_path / "r.jsonl").responses, [[1, 0], [0.5, np.nan]])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_byte_order_marks_windows_lines_blank_lines_and_other_separators(separator, tmp_path):
    text = "model_id,item_id,response\r\na,x,1\r\n\r\nb,x,0\r\n".replace(",", separator)
    (tmp_path / "r.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    np.testing.assert_array_equal(read(tmp_path / "r.csv").responses, [[1], [0]])
    (tmp_path / "r.jsonl").write_bytes(
        b"\xef\xbb\xbf" + lines(one(), one("b", response=0)).replace("\n", "\r\n").encode()
    )
    np.testing.assert_array_equal(read(tmp_path / "r.jsonl").responses, [[1], [0]])


STRANGE = [
    "a|b", "naïve ☃ 模型", "x" * 5000, "a,b", 'say "hi"', "line\nbreak", "two  blanks", "007", "NA", "null", "-",
    "../up",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*(.null. is read as|models and items have the same ids)")
@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_strange_ids_are_kept_to_the_letter(suffix, tmp_path):
    frame = pl.DataFrame({"model_id": STRANGE, "item_id": STRANGE[::-1], "response": [1.0] * len(STRANGE)})
    matrix = read(write_frame(frame, tmp_path / f"r.{suffix}"))
    assert (matrix.model_ids, matrix.item_ids) == (STRANGE, STRANGE[::-1])


def test_ids_that_are_numbers_or_categories_are_read_as_text(tmp_path):
    huge = 10**30
    matrix = read(put(tmp_path / "r.jsonl", lines(one(7, 1), one(7, huge), one(8, 1))))
    assert (matrix.model_ids, matrix.item_ids) == (["7", "8"], ["1", str(huge)])
    pl.DataFrame({"model_id": [7, 8], "item_id": [1, 1], "response": [1, 0]}).write_parquet(tmp_path / "r.parquet")
    assert read(tmp_path / "r.parquet").model_ids == ["7", "8"]
    put(tmp_path / "b" / "r.csv", LONG + "7,1,1\n")
    pl.DataFrame({"model_id": ["8"], "item_id": [1], "response": [1]}).write_parquet(tmp_path / "b" / "r.parquet")
    matrix = read([tmp_path / "b" / "r.csv", tmp_path / "b" / "r.parquet"])
    assert (matrix.model_ids, matrix.item_ids) == (["7", "8"], ["1"])
    frame = long_frame().with_columns(
        pl.col("model_id", "item_id").cast(pl.Categorical), pl.col("response").cast(pl.Float32)
    )
    check_expected(read(write_frame(frame, tmp_path / "r.parquet")))


def test_several_sources_are_joined_and_copies_count_once(tmp_path):
    (tmp_path / "a.csv").write_text("model_id,x,y,z\na,1,0,0.5\n")
    write_responses(ResponseMatrix.create(np.array([[0.25]]), model_ids=["b"], item_ids=["x"]), tmp_path / "b.parquet")
    (tmp_path / "c.jsonl").write_text(lines({"subject_id": "b", "responses": {"z": 1}}))
    check_expected(read([tmp_path / name for name in ("a.csv", "b.parquet", "c.jsonl")]))
    put(tmp_path / "b" / "a.csv", "model_id,item_id,response,scenario\na,gsm8k/0,1,gsm8k\n")
    log = write_run(tmp_path / "b", "org/b", {"gsm8k": [sample(0, exact_match=0.0), sample(1, exact_match=1.0)]})
    matrix = read([tmp_path / "b" / "a.csv", log])
    np.testing.assert_array_equal(matrix.responses, [[1, np.nan], [0, 1]])
    assert (matrix.model_ids, matrix.items["content_hash"].to_list()) == (["a", "org/b"], ["hash of 0", "hash of 1"])
    assert matrix.items["scenario"].to_list() == ["gsm8k", "gsm8k"]
    put(tmp_path / "c" / "r.csv", LONG + "a,x,1\na,y,0.1\na,x,1\na,y,0.10000000149011612\n")
    matrix = warns("2 rows repeat an earlier row.*count once", read, tmp_path / "c" / "r.csv")
    np.testing.assert_array_equal(matrix.responses, [[1, 0.1]])
    assert matrix.n_trials is None
    check_expected(warns("5 rows repeat", read, [write_frame(long_frame(), tmp_path / "r.parquet")] * 2))


def test_the_format_and_columns_may_be_said(tmp_path):
    (tmp_path / "r.csv").write_text(
        "model_id,item_id,response\na,0.5,1\n"
    )  # an item called item_id, one called response
    wide = read(tmp_path / "r.csv", format="wide-models")
    assert (wide.item_ids, wide.responses.tolist()) == (["item_id", "response"], [[0.5, 1.0]])
    refuses("not a response file", read, tmp_path / "r.csv", format="responses")
    assert read_table(put(tmp_path / "r.csv", LONG + "a,x,1\n")).n_models == 1
    refuses(r"r\.csv", read_as, "py-irt", tmp_path / "r.csv")
    refuses(r"must name the task|samples", read_lm_eval, tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text("llm,question,score,strict,latency\na,x,1,0,2.5\na,y,1,1,3\n")
    spec = ReadingSpec(columns={"model_id": "llm", "item_id": "question", "seconds": "latency"})
    matrix = read_responses(tmp_path / "r.csv", response_column="strict", spec=spec)
    np.testing.assert_array_equal(matrix.responses, [[0, 1]])
    np.testing.assert_array_equal(matrix.costs["seconds"], [[2.5, 3]])


def test_no_files_and_many_wrong_ones_are_said_and_progress_told(tmp_path):
    refuses("there must be files of results, got none", read, tmp_path)
    refuses(r"paths of results.*got list", read, [], error=ParameterError)
    refuses("is a folder", read, tmp_path, format="long")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.csv")
    paths = [put(tmp_path / "b" / f"{k}.csv", "") for k in range(9)]
    caught = refuses(r"(?s)0\.csv.*4\.csv.*and 4 more problems", read, paths)
    assert "5.csv" not in caught
    paths, told = [put(tmp_path / f"{name}.csv", f"{LONG}{name},x,1\n") for name in "ab"], []
    read_responses(paths, progress=lambda *one: told.append(one))
    assert told == [("reading files (a.csv)", 0.0), ("reading files (b.csv)", 0.5)]


@pytest.mark.parametrize(("choices", "message"), [
    ({"format": "excel"}, "format must be one of"), ({"repeats": "median"}, "repeats must be one of"),
    ({"missing": "yes"}, "missing must be one of"),
    ({"model_id_from": "x"}, "model_id_from must be one of"),
    ({"max_response": 0.0}, "max_response must be a finite number > 0"),
    ({"max_response": float("inf")}, "max_response"),
    ({"columns": {"llm": "model_id"}}, "columns must name some of model_id"),
])  # fmt: skip
def test_a_spec_checks_itself(choices, message):
    refuses(message, ReadingSpec, **choices, error=ParameterError)


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_parquet_file_is_a_data_error_or_read(seed, tmp_path, capfd):
    long_frame().write_parquet(tmp_path / "r.parquet")
    content = bytearray((tmp_path / "r.parquet").read_bytes())
    rng = np.random.default_rng(seed)
    for place in rng.integers(4, len(content) - 4, 6):
        content[place] = rng.integers(256)
    (tmp_path / "r.parquet").write_bytes(bytes(content))
    message = ""
    try:
        read(tmp_path / "r.parquet")
    except DataError as error:
        message = str(error)
    # Whatever the damage, no other exception, and the file is named.
    assert not message or str(tmp_path / "r.parquet") in message
    capfd.readouterr()  # polars prints the panics it turns into errors


TEXTS = {
    "long.csv": LONG + 'a,x,1\nb,"y ""q""",0.5\n',
    "wide.csv": "item_id,scenario,a,b\nx,math,1,0\ny,law,,1\n",
    "long.jsonl": lines(one(), one("b", "y", 0.5, cost_usd=1e-3)),
    "pyirt.jsonl": lines({"subject_id": "a", "responses": {"x": 1, "y": 0}}),
    "array.json": "[" + lines(one()).strip() + "]",
    "org__m/samples_arc_2025-03-01T10-00-00.0.jsonl": lines(sample(0, acc=1.0), sample(1, acc=0.0)),
}
PIECES = [*'",;{}[]:-\n\t\0 1', "\r\n", "null", "NaN", "1e999", "9" * 25, '""', "true", "\ufeff", "model_id", "item_id"]


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(TEXTS)),
    edits=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 4), st.sampled_from([*PIECES, b"\xff", b"\xc3"])), max_size=3
    ),
    kept=st.sampled_from([1.0, 1.0, 1.0, 0.97, 0.6]),
)
def test_a_file_with_anything_wrong_in_it_is_read_or_a_data_error(name, edits, kept, tmp_path):
    content = TEXTS[name].encode()
    for place, n_removed, piece in edits:
        start = int(place * len(content))
        content = (
            content[:start] + (piece if isinstance(piece, bytes) else piece.encode()) + content[start + n_removed :]
        )
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content[: int(kept * len(content))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            matrix = read(path)
        except DataError as error:
            assert str(error)  # noqa: PT017 (no other exception is the point)
            return
    values = matrix.responses[matrix.observed]
    assert values.size > 0
    assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("several", [list, tuple, iter, np.array])
def test_paths_may_be_what_a_search_for_files_gives(tmp_path, several):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"model_id,item_id,response\n{name},x,1\n")
    assert read(several([str(path) for path in sorted(tmp_path.glob("*.csv"))])).model_ids == ["a", "b"]


@pytest.mark.parametrize("convert", [pl.DataFrame, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_a_table_in_memory_is_read_as_files_are(convert):
    table = convert(pl.DataFrame({"model_id": ["a"], "item_id": ["b"], "response": [1]}))
    assert read(table).responses.tolist() == [[1.0]]
    refuses(r"got (Lazy|Data)?(Frame|Table) in a list. Join the tables", read, [table], error=ParameterError)


@pytest.mark.parametrize(("value", "says"), [(1, "are right, .* write 0"), (0, "are wrong, .* write 1")])
def test_what_only_one_verdict_was_recorded_of_is_told(value, says):
    """Lists of solved items: each model scored 100 points, whatever it failed."""
    rows = [
        {"model_id": m, "item_id": f"{k}", "response": value} for m in "abc" for k in range(10) if k % 5 != ord(m) % 5
    ]
    assert warns(f"all 24 responses {says} for them", read_responses, rows).n_items == 10
    assert read_responses(rows[:8]).n_items == 8


@pytest.mark.parametrize(("answer", "item", "says"), [
    (lambda model, k: (model + k) % 2, lambda model, k: f"{model}-{k}", "no item was asked of two models"),
    (lambda model, k: k % 2, lambda model, k: k, "all models have the same responses, as right answers are"),
    (lambda model, k: 0.5 if model == k else (model + k) / 9, lambda _, k: f"m{k}", "models and items have the same"),
])  # fmt: skip
def test_what_looks_as_if_something_else_was_read_is_told(answer, item, says):
    n_items = 4 if says.startswith("models") else 8
    rows = [
        {"model_id": f"m{model}", "item_id": str(item(model, k)), "response": float(answer(model, k))}
        for model in range(5)
        for k in range(n_items)
    ]
    warns(says, read, rows)
    if n_items == 8:  # two models may have items of their own, or answer alike
        assert read(rows[: 2 * n_items]).n_models == 2


def test_tables_of_items_are_in_memory_or_in_files_and_several_files_are_a_list(tmp_path):
    path = put(tmp_path / "r.csv", f"{LONG}a,x,1\n")
    items = pl.DataFrame({"item_id": ["x"], "weight": [2.0]})
    assert read_responses(path, items=items).items["weight"].to_list() == [2.0]
    with pytest.raises(TypeError, match=r"got 2 without names\. Write several files as a list"):
        read_responses(path, path)
