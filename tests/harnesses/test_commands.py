"""Items run by commands: what reaches the program, what its answer is, what is left of those that go wrong."""

import os
import signal
import time
from pathlib import Path

import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.harnesses import commands
from itembank.harnesses.commands import CommandItems, CommandSpec, file_name
from itembank.sessions.events import Failed, Told

HOSTILE = [
    *(
        "'; rm -rf /tmp/nothing-of-ours",
        "$(touch broken)",
        "`touch broken`",
        "../../etc/passwd",
        "two\nlines",
        "a b  c",
    ),
    *("\"quoted\" 'twice'", "--help", "*", "{scenario}", "\\n%s$HOME", "é\u202e\U0001f600"),
]
ITEMS = pl.DataFrame({"item_id": HOSTILE, "scenario": "a b", "subscenario": None, "n_options": 4})


def items_of(command, items=ITEMS, **choices):
    return CommandItems(CommandSpec(command, **choices), items)


@pytest.fixture
def printer(tmp_path, monkeypatch):
    """A program that writes its arguments to a file as they came, and answers 1."""
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "agent.sh"
    script.write_text('#!/bin/sh\nprintf "%s\\0" "$#" "$@" "$ITEMBANK_ITEM_ID" > seen\necho 1\n')
    script.chmod(0o755)
    return tmp_path / "seen"


@pytest.mark.parametrize("item", HOSTILE)
@pytest.mark.parametrize(
    ("template", "uses_shell"),
    [
        ("./agent.sh {item_id} x{scenario}y {{scenario}} '{n_options} {subscenario}'", False),
        ('./agent.sh {item_id} x{scenario}y {{scenario}} "{n_options} {subscenario}"', True),
        ('./agent.sh "{item_id}" "x{scenario}y" "{{scenario}}" {n_options}" "', True),
    ],
)
def test_ids_of_strangers_arrive_as_one_argument(printer, item, template, uses_shell):
    assert items_of(template, uses_shell=uses_shell)(item) == Told(item, 1.0)
    seen = printer.read_bytes().decode().split("\0")[:-1]
    assert seen == ["4", item, "xa by", "{scenario}", "4 ", item]
    assert not (printer.parent / "broken").exists()


def test_a_shell_does_not_read_ids_again_and_no_argument_can_hold_a_null_byte(printer):
    items = items_of('cat > seen <<END\n{item_id} $(echo "{item_id}")\nEND\necho 1', uses_shell=True)
    assert items("$(touch broken)").response == 1.0
    assert not (printer.parent / "broken").exists()
    with pytest.raises(ValueError, match="null byte"):
        items_of("echo {item_id}", ITEMS.head(1).with_columns(item_id=pl.lit("a\0b")))("a\0b")


def test_names_of_logs_are_harmless_and_tell_ids_apart(tmp_path):
    names = [file_name(item, ".log") for item in [*HOSTILE, "A" * 500, "A" * 501, ".", "..", ""]]
    assert len(set(names)) == len(names)
    assert all(("/" not in name and not name.startswith(".")) or name.startswith(".e3b0") for name in names)
    assert max(map(len, names)) < 100
    items = items_of("sh -c 'echo said; echo thought >&2; echo 1'", logs=tmp_path / "logs")
    items(HOSTILE[0])
    items(HOSTILE[0])
    (log,) = (tmp_path / "logs").iterdir()
    assert log.read_text().count("== standard output\nsaid\n1\n") == 2
    assert log.read_text().count("== standard error\nthought\n") == 2


