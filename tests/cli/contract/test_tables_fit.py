"""What every command prints: its tables at three widths, and the keys of its JSON, all of them documented."""

import csv
import io
import json
import re
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from itembank import tables
from itembank.cli import render
from itembank.cli.quickstart import _table_row
from itembank.cli.render import TABLE
from itembank.output_keys import outputs
from tests.cli.contract.calls import run
from tests.cli.contract.every_option import commands, options_of
from tests.cli.contract.remembered import Remembered
from tests.cli.contract.world import make_world
from tests.documented import seen

WIDTHS = (80, 100, 160)
HARNESSES = ("helm", "eee", "evalscope", "lighteval", "opencompass")
LONG = "organisation-of-models/Large-Language-Model-{}-chat-4bit"  # What ids of models are often like
IDS = ("model_id", "model_a", "model_b")

_LAW = "suite.parquet --bank suite-bank --law irsl --spec plain-law.toml"
_SAMPLES = "samples.parquet --bank samples-bank --spec model-based.toml --model model-1 --k 1,10"
CALLS = {
    "import": [
        *(f"{name} -o made.parquet" for name in ("past.csv", "py-irt.jsonl", "reports", "alpaca", "bfcl", "evalplus")),
        *(f"{name} -o made.parquet" for name in ("logs", "inspect", "livecodebench", "helm evalscope", *HARNESSES)),
        "deep.json --jq '.rows[] | {item_id: .doc.id, response: .marks.acc}' --model-id a -o a.parquet",
    ],
    "download": ["", "alpaca-eval --from alpaca -o made.parquet"],
    "simulate": ["-o simulated.parquet --n-models 5 --n-items 400 --n-tasks 20"],
    "calibrate": ["past.csv -o made-bank --method map --dims 1 --no-folds", "--items items.csv -o made-start"],
    "bank list": [""],
    "bank retire": ["named-bank math/0 --reason key -o made-retired"],
    "bank note": ["named-bank text -o made-noted"],
    "bank add-items": ["bank late.csv -o made-larger", "bank late.csv --dry-run"],
    "bank add-models": ["bank one.csv -o made-with-models"],
    "bank add-scores": ["named-bank models.csv --score size -o made-with-scores"],
    "bank recalibrate": ["bank one.csv --how random -o made-anew"],
    "info": [
        *("bank", "suite-bank", "samples-bank", "named-bank", "past.csv", "retired-bank --log"),
        *("named-bank retired-bank", "made-with-scores", "bank:mmlu-pro", "made-larger --log"),
    ],
    "publish-tiny": ["bank -n 9 -o made-tiny"],
    "sample-data": ["-o made-sample"],
    "select": ["bank -n 7 --method v-optimal", "bank-2 -n 7 --method optimal-design --spec design.toml"],
    "estimate": ["bank new.parquet --method p-irt --interval model-based", "bank one.csv --parent auto"],
    "check": [
        "bank whole.csv --selection random.json --group public=selection.json",
        "past.csv --known exclude.txt",
        "all-known.parquet --by family",
        "flipped.csv --choices choices.csv --known exclude.txt",
        "faulty.parquet",
        "bank-2 answered.jsonl",
    ],
    "compare": [
        "bank past.csv one.csv --method p-irt --model m0 --model m1 --model m14 --target all",
        "bank one.csv --method p-irt",
        "bank past.csv --ranking --method p-irt",
    ],
    "gate verdict": ["alone.csv another.csv --margin 0.3 --self-test", "alone.csv another.csv --margin 0.3"],
    "plan": [
        "bank --max-items 15 --half-width 0.2",
        "bank --difference 0.3 --target math",
        "counts-bank --trials --budget 9000 --cost output_tokens --judged judged.csv",
    ],
    "replay": ["bank-2 new.parquet --max-items 4 --session fast.toml --cost tokens"],
    "session ask": ["asked.jsonl --format table"],
    "session run": ["run.jsonl --command 'echo 1'"],
    "session status": ["answered.jsonl"],
    "study dimensions": ["past.csv --dims 1"],
    "study homogeneity": ["bank"],
    "study predictions": ["bank"],
    "study weights": ["bank selection.json random.json"],
    "study tasks": ["past.csv --cost tokens"],
    "scaling pretrain": [_LAW, *(f"{_LAW} --show {one}" for one in ("comparison", "decisions", "held-out", "curves"))],
    "scaling test-time": [_SAMPLES, f"{_SAMPLES} --budget 10 --show errors", f"{_SAMPLES} --show tail"],
    "scaling transfer": [
        *(f"two.parquet --spec forced.toml {one}" for one in ("--show models", "--source s0 --target s1")),
        "two.parquet --show validity",
    ],
    "study table": [
        *("study", "study --against random/weighted", "prediction", "prediction --against 'task-mean, random'")
    ],
}
NO_TABLE = {
    "": "it only calls commands",
    "session start": "it notes where the journal is",
    "session tell": "it prints a sentence and facts, and no table",
    "session extend": "it notes the budget",
    "gate start": "it prints ids",
    "gate next": "it prints a sentence and a few lines, and no table",
    "session serve": "it answers in JSON Lines",
    "study run": "study table shows it",
    "bank build": "it writes into the user's folder; one row of short texts",
    "push": "it needs the Hub; one row of short texts",
    "pull": "it needs the Hub, and prints a sentence",
    "run harbor": "it needs Harbor, and prints the table of estimate",
    "run inspect": "it needs inspect_ai, and prints the table of estimate",
    "quickstart": "it takes long; a test below has its rows",
    "run lm-eval": "it needs lm_eval, and prints the table of estimate",
    "export ids": "it prints ids",
    "report": "it writes a page",
}
SERVED = """{"request": "ask", "id": 1}
{"request": "tell", "answers": [{"item_id": "math/0", "response": 1}]}
{"request": "scores"}
{"request": "what"}
"""
JSON_ALONE = (
    "session tell asked.jsonl math/0 --response 1",
    "gate start alone.csv --margin 0.3 -o made-gate",
    "select bank -n 7 --method random",
    "select bank -n 7 --predict law",
    "select bank --after alone.csv --selection stage1.json",
    "check bank past.csv --only drift",
    "study table prediction --show tasks --show cost",
)  # Calls that are here for their JSON
_NO_TABLE, _ELSEWHERE = "as in `NO_TABLE`", "it takes other data; tests of its command print it"
NOT_PRINTED = {
    **dict.fromkeys(("bank-build", "push", "run", "run-dry", "quickstart"), _NO_TABLE),
    **dict.fromkeys(("prediction at-cost", "prediction reach", "check drift.items", "gate repeats"), _ELSEWHERE),
    "info": "n_items_in_bank prompts caution assumed_questions",
    "calibrate rows": "caution assumed_questions",
    "check-items items": "rival n_rival n_key differs_for differs_by text",
    **dict.fromkeys(("transfer methods", "transfers transfers.methods"), "log_error"),
    "gate": "repeats",
    "prediction": "at-cost reach",
    "session-serve": "warnings",
}  # Documented keys that calls here do not print: those of an output's object, all of it with a reason, or some


