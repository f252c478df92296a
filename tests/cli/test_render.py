import json
import re
import sys

import pytest

from itembank.cli.render import Printer, _PlainProgress, print_ids, progress, refuse_empty, wrapped
from itembank.errors import DataError


def test_plain_progress_speaks_for_each_piece_and_each_quarter(capsys):
    report = _PlainProgress("fit")
    for step in range(100):
        report(f"sweep {step}", step / 100)
    report("standard errors", 1.0)
    assert capsys.readouterr().err.splitlines() == [
        "fit: sweep 0",
        "fit: sweep 25",
        "fit: sweep 50",
        "fit: sweep 75",
        "fit: standard errors",
    ]
    for share in (0.1, 0.6, 1.0):
        report("trying items", share)
    assert capsys.readouterr().err == "fit: trying items\n"


def test_progress_outside_a_terminal_is_plain(capsys):
    with progress("fit") as report:
        report("begin", 0.0)
    assert capsys.readouterr().err == "fit: begin\n"


def test_numbers_without_a_value_are_null_in_json(capsys):
    Printer("json").rows([{"cost": float("nan"), "estimate": float("inf"), "level": 0.5}], "replay")
    found = json.loads(capsys.readouterr().out)
    assert found == {"schema_version": "itembank.replay/1", "rows": [{"cost": None, "estimate": None, "level": 0.5}]}


@pytest.mark.parametrize(
    ("shares", "cells"),
    [((0.9792, 0.5), ["97.9 %", "50.0 %"]), ((1.0, 0.0), ["100 %", "0 %"]), ((0.0012, None), ["0.12 %", "-"])],
)
def test_people_read_shares_in_percent(capsys, shares, cells):
    rows = [{"law": "trend", "coverage": one} for one in shares]
    Printer("table").rows(rows, "pretrain")
    assert [line.split("trend")[1].strip() for line in capsys.readouterr().out.splitlines()[2:4]] == cells


def test_people_read_points(capsys):
    rows = [
        {"model_id": name, "estimate": score, "low": 0.5, "high": high, "level": 0.9, "n_items": 5, "n_total": 160}
        for name, score, high in (("a", 0.67312, 0.769), ("b", float("nan"), float("nan")))
    ]
    Printer("table").rows(rows, "replay", title="Scores")
    title, heads, _, *lines = capsys.readouterr().out.splitlines()
    assert title == "Scores; scores in points"
    assert re.split("  +", heads.strip()) == ["model_id", "estimate", "90 % interval", "items"]
    assert [line.split() for line in lines if line] == [
        ["a", "67.3", "50.0", "to", "76.9", "5/160"],
        ["b", "-", "-", "5/160"],
    ]
    Printer("table").record({"goal_value": 0.02, "power": 0.8}, "sizes", [{"n_items": 5, "half_width": 0.0042}], "plan")
    out = capsys.readouterr().out
    assert "2.0 points" in out
    assert "0.8000" in out
    assert "0.42" in out.split()
    Printer("table").rows([{"difference": 0.0249}, {"difference": -0.0001}], "compare", title="In points")
    assert capsys.readouterr().out.split()[-2:] == ["+2.5", "+0.0"]


def test_ids_are_shown_as_they_are(capsys):
    hostile = "[red]x[/red] [link=http://example.com]y"
    Printer("table").rows([{"model_id": hostile}], "replay")
    assert hostile in capsys.readouterr().out


def test_csv_quotes_what_needs_it(capsys):
    Printer("csv").rows([{"model_id": 'a,"b"\nc', "n": 1}], "replay")
    assert capsys.readouterr().out == 'model_id,n\n"a,""b""\nc",1\n'


ESCAPED = "\x1b[31mred\x1b[0m"


def test_csv_keeps_ids_to_the_letter(capsys):
    Printer("csv").rows([{"item_id": ESCAPED}], "replay")
    assert capsys.readouterr().out == f"item_id\n{ESCAPED}\n"


def test_ids_are_printed_to_the_letter(capsys):
    print_ids(["-a", ESCAPED, " b "])
    assert capsys.readouterr().out == f"-a\n{ESCAPED}\n b \n"
    print_ids([])
    assert capsys.readouterr().out == ""


def test_a_terminal_is_shown_no_control_characters_of_ids(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_ids([ESCAPED, "b"])
    Printer("csv").rows([{"item_id": ESCAPED}], "replay")
    assert capsys.readouterr().out == "\\x1b[31mred\\x1b[0m\nb\nitem_id\n\\x1b[31mred\\x1b[0m\n"


def test_an_id_with_a_line_break_does_not_stand_on_a_line(capsys):
    with pytest.raises(DataError, match=r"no line break .* got 'a\\nb'"):
        print_ids(["a\nb", "c"])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (0.12346, "0.1235"),
        (-2.0, "-2.0000"),
        (2.6e-06, "2.6e-06"),
        (-0.00012346, "-0.000123"),
        (2250.0, "2250.0"),
        (-1e5, "-100000.0"),
    ],
)
def test_numbers_show_their_size(capsys, value, text):
    Printer("table").rows([{"cost": value}], "replay")
    assert text in capsys.readouterr().out.split()


def test_control_characters_never_reach_the_terminal(capsys):
    Printer("table").rows([{"model_id": "\x1b[31mred\nline"}], "replay")
    out = capsys.readouterr().out
    assert "\x1b[31mred" not in out
    assert "\\x1b[31mred\\nline" in out


def test_names_drive_neither_a_terminal_nor_a_job_of_github(capsys):
    assert wrapped("a\x1b[2J\r.csv: is empty.\n ::error::b") == "a\\x1b[2J\\r.csv: is empty.\n\\::error::b"
    Printer("table").rows([{"scenario": name, "n_items": 1} for name in ("::stop-commands::x", "a" * 18)], "replay")
    own, other = capsys.readouterr().out.splitlines()[-3:-1]
    assert (own.startswith(" \\::stop-commands::x "), len(own)) == (True, len(other))


def test_a_missing_number_is_no_success():
    rows = [
        {"model_id": "a", "target": "math", "estimate": 0.5},
        {"model_id": "a", "target": "law", "estimate": float("nan")},
    ]
    refuse_empty(rows[:1], "estimate", ("model_id", "target"))
    with pytest.raises(DataError, match=r"estimate must be known, got 1 of 2 that are not: 'a on law'"):
        refuse_empty(rows, "estimate", ("model_id", "target"))


def test_a_note_is_broken_between_words_and_a_command_that_ends_it_is_whole(monkeypatch):
    command = "itembank import results-of-a-model.csv -o responses.parquet"
    monkeypatch.setenv("COLUMNS", "40")
    assert wrapped(f"Run these items. Next: {command}").splitlines() == ["Run these items. Next:", f"  {command}"]
    sentence = "The mean is of all answers; itembank calibrate --across items makes it so."
    assert wrapped(sentence).splitlines() == [
        "The mean is of all answers; itembank",
        "calibrate --across items makes it so.",
    ]
    fact = f"{'Proved':<17}worse by less than 9.4 points, worse by more than 3.6 points"
    first, *rest = wrapped(fact, indent=17).splitlines()
    assert first.startswith("Proved           worse")
    assert all(line.startswith(" " * 17) and len(line) <= 40 for line in rest)
    monkeypatch.delenv("COLUMNS")
    assert wrapped(sentence) == sentence