@pytest.mark.parametrize(
    ("said", "response", "costs"),
    [
        ("echo 0.25", 0.25, {}),
        ('echo \'{"response": 1, "costs": {"cost_usd": 0.5}}\'', 1.0, {"cost_usd": 0.5}),
        ("echo 17; echo '{\"response\": 0}'; echo done", 0.0, {}),
        ("printf '{\\n \"response\": 0.5\\n}\\n'", 0.5, {}),
        ("echo thinking; echo Resolved", 1.0, {}),
        *(("echo unresolved", 0.0, {}), ("echo True", 1.0, {}), ("echo '{\"correct\": 0}'", 0.0, {})),
        ('echo \'{"resolved": true, "costs": {"cost_usd": 0.5}}\'', 1.0, {"cost_usd": 0.5}),
        ('echo \'{"response": "incorrect"}\'', 0.0, {}),
    ],
)
def test_the_answer_is_the_last_json_on_standard_output(said, response, costs):
    assert items_of(said, uses_shell=True)(HOSTILE[0]) == Told(HOSTILE[0], response, costs=costs)


def test_counts_of_trials_and_failures_are_answers_too_and_costs_of_a_failed_run_count():
    counted = items_of('echo \'{"n_correct": 3, "n_trials": 4}\'', uses_shell=True)(HOSTILE[0])
    assert counted == Told(HOSTILE[0], 0.75, 3, 4)
    failed = items_of('echo \'{"failed": true, "reason": "refused"}\'', uses_shell=True)(HOSTILE[0])
    assert failed == Failed(HOSTILE[0], reason="refused")
    command = 'echo \'{"response": 1, "costs": {"cost_usd": 2}}\'; exit 1'
    assert items_of(command, uses_shell=True)(HOSTILE[0]).costs == {"cost_usd": 2.0}
    command = 'echo \'{"costs": {"cost_usd": -1}}\'; exit 1'
    assert items_of(command, uses_shell=True)(HOSTILE[0]).costs == {}


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo oops >&2; echo 1; exit 3", "Exit status 3. oops"),
        ("echo gone >&2; kill -9 $$", "Ended by signal SIGKILL. gone"),
        ("echo", 'standard output must hold JSON such as {"response": 1}, a number, or a word such as resolved, got'),
        ("echo C", "got 'C'"),  # a letter names an option
        ("echo done", "got 'done'"),
        ('echo \'{"resolved": true, "cost": 2}\'', "got 'cost' too"),
        ('echo \'{"resolved": true, "correct": false}\'', "got 'resolved', 'correct' too"),
        ("echo NaN", "a response must be a number in [0, 1]"),
        ("echo 7", "a response must be a number in [0, 1]"),
        ("echo '{\"reponse\": 1}'", "'reponse'"),
        ('echo \'{"response": 1, "item_id": "other"}\'', "must be to item"),
        ("echo '[1]'", "got '[1]'"),
        ("printf 'a\\033[31mb\\n' >&2; exit 1", "Exit status 1. a\\x1b[31mb"),
        ("head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1", "x..."),
        ("exec ./no-such-program", "Exit status 127."),
    ],
)
def test_what_is_no_answer_is_a_failure_and_not_a_zero(command, reason):
    answer = items_of(command, uses_shell=True)(HOSTILE[0])
    assert isinstance(answer, Failed)
    assert answer.again
    assert reason in answer.reason
    assert len(answer.reason) < 250


@pytest.mark.parametrize(
    ("command", "pattern", "response"),
    [
        (r"printf 'score: 0.5\nscore: 0.75\nend\n'", r"score: ([\d.]+)", 0.75),
        (r"printf '1\n0\nx 1\n'", r"^[01]$", 0.0),
        *(("echo a=0.25", pattern, 0.25) for pattern in (r"(\w+)=(?P<response>[\d.]+)", r"([\d.]+(.))")),
        *((f"echo {said}", r"score: (.*)", None) for said in ("score: great", "nothing", "score: nan")),
        ("echo score", r"(x)?score", None),
        *(("exit 0", None, 1.0), ("exit 1", None, 0.0), ("exit 2", None, None), ("kill -15 $$", None, None)),
        ("echo 'Traceback (most recent call last):' >&2; exit 1", None, None),
    ],
)
def test_a_pattern_or_the_exit_status_finds_the_answer(command, pattern, response):
    how = {"pattern": pattern} if pattern else {"uses_exit_status": True}
    answer = items_of(command, uses_shell=True, **how)(HOSTILE[0])
    assert (None if isinstance(answer, Failed) else answer.response) == response


