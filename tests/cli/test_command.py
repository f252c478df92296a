import click
from click.testing import CliRunner

from itembank.cli.command import SESSION, Command, gathered, headed, under_headings


def test_a_wrong_name_is_refused_with_the_nearest(run):
    outcome = run("info", "bank", "--figur", "f.png")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--figure" in outcome.err


def test_an_option_of_reading_leads_to_import(run, tmp_path):
    outcome = run("estimate", tmp_path, "new.csv", "--metric", "acc")
    assert outcome.code == 2
    assert "itembank import FILES --metric ..." in outcome.err
    assert "import" not in run("info", tmp_path, "--metric", "acc").err


def command():
    """A command whose options stand under two headings, one of them of sessions."""

    @click.command("try", cls=Command)
    @headed(SESSION, click.option("--column", help="Of a table."))
    @gathered("limits", headed("Limits", click.option("--most", type=int), click.option("--least", type=int)))
    @click.option("--seed", type=int)
    def made(**given):
        click.echo(sorted(given.items()))

    return made


def test_options_stand_under_their_headings_and_those_of_sessions_last():
    names = {heading: [one.opts[-1] for one in options] for heading, options in _sections().items()}
    assert names == {"Options": ["--seed", "--help"], "Limits": ["--most", "--least"], SESSION: ["--column"]}
    text = CliRunner().invoke(command(), ["--help"]).output
    assert [text.index(f"{heading}:") for heading in names] == sorted(text.index(f"{heading}:") for heading in names)
    assert "--column: see itembank session start --help" in text
    assert "Of a table." not in text


def _sections():
    made = command()
    return under_headings(made, click.Context(made))


def test_gathered_options_come_as_one_mapping():
    out = CliRunner().invoke(command(), ["--most", "3", "--seed", "4"]).output
    assert out.strip() == "[('column', None), ('limits', {'most': 3, 'least': None}), ('seed', 4)]"
