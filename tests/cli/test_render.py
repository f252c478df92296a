from itembank.cli.render import _PlainProgress, print_rows, progress


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


def test_progress_outside_a_terminal_is_plain(capsys):
    with progress("fit") as report:
        report("begin", 0.0)
    assert capsys.readouterr().err == "fit: begin\n"


def test_numbers_without_a_value_are_null_in_json(capsys):
    print_rows([{"a": float("nan"), "b": float("inf"), "c": 1.5}], "json")
    assert '"a": null' in (text := capsys.readouterr().out)
    assert '"b": null' in text


def test_ids_are_shown_as_they_are(capsys):
    hostile = "[red]x[/red] [link=http://example.com]y"
    print_rows([{"model_id": hostile}], "table")
    assert hostile in capsys.readouterr().out


def test_csv_quotes_what_needs_it(capsys):
    print_rows([{"model_id": 'a,"b"\nc', "n": 1}], "csv")
    assert capsys.readouterr().out == 'model_id,n\n"a,""b""\nc",1\n'


def test_control_characters_never_reach_the_terminal(capsys):
    print_rows([{"model_id": "\x1b[31mred\nline"}], "table")
    out = capsys.readouterr().out
    assert "\x1b[31mred" not in out
    assert "\\x1b[31mred\\nline" in out