@dataclass(frozen=True)
class Table:
    """A table that a command printed, with the columns that may be left out."""

    columns: tuple
    least: tuple


@dataclass(frozen=True)
class Printed:
    tables: tuple
    content: dict | None  # Of JSON
    rows: list  # Of CSV
    text: str  # What a terminal of 80 columns shows, standard error included


@pytest.fixture(scope="module")
def printed(tmp_path_factory, few_folds):
    folder, found = tmp_path_factory.mktemp("world"), []
    lay_out = tables.table_lines

    def remembered(columns, width, least=()):
        found.append(Table(tuple(map(_with_long_ids, columns)), tuple(least)))
        return lay_out(columns, width, least)

    def prepare(words):
        code, _, err = run(words)
        assert code == 0, f"{words}: {err}"

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Remembered("none").install(patch)
        make_world(folder, prepare)
        patch.setattr(render, "table_lines", remembered)
        result = {}
        for command, calls in CALLS.items():
            option = options_of(commands()[command]).get("--format")
            forms = [one for one in ("json", "csv") if option is not None and one in option.type.choices]
            result[command] = [_printed(f"{command} {words}", forms, found) for words in calls]
        for words in JSON_ALONE:
            _printed(words, ["json"], found)
        run("session serve asked.jsonl", SERVED)
    return result


