"""What all commands have in common, and `itembank report`."""

import shlex
import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from itembank.banks import start
from itembank.cli.command import SESSION, under_headings
from itembank.cli.main import cli, sections
from itembank.cli.options import typed, typed_command
from itembank.cli.signatures import WholeNumbers, argument, option, verb
from tests.bank.banks import make_bank
from tests.cli.conftest import holds


def test_options_of_reading_lead_to_import_and_others_to_their_file(run, tmp_path):
    run.fails(2, "itembank import FILES --metric ...", "estimate", tmp_path, "new.csv", "--metric", "acc")
    assert "import" not in run("info", tmp_path, "--metric", "acc").err
    for words, line in {
        ("replay", tmp_path, "new.csv", "--threshold", "0.7"): "stopping.decision = {threshold = ...} in a file",
        ("run", "lm-eval", tmp_path, "--target", "java"): 'target = "..." in a file, and give --session FILE.toml',
        ("import", "new.csv", "--filter", "x"): 'filter_name = ["..."] in a file, and give --spec FILE.toml',
    }.items():
        run.fails(2, line, *words)
    assert "--scenario: write" not in run("calibrate", "new.csv", "--scenario", "x").err
    run.fails(2, "no file matches", "import", tmp_path / "*.json", "-o", tmp_path / "r.parquet")


@verb("try")
def command(
    *,
    column: Annotated[str | None, option("Of a table.", heading=SESSION)],
    limits: Annotated[dict, {"Limits": {"most": option("At most.", type=int), "least": option("At least.", type=int)}}],
    seed: Annotated[int | None, "Of everything random."],
):
    """A command whose options stand under two headings, one of them of sessions."""
    click.echo([column, limits, seed])


def test_options_stand_under_headings_those_of_sessions_last_and_come_as_one_mapping():
    sections = under_headings(command, click.Context(command))
    names = {heading: [one.opts[-1] for one in options] for heading, options in sections.items()}
    assert names == {"Options": ["--seed", "--help"], "Limits": ["--most", "--least"], SESSION: ["--column"]}
    text = CliRunner().invoke(command, ["--help"]).output
    assert [text.index(f"{heading}:") for heading in names] == sorted(text.index(f"{heading}:") for heading in names)
    assert "--column: see itembank session start --help" in text
    assert "Of a table." not in text
    out = CliRunner().invoke(command, ["--most", "3", "--seed", "4"]).output
    assert out.strip() == "[None, {'most': 3, 'least': None}, 4]"


def test_types_and_defaults_are_those_of_the_signature():
    found = []

    @verb("try")
    def signed(
        *,
        files: Annotated[tuple[str, ...], argument()],
        other: Annotated[str | None, argument()],
        n_items: Annotated[int, option("A count.", "-n", "--n-items")] = 3,
        how: Annotated[Literal["fast", "slow"], "How."] = "slow",
        many: Annotated[tuple[float, ...], "Many."],
        is_on: Annotated[bool, option("A flag.", "--on")],
        name: Annotated[str, "Must be given."],
    ):
        found.append((files, other, n_items, how, many, is_on, name))

    done = CliRunner().invoke(signed, ["a", "b", "--name", "c"])
    assert (done.exit_code, found.pop()) == (0, (("a",), "b", 3, "slow", (), False, "c"))
    CliRunner().invoke(signed, shlex.split("a b -n 5 --how fast --many 1 --many 2.5 --on --name c"))
    assert found.pop() == (("a",), "b", 5, "fast", (1.0, 2.5), True, "c")
    for words, missing in ((["a", "b"], "--name"), (["--name", "c"], "FILES...")):
        done = CliRunner().invoke(signed, words)
        assert done.exit_code == 2
        assert f"Missing {'option' if missing == '--name' else 'argument'} '{missing}'" in done.output


Size = Literal["small", "large"]


@dataclass(frozen=True)
class Spec:
    """A field of every kind that specs have."""

    count: int = 3
    weight: float | None = None
    size: Size | Literal["auto"] = "auto"
    scale: float | Literal["global", "scenario"] = "scenario"
    tags: tuple[str, ...] = ()
    has_costs: bool = True
    is_forced: bool = False
    k: tuple[int, ...] = (1,)


