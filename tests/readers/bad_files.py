"""A catalogue of wrong files, each with what the error must say: one list for Python and for the command line."""

import gzip
import io
import json
from dataclasses import dataclass, field

import polars as pl

LONG = "model_id,item_id,response\n"


@dataclass(frozen=True)
class Wrong:
    """A wrong file (or several), the format that it is read as, and what its error must hold (regular expressions)."""

    name: str
    files: dict
    says: tuple
    command: str = "table"
    options: tuple = ()
    spec: dict = field(default_factory=dict)

    def write(self, folder):
        """Write the files; return their paths."""
        paths = []
        for name, content in self.files.items():
            path = folder / name
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            paths.append(path)
        return paths


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def parquet(**columns):
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()


def one(model="a", item="x", response=1, **more):
    return {"model_id": model, "item_id": item, "response": response, **more}


GOOD_PARQUET = parquet(model_id=["a", "b"] * 50, item_id=[f"i{k // 2}" for k in range(100)], response=[1.0, 0.0] * 50)
PY_IRT = {"subject_id": "a", "responses": {"x": 1, "y": 0}}
TWICE = '{"model_id": "a", "item_id": "x", "response": 0, "response": 1}\n'

WRONG = [
    Wrong("above one", {"r.csv": LONG + "a,x,1\na,y,1.5\nb,x,-2.5\n"}, (r"r\.csv",
            r"\[0, 1\], got 2 values outside for 2 of 2 models", "'a' item 'y' = 1.5, 'b' item 'x' = -2.5",
            "rescale them")),
    Wrong("percentages", {"r.csv": LONG + "a,x,100\na,y,55.5\n"},
        (r"--max-response 100", r"got 2 values", "'x' = 100")),
    Wrong("above one after division", {"r.csv": LONG + "a,x,100\na,y,101\n"},
        (r"after division by 100", "'a' item 'y' = 1.01"), options=("--max-response", "100"),
        spec={"max_response": 100.0}),
    Wrong("metrics on two scales",
        {"r.csv": LONG.strip() + ",metric\na,x,1,acc\na,x,7,judge\na,y,0,acc\na,y,9,judge\n"},
        ("Only 'judge' goes beyond 1", r"metric=.judge.*max_response=10|--metric judge --max-response 10")),
    Wrong("a mark alone", {"r.csv": LONG + "a,x,-1\n"}, ("add: (--missing -1|missing_values=..-1.,.)",)),
    Wrong("a mark of many digits", {"r.csv": LONG + "a,x,-1234567\na,y,1\n"}, ("add: .*-1234567",)),
    Wrong("what is right in another language", {"r.csv": LONG + "a,x,s\u00ed\na,y,no\na,z,no\n"},
        ("If 's\u00ed' is right, add: (--true-value 's\u00ed'|true_value='s\u00ed')",)),
    Wrong("wide above one", {"r.csv": "model_id,x,y\na,1,3\n"}, ("got 1 value outside", "'a' item 'y' = 3")),
    Wrong("infinite", {"r.jsonl": '{"model_id": "a", "item_id": "x", "response": Infinity}\n'}, ("= inf",)),
    Wrong("not a number", {"r.csv": LONG + "a,x,1\na,y,yes\nb,y,0.5 points\n"},
        ("response must be a number, got 2 other values", "'a' item 'y' = 'yes', 'b' item 'y' = '0.5 points'")),
    Wrong("an object as response", {"r.jsonl": lines(one(response={"score": 1}))},
        ("must be a number", r"\{\"score\": 1\}")),
    Wrong("text in a wide table", {"r.csv": "model_id,family,x\na,llama,1\nb,qwen,0\n"},
        ("every column but model_id must hold the responses of an item", r"'family' \('llama', 'qwen'\)", "--models")),
    Wrong("a pair of problems, both named",
        {"r.csv": LONG.strip() + ",n_trials,cost_usd\na,x,2,1,1\na,y,no,0,1\na,z,1,2.5,-1\n"}, ("'y' = 'no'",
            r"\[0, 1\]", "n_trials must be a whole number.*1 row with something else: 'a' item 'z'", "cost_usd")),
    Wrong("counts that no draw can take", {"r.csv": "model_id,item_id,n_correct,n_trials\na,x,1,1000000000\n"},
        ("n_trials must be a whole number below 1,000,000,000, .*got 1 row .*'a' item 'x'",)),
    Wrong("missing where forbidden", {"r.csv": LONG + "a,x,1\na,y,0\nb,x,1\n"},
        ("every model must have a response to every item, got 1 missing of 4: 'b' item 'y'",),
        spec={"missing": "forbid"}),
    Wrong("nan where forbidden", {"r.csv": "model_id,x,y\na,NaN,1\nb,0,\n"},
        ("got 2 missing of 4: 'a' item 'x', 'b' item 'y'",), spec={"missing": "forbid"}),
    Wrong("nothing but missing", {"r.csv": "model_id,x\na,\n"},
        ("there must be at least one response, got none. Answers were lost: 1 without a response",)),
    Wrong("repeated with other values",
        {"r.csv": LONG + "a,x,1\na,x,0\nb,x,0.5\nb,x,0.25\nb,x,0.75\nb,x,0.125\na,y,1\n"}, (
            "different ones for 2 pairs: 'a' item 'x' = 1 and 0, 'b' item 'x' = 0.5 and 0.25 and 0.75 and 1 more",
            "--repeats")),
    Wrong("repeated with other values in two files", {"one.csv": LONG + "a,x,1\n", "two.csv": LONG + "a,x,0\n"},
        ("one.csv", "two.csv", "1 pair: 'a' item 'x' = 1 and 0")),
    Wrong("repeated attempts nobody asked to average", {"r.csv": "model_id,item_id,response,seed\na,x,1,0\na,x,1,1\n"},
        (r"repeated attempts \(several seeds\) for 1 pair: 'a' item 'x' = 1 and 1", "--repeats mean")),
    Wrong("two answers with one seed, also when averaging",
        {"r.csv": "model_id,item_id,response,seed\na,x,1,0\na,x,0,0\n"}, ("'a' item 'x' = 1 and 0", "same seed"),
        options=("--repeats", "mean"), spec={"repeats": "mean"}),
    Wrong("an item twice in a table of items", {"r.csv": "item_id,m\nx,1\nx,1\n"},
        ("item_id must be unique", "1 id more than once: 'x'")),
    Wrong("an item in two scenarios",
        {"r.csv": "model_id,item_id,response,scenario\na,x,1,math\nb,x,1,law\nb,y,1,law\n"}, (
            "belong to one scenario, got more for 1 item: 'x' in 'math' and 'law'",
            "prefix_scenario=True|--prefix-scenario")),
    Wrong("an item in two scenarios of two files", {"one.csv": "model_id,item_id,response,scenario\na,x,1,math\n",
            "two.csv": "model_id,item_id,response,scenario\nb,x,1,law\n"},
        ("belong to one scenario", "'x'", "'math', 'law'")),
    Wrong("mixed id types in JSON", {"r.jsonl": lines(one(item=1), one(item="one"))},
        ("item_id must have one type, got whole numbers and text: '1' and 'one'", "as text")),
    Wrong("a number in quotes among numbers", {"r.jsonl": lines(one(item=1), one(item="2"))}, ("must have one type",)),
    Wrong("ids with decimals", {"r.jsonl": lines(one(item=1.5))},
        ("item_id must be text or whole numbers, got float",)),
    Wrong("ids true and false", {"r.jsonl": lines(one(model=True))}, ("model_id must be .* got bool",)),
    Wrong("mixed id types between files", {"one.parquet": parquet(model_id=["a"], item_id=[1], response=[1.0]),
            "two.parquet": parquet(model_id=["b"], item_id=["1"], response=[1.0])},
        (r"item_id must have one type in all sources, got whole numbers in '.*one\.parquet' but text in '.*two",)),
    Wrong("decimal ids in Parquet", {"r.parquet": parquet(model_id=[1.0], item_id=["x"], response=[1.0])},
        ("model_id must be text or whole numbers, got Float64",)),
    Wrong("an empty id", {"r.csv": LONG + "a,x,1\n,y,1\na,,1\n"}, ("model_id must not be empty, got 1 row", "row 2")),
    Wrong("no response column", {"r.csv": "model_id,item_id,points\na,x,1\n"},
        ("none called 'response'; there are 'model_id', 'item_id', 'points'", "--column response=")),
    Wrong("an unknown response column", {"r.csv": LONG + "a,x,1\n"}, ("none called 'acc'",),
        options=("--column", "response=acc"), spec={"response_column": "acc"}),
    Wrong("no id column", {"r.csv": "who,x,y\na,1,0\n"}, ("model_id or item_id", "'who', 'x', 'y'", "--column")),
    Wrong("a long table without model", {"r.csv": "item_id,response\nx,1\nx,0\n"},
        ("none called 'model_id'", "--model-id")),
    Wrong("a column twice", {"r.csv": "model_id,x,x\na,1,0\n"}, ("column names must be unique", "'x'")),
    Wrong("nothing but ids", {"r.csv": "model_id\na\n"}, ("one column of responses at least",)),
    Wrong("one id for several models", {"r.csv": LONG + "a,x,1\nb,x,0\n"},
        ("model_id='new' was given for the results of 2 models: 'a', 'b'",), options=("--model-id", "new"),
        spec={"model_id": "new"}),
    Wrong("more right than tried", {"r.csv": "model_id,item_id,n_correct,n_trials\na,x,3,2\n"},
        (r"n_correct must be a whole number from 0 to n_trials", r"\(3 of 2")),
    Wrong("response and counts that disagree", {"r.csv": "model_id,item_id,response,n_correct,n_trials\na,x,0.9,1,2\n"},
        (r"response must be n_correct / n_trials", r"\(1 of 2, response 0.9\)")),
    Wrong("an empty CSV", {"r.csv": b""}, (r"r\.csv: the file is empty",)),
    Wrong("an empty Parquet", {"r.parquet": b""}, (r"r\.parquet: the file is empty",)),
    Wrong("an empty JSON Lines", {"r.jsonl": b"\n \n"}, (r"r\.jsonl: the file is empty",)),
    Wrong("a CSV of a header", {"r.csv": LONG}, ("it has column names but no rows",)),
    Wrong("a Parquet of no rows", {"r.parquet": parquet(model_id=[], item_id=[], response=[])},
        ("it has column names but no rows",)),
    Wrong("CSV not UTF-8", {"r.csv": LONG.encode() + b"a,caf\xe9,1\n"},
        ("not UTF-8: byte 0xe9 at position 31, line 2", "Save it as UTF-8")),
    Wrong("header not UTF-8", {"r.csv": b"mod\xe9l,item_id\na,1\n"}, ("not UTF-8: byte 0xe9 at position 3, line 1",)),
    *(Wrong(f"{name.upper()} in {code}", {f"r.{name}": text.encode(code)},
            (r"says \w+, but the file is UTF-16 text",)) for name, text in (("csv", LONG + "a,x,1\n"),
            ("jsonl", lines(one()))) for code in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")),
    Wrong("lines of old Macs", {"r.csv": (LONG + "a,x,1\n").replace("\n", "\r")}, ("line feed .* got CR alone",)),
    Wrong("a title row", {"r.csv": "Results of March,,\n,,\n" + LONG + "a,x,1\n"},
        ("first line must hold the names of the columns, got 'Results of March,,'; line 3 .*'model_id,item_id,resp",)),
    *(Wrong(f"{first!r} before the names", {"r.csv": f"{first}\n{LONG}a,x,1\n"},
            ("first line must hold the names",)) for first in ("# made by x", "sep=;", "", "Scores")),
    *(Wrong(f"a page of HTML called {name}", {f"r.{name}": "<!DOCTYPE html><p>404</p>\n"},
            ("a page of HTML",)) for name in ("csv", "json", "parquet")),
    Wrong("a pointer of LFS", {"r.csv": "version https://git-lfs.github.com/spec/v1\nsize 1\n"}, ("git lfs pull",)),
    Wrong("a tar archive", {"r.csv.gz": gzip.compress(b"r.csv".ljust(257, b"\0") + b"ustar\x0000")}, ("tar archive",)),
    Wrong("a zip archive", {"r.csv.zip": b"PK\x03\x04"}, ("Unpack an archive first",)),
    *(Wrong(f"a key twice in {name}", {name: text},
            (rf"{name}: .*each key once, got 'response' more than once",)) for name,
        text in (("r.jsonl", TWICE), ("r.json", f"[{TWICE}]"))),
    Wrong("an item twice in py-irt", {"r.jsonl": '{"subject_id": "a", "responses": {"x": 0, "x": 1}}\n'},
        ("line 1 .*each key once, got 'x' more than once",), "py-irt"),
    Wrong("half a character in the first line", {"r.jsonl": '{"model_id": "\\ud800", "item_id": "x", "response": 1}\n'},
        ("line 1 .*half a character",)),
    *(Wrong(f"the mean of all others as {word}",
            {"r.csv": f"model_id,q1,q2,q3{head}\na,1,0,1{end[0]}\nb,0,0,1{end[1]}\n{row}"},
            (f"each {word} must have responses of its own, got {name!r}.* Delete it",)) for word, name, head, end,
        row in (("item", "Average", ",Average", (",0.67", ",.333"), ""),
            ("item", "Average \u2b06\ufe0f", ",Average \u2b06\ufe0f", (",0.67", ",.333"), ""),
            ("model", "mean", "", ("", ""), "mean,0.5,0,1\n"))),
    Wrong("margins of pandas, of a table with an empty cell",
        {"r.csv": "model_id,q1,q2,q3,All\na,1,0,,0.5\nb,1,1,0,0.6667\nc,0,,1,0.5\nAll,0.6667,0.5,0.5,0.5714\n"},
        ("each model must have .*, got 'All'", "each item must have .*, got 'All'.*--drop-column All")),
    Wrong("right ones and their share",
        {"r.csv": "model_id,x,y,z,n_correct,accuracy\na,1,0,0,1,0.3333\nb,0,0,0,0,0\nc,1,0,0,1,0.3333\n"},
        ("got 'n_correct', 'accuracy'",)),
    Wrong("a total of marks", {"r.csv": "model_id,x,y,z,Total\na,1,2,0,3\nb,2,1,1,4\nc,0,0,1,1\n"},
        ("got 'Total', which holds the means or sums",), options=("--max-response", "4"), spec={"max_response": 4.0}),
    Wrong("a mean over scenarios", {"r.csv": "item_id,scenario,a,b\nx,s,1,0\ny,s,1,1\nz,t,0,1\nMacro avg,,0.5,0.75\n"},
        ("got 'Macro avg'",)),
    *(Wrong(f"what is left out but is nowhere, in a {name} table", {"r.csv": text},
            ("a column that is left out .* must be in a table that is read, got 'notes'; there are .*mean 'note'",),
            options=("--drop-column", "note", "--drop-column", "notes"),
            spec={"drop_columns": ("note", "notes")}) for name,
        text in (("long", LONG.strip() + ",note\na,x,1,n\n"), ("wide", "model_id,note,x\na,n,1\n"))),
    *(Wrong(f"a column that a {name} table does not have", {"r.csv": text},
            ("a column that is named .* must be in a table that is read, got 'kind'; there are 'Kind'",),
            options=("--column", "scenario=kind"), spec={"columns": {"scenario": "kind"}}) for name,
        text in (("long", LONG.strip() + ",Kind\na,x,1,n\n"), ("wide", "item_id,Kind,a\nx,1,1\n"))),
    Wrong("columns of JSON", {"r.json": json.dumps({"model_id": ["a"], "item_id": ["x"], "response": [1]})},
        ("got list. An id is one text or number, and each",)),
    Wrong("files one after the other", {"r.csv": (LONG + "a,x,1\n") * 2}, ("= 'response'. Lines repeat the names",)),
    Wrong("wide files so", {"r.csv": "model_id,x,y\na,1,0\nmodel_id,x,y\nb,0,1\n"}, ("Lines repeat the names",)),
    Wrong("almost endless", {"r.csv": LONG + "a,x,1e308\n"}, (r"\[0, 1\], got 1 value outside.*= 1e\+308",)),
    Wrong("JSON Lines not UTF-8", {"r.jsonl": lines(one()).encode() + b'{"model_id": "\xff"}\n'},
        (r"not UTF-8: byte 0xff at position 63, line 2",)),
    Wrong("a cut CSV", {"r.csv": LONG + "a,x,1\na,y"}, ("the file is cut: its last line, 3, has 2 of 3 fields",)),
    Wrong("a cut CSV of long fields", {"r.csv": LONG + 'a,x,1\na,"' + 100_000 * "y," + '"'},
        ("the file is cut: its last line, 3, has 2 of 3 fields",)),
    Wrong("a CSV row too long", {"r.csv": LONG + "a,x,1,7\n"}, (r"r\.csv: the CSV file cannot be read",)),
    Wrong("a CSV quote without end", {"r.csv": LONG + 'a,"x,1\nb,y,1\n'}, (r"r\.csv",)),
    Wrong("a CSV cut in a quoted field", {"r.csv": LONG + 'a,x,1\nb,"y'}, (r"r\.csv",)),
    Wrong("a cut Parquet", {"r.parquet": GOOD_PARQUET[:-7]}, ("is cut: it must end in PAR1", "Copy it again")),
    Wrong("a stub of Parquet", {"r.parquet": b"PAR1"}, ("is cut",)),
    Wrong("cut JSON Lines", {"r.jsonl": lines(one(), one(item="y"))[:-20]}, ("line 2", "last line.*the file was cut")),
    Wrong("garbage in JSON Lines", {"r.jsonl": lines(one()) + "hello\n" + lines(one(item="y"))},
        (r"r\.jsonl: line 2 must be one JSON object, got 'hello'",)),
    Wrong("two objects in one line", {"r.jsonl": lines(one()).strip() * 2}, ("line 1 must be one JSON object",)),
    Wrong("JSON Lines of lists", {"r.jsonl": "{}\n[1]\n"}, ("line 2 must be one JSON object, got list",)),
    Wrong("a cut JSON array", {"r.json": json.dumps([one(), one(item="y")])[:-5]}, ("array cannot be read.*cut",)),
    Wrong("endless nesting", {"r.jsonl": '{"a": ' + "[" * 100_000 + "\n"}, ("line 1", "nested too deeply|must be one")),
    Wrong("an endless number", {"r.jsonl": '{"response": ' + "9" * 10_000 + "}\n"},
        ("line 1 must be one JSON object",)),
    Wrong("Parquet called CSV", {"r.csv": GOOD_PARQUET}, ("says CSV, but the file is a Parquet file",)),
    Wrong("CSV called Parquet", {"r.parquet": LONG + "a,x,1\n"},
        ("says Parquet, but the file does not begin with PAR1",)),
    Wrong("JSON called CSV", {"r.csv": lines(one())}, ("says CSV, but the file looks like JSON",)),
    Wrong("CSV called JSON", {"r.jsonl": LONG + "a,x,1\n"}, ("says JSON, but the file begins with neither",)),
    Wrong("a pickle", {"r.csv": b"\x80\x04\x95\x10"}, ("pickle.*never read",)),
    Wrong("gzipped, but not called so", {"r.csv": b"\x1f\x8b\x08\x00"}, (r"\.gz",)),
    Wrong("called gzipped, but not", {"r.csv.gz": LONG + "a,x,1\n"}, ("packed stream is cut or damaged",)),
    Wrong("an unknown suffix", {"r.xlsx": b"PK\x03\x04"}, (r"must end in one of \.parquet", r"r\.xlsx")),
    Wrong("every wrong file is named", {"one.csv": b"", "two.csv": LONG + "a,x,7\n", "three.csv": LONG + "b,x,1\n"},
        (r"one\.csv: the file is empty", r"two\.csv: response must lie")),
    Wrong("py-irt without subject", {"r.jsonl": lines({"responses": {"x": 1}})}, ("subject_id",), "py-irt"),
    Wrong("py-irt without responses", {"r.jsonl": lines(PY_IRT, {"subject_id": "b"})},
        ('every object must have "subject_id" and an object "responses"',), "py-irt"),
    Wrong("py-irt with empty responses", {"r.jsonl": lines({"subject_id": "b", "responses": {}})}, ("is empty",),
        "py-irt"),
    Wrong("py-irt above one", {"r.jsonl": lines(PY_IRT, {"subject_id": "b", "responses": {"x": 2}})},
        ("got 1 value outside", "'b' item 'x' = 2"), "py-irt"),
    Wrong("py-irt not a number", {"r.jsonl": lines(PY_IRT, {"subject_id": "b", "responses": {"x": "seven", "y": {}}})},
        ("response must be a number, got 2 other values",), "py-irt"),
    Wrong("py-irt with subjects of two types", {"r.jsonl": lines(PY_IRT, {"subject_id": 1, "responses": {"x": 1}})},
        ("model_id",), "py-irt"),
    Wrong("py-irt with a subject twice, unequal",
        {"r.jsonl": lines(PY_IRT, {"subject_id": "a", "responses": {"x": 0}})}, ("'a' item 'x' = 1 and 0",), "py-irt"),
    Wrong("py-irt in a CSV", {"r.csv": LONG + "a,x,1\n"}, ("r.csv",), "py-irt"),
    Wrong("cut py-irt", {"r.jsonl": lines(PY_IRT)[:-9]}, ("line 1", "was cut"), "py-irt"),
]  # fmt: skip
