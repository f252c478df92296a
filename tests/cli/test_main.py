import click
import pytest
from click.shell_completion import BashComplete

from itembank.cli.main import cli, sections

COMMANDS = {name: text for commands in sections().values() for name, (_, text) in commands.items()}


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself_with_an_example(run, name):
    outcome = run.ok(name, "--help")
    assert f"itembank {name}" in outcome.out.split("\n", 1)[1]


def test_help_of_every_command_fits_a_page():
    """Of 80 lines and columns; a longer text belongs into the documentation. Check has the options of two jobs."""
    assert {name: n for name, n in help_lines(cli, "itembank") if n > (90 if name == "itembank check" else 80)} == {}


def help_lines(command, name):
    context = click.Context(command, info_name=name, terminal_width=78)
    yield name, len(command.get_help(context).splitlines())
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            yield from help_lines(command.get_command(context, part), f"{name} {part}")


def test_help_lists_every_command(run):
    outcome = run.ok("--help")
    for name, text in COMMANDS.items():
        assert name in outcome.out
        assert text in outcome.out


def test_an_error_is_one_line_and_a_traceback_only_with_debug(run, tmp_path):
    outcome = run("info", tmp_path)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert "Traceback" not in outcome.err
    with pytest.raises(Exception, match="is not a bank"):
        run("--debug", "info", tmp_path)


def test_a_damaged_bank_has_its_own_exit_code(run, bank_folder):
    (bank_folder / "items.parquet").write_bytes(b"")
    outcome = run("info", bank_folder)
    assert outcome.code == 4
    assert "items.parquet" in outcome.err


def test_options_come_from_the_environment_and_the_command_line_wins(run, bank_folder, monkeypatch):
    monkeypatch.setenv("ITEMBANK_SELECT_N_ITEMS", "6")
    assert len(run("select", bank_folder, "--ids", "list").out.split()) == 6
    assert len(run("select", bank_folder, "--ids", "list", "-n", 9).out.split()) == 9
    monkeypatch.setenv("ITEMBANK_INFO_FORMAT", "json")
    assert run("info", bank_folder).out.startswith("{")


def test_the_environment_can_ask_for_a_traceback(run, tmp_path, monkeypatch):
    monkeypatch.setenv("ITEMBANK_DEBUG", "1")
    with pytest.raises(Exception, match="is not a bank"):
        run("info", tmp_path)


def test_too_little_memory_is_said_without_a_traceback(run, bank_folder, monkeypatch):
    def fail(*_arguments, **_options):
        raise MemoryError

    monkeypatch.setattr("itembank.load_bank", fail)
    outcome = run("info", bank_folder)
    assert outcome.code == 1
    assert outcome.err.startswith("Error: there is not enough memory for this. Check that model_id and item_id")


def test_a_bank_that_a_killed_command_left_aside_is_named(run, bank_folder):
    """As where folders cannot be exchanged and a command was killed between its two renames."""
    place = bank_folder.parent / f".{bank_folder.name}.abcd_123.partial"
    place.mkdir()
    bank_folder.rename(place / "old")
    outcome = run("info", bank_folder)
    assert outcome.code == 2
    assert outcome.err.endswith(f"Put it back: mv {place / 'old'} {bank_folder}\n")
    (place / "old").rename(bank_folder)
    run.ok("info", bank_folder)


def test_quiet_and_debug_may_stand_after_the_command(run, tmp_path):
    (tmp_path / "r.jsonl").write_text('{"subject_id": "a", "responses": {"x": 1, "y": 0}}\n')
    command = ("import", tmp_path / "r.jsonl", "-o", tmp_path / "o.parquet")
    assert "Next" in run(*command).err
    for place in (0, 1, 4):
        outcome = run(*command[:place], "--quiet", *command[place:])
        assert (outcome.code, outcome.err) == (0, ""), place
    for place in (0, 1, 2):
        arguments = ["info", tmp_path]
        with pytest.raises(Exception, match="is not a bank"):
            run(*arguments[:place], "--debug", *arguments[place:])


def test_a_value_that_reads_like_an_option_asks_for_no_traceback(run, tmp_path):
    assert run("info", "--", "--debug").code == 2


def test_every_help_mentions_what_all_commands_have(run):
    for name in ("estimate", "session"):
        outcome = run(name, "--help")
        assert all(option in outcome.out for option in ("--debug", "--quiet")), name


@pytest.mark.parametrize(
    ("words", "incomplete", "wanted"),
    [
        ([], "s", ["select", "session", "scaling", "study", "simulate", "sample-data"]),
        ([], "--q", ["--quiet"]),
        (["scaling"], "tr", ["transfer"]),
        (["scaling", "pretrain"], "--ki", ["--kind"]),
        (["scaling", "pretrain", "--kind"], "dec", ["decisions"]),
        (["estimate", "--method"], "gp", ["gp-irt"]),
    ],
)
def test_the_shell_completes_commands_options_and_choices(words, incomplete, wanted):
    found = BashComplete(cli, {}, "itembank", "_ITEMBANK_COMPLETE").get_completions(words, incomplete)
    assert [one.value for one in found] == wanted