def given(*words):
    found = {}

    fields = {
        "count": option("A count.", of=Spec),
        "weight": option("A weight.", of=Spec),
        "size": option("A size.", of=Spec),
        "scale": option("A scale.", of=Spec),
        "tags": option("A tag.", "--tag", of=Spec),
        "has_costs": option("Costs.", "--costs/--no-costs", of=Spec),
        "is_forced": option("Force.", "--force", of=Spec),
        "k": option("Samples.", of=Spec, type=WholeNumbers(), default="1"),
    }

    @verb("make")
    def command(*, choices: Annotated[dict, fields]):
        found.update(all=choices, typed=typed(choices))

    return found, CliRunner().invoke(command, words)


def test_options_are_of_the_types_and_defaults_of_their_fields():
    found, _ = given()
    assert (Spec(**found["all"]), found["typed"]) == (Spec(), {})
    words = shlex.split("--count 5 --weight 2 --size large --scale 0.5 --tag a --tag b --no-costs --force --k 1,1e2")
    wanted = Spec(5, 2.0, "large", 0.5, ("a", "b"), has_costs=False, is_forced=True, k=(1, 100))
    found, _ = given(*words)
    assert Spec(**found["all"]) == Spec(**found["typed"]) == wanted
    assert given("--scale", "global")[0]["typed"] == {"scale": "global"}
    text = given("--help")[1].output
    holds(text, "[small|large|auto]", "NUMBER|global|scenario", "[default: 3]", "A weight.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--count", "2.5"), "is not a valid integer"),
        (("--size", "huge"), "'small', 'large', 'auto'"),
        (("--scale", "wide"), "must be a number or 'global' or 'scenario', got 'wide'"),
        (("--k", "1,2.5"), "must be whole numbers with commas between them, got '1,2.5'"),
        (("--k", "one"), "must be whole numbers"),
    ],
)
def test_other_values_are_refused(words, message):
    found, outcome = given(*words)
    assert (found, outcome.exit_code) == ({}, 2)
    assert message in outcome.output


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("merge",), "itembank bank add-models."),
        (("bank", "merge"), "itembank bank add-models."),
        (("help",), "itembank --help."),
        (("score",), "itembank estimate."),
        (("study", "show"), "itembank study table."),
        (("export", "html"), "It is one of ids."),
        (("calibrat",), "Did you mean 'calibrate'?"),
        (("select", "bank", "--n", 5), "Write --n-items N."),
        (("select", "bank", "--json"), "Write --format json."),
        (("estimate", "bank", "new.csv", "--output", "x"), "Write --format csv > FILE.csv."),
        (("estimate", "bank", "new.csv", "--html", "x"), "Write --report FILE.html."),
        (("estimate", "bank", "new.csv", "--items-file", "x"), "Write --selection FILE."),
        (("compare", "a.csv", "b.csv", "--metric", "acc"), "itembank import FILES --metric ..."),
        (("calibrate", "r.parquet", "--n-dims", 2), "Did you mean '--dims'?"),
    ],
)
def test_what_people_type_first_is_answered_with_what_does_it(run, words, advice):
    run.fails(2, advice, *words)


def test_errors_name_options_that_the_command_has_and_fit_the_terminal(run, monkeypatch, tmp_path):
    assert run("estimate", "bank", "new.csv", "--seed", 3).err.splitlines()[-1] == "Error: No such option --seed."
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "bank").touch()
    for words in (("info", tmp_path / "absent"), ("select", tmp_path / "bank", "-n", 5), ("bank", "nothing")):
        outcome = run(*words)
        assert outcome.code
        assert all(len(line) <= 60 or " " not in line.strip() for line in outcome.err.splitlines())


COMMANDS = {name: text for commands in sections().values() for name, (_, text) in commands.items()}


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself_with_an_example(run, name):
    assert f"itembank {name}" in run.ok(name, "--help").out.split("\n", 1)[1]


def test_help_lists_every_command_fits_a_page_and_names_what_all_have(run):
    """Of 80 lines and columns; a longer text belongs into the documentation. Check has the options of two jobs."""
    assert {name: n for name, n in help_lines(cli, "itembank") if n > (90 if name == "itembank check" else 80)} == {}
    outcome = run.ok("--help")
    for name, text in COMMANDS.items():
        assert name in outcome.out
        assert text in outcome.out
    for name in ("estimate", "session"):
        outcome = run(name, "--help")
        assert all(option in outcome.out for option in ("--debug", "--quiet")), name