def alive(process):
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks at processes in /proc")
def test_everything_that_an_item_started_ends_when_its_time_is_up_and_keeps_nobody_waiting(tmp_path, monkeypatch):
    command = f"trap '' TERM; sleep 60 & echo $! $$ > {tmp_path}/ids; wait"
    items = items_of(command, uses_shell=True, timeout=0.1)
    monkeypatch.setattr(commands, "GRACE", 0.1)
    answer = items(HOSTILE[0])
    assert answer == Failed(HOSTILE[0], again=True, reason="Its time was up.")
    started = (tmp_path / "ids").read_text().split()
    while any(map(alive, started)):  # killed, and not yet gone
        time.sleep(0.01)
    assert len(started) == 2
    # a server that was left running holds the standard output of the program that is done
    answer = items_of(f"sleep 60 & echo $! > {tmp_path}/id; echo 1", uses_shell=True)(HOSTILE[0])
    assert answer.response == 1.0
    os.kill(int((tmp_path / "id").read_text()), signal.SIGKILL)


def test_interrupted_items_end_soon():
    items = items_of("sleep 60", uses_shell=True)
    items.interrupt()
    assert items(HOSTILE[0]).reason == "Ended by signal SIGTERM."
    items.interrupt()
    assert items_of("sleep 60; echo 1", uses_shell=True, timeout=0.05)(HOSTILE[0]).reason == "Its time was up."


@pytest.mark.parametrize("uses_shell", [False, True])
@pytest.mark.parametrize(
    ("command", "reader"),
    [
        ('sh -c "echo {item_id}; echo 1"', "sh"),
        ('/bin/bash -lc "echo {item_id}"', "bash"),
        ('env X=1 sh -e -c "echo {item_id}"', "sh"),
        ('sh -c "a; echo {item_id}"', "sh"),
        ('su me -c "solve {scenario}"', "su"),
        ("ssh host solve {item_id}", "ssh"),
        ('python3 -c "print({item_id})"', "python3"),
    ],
)
def test_no_second_program_reads_an_id_as_code(command, reader, uses_shell):
    """A second shell reads an id again: `$(touch x)` in it was run."""
    with pytest.raises(ParameterError, match=f"must not be in what {reader} reads as code"):
        items_of(command, uses_shell=uses_shell)
    for further_on in ("cd x && eval solve {item_id}", 'echo 1\nsh -c "echo {item_id}" | cat'):
        with pytest.raises(ParameterError, match="reads as code"):
            items_of(further_on, uses_shell=True)


@pytest.mark.parametrize("item", HOSTILE)
@pytest.mark.parametrize(
    "command",
    [
        'sh -c \'printf "%s" "$1" > seen; echo 1\' - {item_id}',
        "eval true; printf %s {item_id} > seen; echo 1",
        "printf %s {item_id} | sh -c 'cat > seen'; echo 1",
    ],
)
def test_an_id_as_an_argument_of_its_own_comes_as_it_is(tmp_path, monkeypatch, item, command):
    monkeypatch.chdir(tmp_path)
    assert items_of(command, uses_shell=True)(item).response == 1.0
    assert (tmp_path / "seen").read_text(encoding="utf-8") == item
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"command": "echo {item}"}, "got 'item'. Did you mean 'item_id'"),
        ({"command": ""}, "must name a program"),
        ({"command": "echo 'a"}, "must split into words"),
        ({"command": "no-such-program {item_id}"}, "program that is there and may be run, got 'no-such-program'"),
        ({"command": "echo '{item_id}'", "uses_shell": True}, "must not be in single quotes"),
        ({"command": "true", "pattern": "("}, "must be a regular expression"),
        ({"command": "true", "pattern": "1", "uses_exit_status": True}, "got both"),
        ({"command": "true", "timeout": 0}, "timeout must be"),
    ],
)
def test_commands_are_checked_before_anything_runs(choices, words):
    with pytest.raises(ParameterError, match=words.replace("(", r"\(")):
        CommandItems(CommandSpec(**choices), ITEMS)
