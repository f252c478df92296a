"""The GitHub Action: its script is run as GitHub runs it, with inputs that strangers may have written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ACTION = (REPOSITORY / "action.yml").read_text(encoding="utf-8")
WORKFLOW = (REPOSITORY / "examples" / "github-gate.yml").read_text(encoding="utf-8")
INSTALL, GATE = (re.sub("(?m)^ {8}", "", one) for one in re.findall(r"(?m)^      run: \|\n((?:        .*\n)+)", ACTION))
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
HOSTILE = ("*' \"; touch pwned; `touch pwned` $(touch pwned)", "--margin=0.9", "-h", "a\n::error::b\nverdict=pass")


@pytest.fixture
def act(tmp_path, monkeypatch):
    """Run the action's last step on inputs; return its exit code, its output `verdict` and what it printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outputs").write_text("")
    program = tmp_path / "temp" / "itembank" / "bin" / "itembank"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m itembank "$@"\n')
    program.chmod(0o755)
    for name, n_fell in (("old", 0), ("same", 0), ("bad", 60), ("unclear", 16)):
        rows = [f"{name},q{k},{int(k % 2 and k > 2 * n_fell)}\n" for k in range(400)]
        (tmp_path / f"{name}.csv").write_text("".join(["model_id,item_id,response\n", *rows]))

    def run(baseline="old.csv", candidate="", *, margin="0.05", bank="", arguments="", undecided="failure"):
        given = {"BASELINE": baseline, "CANDIDATE": candidate, "MARGIN": margin, "BANK": bank, "ARGUMENTS": arguments}
        places = {"RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_OUTPUT": str(tmp_path / "outputs")}
        environment = {**os.environ, **given, **places, "UNDECIDED": undecided}
        done = subprocess.run([*SHELL, GATE], env=environment, capture_output=True, text=True, check=False)
        outputs = dict(line.split("=") for line in (tmp_path / "outputs").read_text().splitlines())
        (tmp_path / "outputs").write_text("")
        assert outputs.keys() <= {"verdict"}
        return done.returncode, outputs.get("verdict"), done.stdout + done.stderr

    return run


def test_each_verdict_has_its_output_and_exit_code(act, tmp_path):
    for candidate, more, expected in (
        ("same.csv", {}, (0, "pass")),
        ("unclear.csv", {}, (3, "undecided")),
        ("unclear.csv", {"undecided": "warning"}, (0, "undecided")),
        ("bad.csv", {"undecided": "warning"}, (1, "fail")),
        ("unclear.csv", {"margin": "0.2", "arguments": "\n--junit=a gate.xml\n\n--quiet\n"}, (0, "pass")),
        ("nowhere.csv", {"undecided": "warning"}, (2, "none")),
        ("temp", {}, (5, "none")),
    ):
        code, verdict, printed = act(candidate=candidate, **more)
        assert (code, verdict) == expected, printed
        assert len(re.findall("(?m)^::(?:notice|warning|error) title=itembank gate", printed)) == 1, printed
    assert (tmp_path / "a gate.xml").is_file()


def test_a_started_gate_takes_results_or_a_command(act):
    words = ("gate", "start", "old.csv", "--margin", "0.05", "-o", "gate")
    subprocess.run([sys.executable, "-m", "itembank", *words], check=True, capture_output=True)
    assert act("gate", "bad.csv", margin="")[:2] == (1, "fail")
    by_command = "--command=grep -q 2 word {item_id}\n--exit-code\n--model-id=a; touch pwned"
    code, verdict, printed = act("gate", margin="", arguments=by_command)
    assert (code, verdict) == (5, "none")
    assert "10 attempts in a row failed" in printed


@pytest.mark.parametrize("name", HOSTILE)
def test_no_input_is_code_or_an_option_of_another_place(act, tmp_path, name):
    before = sorted(tmp_path.rglob("*"))
    code, verdict, printed = act(name, name, margin=name, bank=name, undecided=name)
    assert (code, verdict, "\n::error::b" in printed) == (2, "none", False), printed
    code, verdict, printed = act(candidate="bad.csv", arguments=name)
    assert (code, verdict) == {"--margin=0.9": (0, "pass"), "-h": (5, "none")}.get(name, (2, "none")), printed
    assert sorted(tmp_path.rglob("*")) == before


def test_inputs_reach_the_script_by_the_environment_alone():
    assert not re.search(r"\$\{\{", INSTALL + GATE)
    inputs = re.findall(r"(?m)^  (\S+):$", ACTION.partition("inputs:\n")[2].partition("outputs:\n")[0])
    assert {name: f"${{{{ inputs.{name} }}}}" for name in inputs} == {
        name.lower(): value for name, value in re.findall(r"(?m)^        ([A-Z]+): (\$\{\{ inputs.*)$", ACTION)
    }
    given = re.findall(r"(?m)^          ([a-z]+):", WORKFLOW.partition("uses: ./itembank")[2])
    assert {"baseline", "arguments"} <= set(given) - {"name", "path"} <= set(inputs)
    assert re.findall(r"uses: (\S+)", ACTION) == ["actions/setup-python@v5"]
    assert '[report]"' in INSTALL
    assert subprocess.run([*SHELL[:-1], "-n", "-c", INSTALL], check=False).returncode == 0
