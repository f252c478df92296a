"""The README's commands and Python run one after the other as they are printed, and give what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from itembank.bank.selections import Selection
from itembank.readers.builtin import sample_data
from tests.docs.test_examples import blocks

README = Path(__file__).resolve().parents[2] / "README.md"
BLOCKS = blocks(README)
NUMBER = re.compile(r"\d+\.\d+")
BANK = re.compile(r"\bbank [0-9a-f]{12}\b")
"""A digest of parameters, whose last digits are the processor's."""


def of_language(language):
    return [code for name, code in BLOCKS if name == language]


@pytest.mark.slow
def test_what_is_printed_is_what_comes_of_commands_and_of_python(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (commands,), (shown,), (code,) = of_language("sh"), of_language("text"), of_language("python")
    for line in commands.splitlines():
        outcome = run.ok(*shlex.split(line, comments=True)[1:])
    printed, shown = (BANK.sub("bank", text) for text in (outcome.out, shown))
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split()
    numbers = zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True)
    assert [pair for pair in numbers if abs(float(pair[0]) - float(pair[1])) > 0.2] == []  # other processors round
    again = run(*shlex.split(commands.splitlines()[-1])[1:], "--format", "json")
    namespace = {"__name__": "example"}
    exec(compile(code, "README.md", "exec"), namespace)  # noqa: S102
    assert (tmp_path / "my-bank").is_dir()
    chosen = Selection.load(tmp_path / "selection.json").to_dict()
    chosen["explanation"] = chosen["explanation"].replace("--method v-optimal", "method='v-optimal'")
    assert namespace["selection"].to_dict() == chosen
    assert namespace["estimates"].rows() == again.json["rows"]  # to the last digit


def test_the_true_score_is_the_one_it_names():
    _, new = sample_data()
    tasks = new.items["scenario"].to_numpy()
    means = [new.responses[0, tasks == task].mean() for task in dict.fromkeys(tasks.tolist())]
    said = re.search(r"true overall score of this model is ([\d.]+) points\.\s", README.read_text(encoding="utf-8"))
    assert f"{100 * sum(means) / len(means):.1f}" == said[1]


def test_it_stays_short():
    """A stranger reads it in two minutes: at most 140 lines and 40 numbers in its prose and tables."""
    text = README.read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```|\]\([^)]*\)", "", text, flags=re.DOTALL)
    assert len(text.splitlines()) <= 140
    assert len(re.findall(r"(?<![\w.])\d[\d.,]*", prose)) <= 40