def help_lines(command, name):
    context = click.Context(command, info_name=name, terminal_width=78)
    yield name, len(command.get_help(context).splitlines())
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            yield from help_lines(command.get_command(context, part), f"{name} {part}")


def test_an_error_is_one_line_and_a_traceback_only_with_debug(run, tmp_path, monkeypatch):
    outcome = run("info", tmp_path)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("Error: ")
    assert "Traceback" not in outcome.err
    with pytest.raises(Exception, match="is not a bank"):
        run("--debug", "info", tmp_path)
    monkeypatch.setenv("ITEMBANK_DEBUG", "1")
    with pytest.raises(Exception, match="is not a bank"):
        run("info", tmp_path)
    assert run("info", "--", "--debug").code == 2


def test_options_come_from_the_environment_and_the_command_line_wins(run, bank_folder, monkeypatch):
    monkeypatch.setenv("ITEMBANK_SELECT_N_ITEMS", "6")
    assert len(run("select", bank_folder, "--ids", "list").out.split()) == 6
    assert len(run("select", bank_folder, "--ids", "list", "-n", 9).out.split()) == 9
    monkeypatch.setenv("ITEMBANK_INFO_FORMAT", "json")
    assert run("info", bank_folder).out.startswith("{")


def test_too_little_memory_is_said_without_a_traceback(run, bank_folder, monkeypatch):
    def fail(*_arguments, **_options):
        raise MemoryError

    monkeypatch.setattr("itembank.load_bank", fail)
    outcome = run("info", bank_folder)
    assert outcome.code == 1
    assert outcome.err.startswith("Error: there is not enough memory for this. Check that model_id and item_id")


def test_a_bank_left_aside_or_damaged_is_named(run, bank_folder):
    """As where folders cannot be exchanged and a command was killed between its two renames."""
    place = bank_folder.parent / f".{bank_folder.name}.abcd_123.partial"
    place.mkdir()
    bank_folder.rename(place / "old")
    outcome = run("info", bank_folder)
    assert outcome.code == 2
    assert outcome.err.endswith(f"Put it back: mv {place / 'old'} {bank_folder}\n")
    (place / "old").rename(bank_folder)
    run.ok("info", bank_folder)
    (bank_folder / "items.parquet").write_bytes(b"")
    run.fails(4, "items.parquet", "info", bank_folder)


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


def test_banks_have_a_page_by_a_name_that_pages_have(run, bank_folder, tmp_path, monkeypatch):
    page = tmp_path / "bank.html"
    outcome = run("report", bank_folder, "-o", page)
    assert (outcome.code, outcome.out) == (0, "")
    assert f"Report: {page}" in outcome.err
    text = page.read_text(encoding="utf-8")
    holds(text, "questions give an interval of", f"itembank report {bank_folder} -o {page}")
    start(make_bank().responses.items).save(tmp_path / "none")
    run.ok("report", tmp_path / "none", "-o", tmp_path / "none.html")
    assert "questions give an interval of" in (tmp_path / "none.html").read_text(encoding="utf-8")
    monkeypatch.setattr("itembank.load_bank", lambda _: pytest.fail("loaded"))
    run.fails(2, "must end in .html", "report", bank_folder, "-o", "bank.pdf")


def test_the_command_of_a_page_names_files_of_letters_that_cannot_be_seen(monkeypatch):
    monkeypatch.setattr("sys.argv", ["itembank", "report", "a b\n", "ü"])
    assert typed_command() == "itembank report $'a b\\x0a' 'ü'"


MODEL = ("--", "--model", "hf", "--model_args", "pretrained=org/m")


@pytest.fixture(autouse=True)
def _without_lm_eval(monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)


def test_without_lm_eval_the_package_is_named(run, fitted_bank, tmp_path):
    words = ("run", "lm-eval", fitted_bank, "-n", 3, "-o", tmp_path / "run", *MODEL)
    run.fails(1, "pip install 'lm_eval>=0.4.5,<0.6'", *words)
