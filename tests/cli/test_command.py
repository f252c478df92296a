import click
import pytest
from click.testing import CliRunner

from itembank.cli.command import RENAMED, SESSION, Command, gathered, headed, under_headings
from tests.cli.contract.every_option import commands, options_of


def test_every_old_name_is_gone_and_leads_to_one_that_is_there():
    for name, renamed in RENAMED.items():
        known = [one for words, one in commands().items() if words.split()[-1:] == [name]]
        for old, new in renamed.items():
            assert any(new.split()[0] in options_of(one) for one in known), (name, new)
            assert not any(old in (*part.opts, *part.secondary_opts) for one in known for part in one.params if new)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("info bank --plot f.png", "--plot has a new name: --figure FILE."),
        ("compare bank r.csv --models a b", "--models has a new name: --model MODEL_ID, once for each model."),
        ("scaling validity r.csv -o f.png", "-o has a new name: --figure FILE."),
        ("scaling pretrain r.csv --figure laws", "--kind laws --figure FILE draws that."),
        ("info bank --figur f.png", "--figure"),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(run, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bank").mkdir()
    (tmp_path / "r.csv").write_text("model_id,item_id,response\n")
    outcome = run(*words.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_a_config_file_with_an_old_name_says_the_new_one(run, tmp_path):
    (tmp_path / "c.toml").write_text("[info]\nplot = 'f.png'\n")
    outcome = run("--config", tmp_path / "c.toml", "info", tmp_path)
    assert outcome.code == 2
    assert "--plot has a new name: --figure FILE." in outcome.err


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