def _printed(words, forms, found):
    """Call a command for its tables, which `found` collects, and in other forms, which write into other places."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        code, shown, notes = run(words)
    assert code in {0, 3}, f"{words}: {notes}"
    tables_of, texts = tuple(found), {}
    found.clear()
    for form in forms:
        code, out, err = run(f"{words.replace('-o made', f'-o {form}-made')} --format {form}")
        texts[form] = out.replace(f"{form}-made", "made")
        assert code in {0, 3} or "Leave it out" in err, f"{words}: {err}"
    content = json.loads(texts["json"]) if texts.get("json") else None
    rows = list(csv.DictReader(io.StringIO(texts.get("csv", ""))))
    return Printed(tables_of, content, rows, shown + notes)


def _with_long_ids(column):
    return replace(column, cells=tuple(map(LONG.format, column.cells))) if column.name in IDS else column


def numbers(text):
    """Words of a text that are numbers, as often as they are there."""
    return Counter(word for word in text.split() if re.search(r"\d", word) and tables.is_numeric(word))


def check_fits(table, width):
    """Every line has room, every number is whole, and columns gave way in the stated order."""
    lines, left_out = tables.table_lines(table.columns, width, table.least)
    n_values = {column.name: len(set(column.cells)) for column in table.columns}
    stated = sorted(filter(n_values.get, table.least), key=lambda name: n_values[name] > 1)
    assert left_out == stated[: len(left_out)]
    assert max(map(len, lines)) <= width, "\n".join(lines)
    cells = [cell for column in table.columns if column.name not in left_out for cell in column.cells]
    assert not numbers(" ".join(cells)) - numbers(" ".join(lines)), "\n".join(lines)
    for cell in cells:
        assert not tables.is_numeric(cell) or any(cell in line for line in lines), cell
    for head, tail in re.findall(r"(\S+)…(\S+)", "\n".join(lines)):
        assert any(word.startswith(head) and word.endswith(tail) for cell in cells for word in cell.split())
        assert min(len(head), len(tail)) >= 5


def test_every_command_is_here():
    assert set(CALLS) | set(NO_TABLE) == set(commands())


@pytest.mark.parametrize("command", CALLS)
def test_tables_and_lines_fit(printed, command):
    found = [table for one in printed[command] for table in one.tables]
    assert found
    for table in found:
        for width in WIDTHS:
            check_fits(table, width)
    for one in printed[command]:
        long = [line for line in one.text.split("\n") if tables.cell_len(line) > 80]
        # a command to copy stays whole, and so does a word
        assert not "\n".join(line for line in long if not line.startswith("  itembank ") and " " in line.strip())


def rows_in(content):
    if isinstance(content, dict):
        yield [content]
        for one in content.values():
            yield from rows_in(one)
    elif content and isinstance(content, list) and all(isinstance(one, dict) for one in content):
        yield content
        for row in content:
            for one in row.values():
                yield from rows_in(one)


def as_text(value):
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


NUMBER = re.compile(r"([+-]?\d+(?:\.(\d+))?(?:e[+-]?\d+)?)(?: %| points| \(.*\))?")


def is_shown(cell, value):
    """Whether a cell of a table shows a value of JSON: texts and counts as they are, scores in points, all rounded."""
    if isinstance(value, str):
        return cell in {value, LONG.format(value)} or not value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    number = NUMBER.fullmatch(cell)
    if number is None:
        return False
    near = 0.005 * abs(float(number[1])) if "e" in cell else 0.5 * 10.0 ** -len(number[2] or "")
    return any(abs(float(number[1]) - scale * value) <= near * (1.0 + 1e-6) for scale in (1.0, 100.0))


OTHER_ROWS = {
    "scaling transfer": "of a pair of scenarios, CSV has the pair beside each of its rows",
    "gate verdict": "CSV has both kinds of flips, which JSON has by scenario, beside the verdict",
    "bank list": "the table has sizes of one bank in words",
    "study table": "the table has means over rows",
}  # Commands whose rows differ between the forms, and why


@pytest.mark.parametrize("command", [one for one in CALLS if one not in OTHER_ROWS])
def test_csv_and_tables_have_the_rows_and_numbers_of_json(printed, command):
    for one in printed[command]:
        known = list(rows_in(one.content))
        cells = [{no_formula(name): no_formula(cell) for name, cell in row.items()} for row in one.rows]
        if not known:  # the option of a table goes with no JSON
            continue
        assert not cells or any(have_same(cells, rows) for rows in known), cells[0]
        for table in one.tables:
            for place in range(len(table.columns[0].cells)):
                shown = {column.name: column.cells[place] for column in table.columns}
                assert any(
                    len(shown.keys() & row.keys()) >= min(len(shown), 2)
                    and all(is_shown(cell, row[name]) for name, cell in shown.items() if name in row)
                    for rows in known
                    for row in rows
                ), shown


def no_formula(text):
    """Return the text of a cell that is written so that no spreadsheet takes it for a formula."""
    return re.sub(r"^'(?=[=+\-@\t\r])", "", text)


def have_same(cells, rows):
    return len(cells) == len(rows) and all(
        name in row and cell == ("" if row[name] is None else as_text(row[name]))
        for one, row in zip(cells, rows, strict=True)
        for name, cell in one.items()
    )


def test_a_narrow_terminal_shows_less_and_says_so(capsys, monkeypatch):
    rows = [{"model_id": LONG.format(k), "score": 0.5 + k, "low": 0.25, "high": 0.75, "n_items": 10**6} for k in (1, 2)]
    told = {}
    for width in (56, 160):
        monkeypatch.setenv("COLUMNS", str(width))
        TABLE.rows(rows, "ranking", title="Scores", least=("n_items", "interval"))
        told[width] = capsys.readouterr()
    assert told[160].err == ""
    assert "No room for n_items" in told[56].err
    assert "1000000" in told[160].out
    assert "1000000" not in told[56].out
    assert max(map(len, told[56].out.splitlines())) <= 56


def test_the_table_of_the_quickstart_fits():
    row = {
        "strategy": "itembank's default", "selection": "anchor-correctness", "method": "task-mean-eb",
        "mean_absolute_error": 1.523, "worst_error": 10.53,
        "spearman": 0.971, "coverage": 0.961, "level": 0.95,
    }  # fmt: skip
    cells = _table_row(row)
    for width in WIDTHS:
        check_fits(Table(tuple(tables.Column(name, (text,) * 4) for name, text in cells.items()), ()), width)


def test_every_documented_key_is_printed(printed):
    """That no other is printed, `tests.documented` sees."""
    dead = {}
    for name, one in outputs().items():
        for path, keys in one.keys.items():
            place = f"{name} {path}".strip()
            known = NOT_PRINTED.get(name if NOT_PRINTED.get(name) == _NO_TABLE else place, "")
            if known not in (_NO_TABLE, _ELSEWHERE):
                unseen = [key for key in keys if (name, path, key) not in seen and key not in known.split()]
                dead |= {place: unseen} if unseen else {}
    assert dead == {}
