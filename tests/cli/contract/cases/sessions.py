"""Cases of adaptive sessions, and of replays of recorded models."""

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.reading import ALLOWED, COMMON, MIXED, ONE_ATTEMPT, PAGES, no_chance, settled

SESSION = {
    "--criterion": "--criterion trace",
    "--of": "--of score",
    "--cost": "--cost output_tokens",
    "--input-weight": "--input-weight 40",
    "--target": "--target law",
    "--n-start": "--n-start 2",
    "--max-items": "--max-items 2",
    "--max-tokens": "--max-tokens 300",
    "--max-cost": "--max-cost seconds=6",
    "--half-width": "--half-width 0.05",
    "--ability-error": "--ability-error 0.9",
    "--threshold": "--threshold 0.2",
    "--better-than": "--better-than m5",
    "--confidence": "--confidence 0.999",
    "--level": "--level 0.8",
    "--interval": "--interval calibrated",
    "--estimand": "--estimand expected",
    "--min-items": "--min-items 9",
    "--at-least": "--at-least law=4",
    "--at-most": "--at-most 1",
    "--exclude": "--exclude exclude.txt",
    "--randomesque": "--randomesque 6",
    "--prior-group": "--prior-group family=a",
    "--prior-known": "--prior-known size=15",
}
_FAST = "--max-items 4 --interval model-based"
_LONG = "--max-items 12 --interval model-based"
_SURE_SOON = f"{_LONG} --half-width 0.3"
_MODES = {
    "v-optimal": _FAST,
    "d-optimal": f"{_FAST} --criterion d-optimal --cost tokens",
    "random": f"{_FAST} --criterion random",
    "min-cost": f"{_FAST} --criterion min-cost --cost tokens",
    "half-width": f"{_FAST} --half-width 0.25",
    "threshold": f"{_FAST} --threshold 0.3 --confidence 0.8",
    "ability": f"{_FAST} --ability-error 0.4",
}
_REQUESTS = """{"request": "tell", "answers": [{"item_id": "math/0", "response": 1, "costs": {"joules": 3}}]}
{"request": "scores"}
"""
_ANSWERS = "".join(
    f'{{"item_id": "{scenario}/{j}", "response": {j % 2}, "costs": {{"seconds": {1 + j}}}}}\n'
    for j, scenario in zip(range(6), ("math", "code", "law") * 2, strict=True)
)
_LATER = (
    ("session ask out/run.jsonl --bank bank-2 -n 3 --format ids", ""),
    ("session tell out/run.jsonl --bank bank-2 - --format json", _ANSWERS),
    ("session ask out/run.jsonl --bank bank-2 --new -n 3 --format ids", ""),
    ("session status out/run.jsonl --bank bank-2 --format json", ""),
)


def _start(words, **more):
    """What is asked and estimated later counts, not the settings that the journal keeps."""
    return Mode(f"bank-2 -o out/run.jsonl --model-id new {words}", then=_LATER, unseen=("run.jsonl",), **more)


def _replay(words, about=(*SESSION, "--seed")):
    """Two recorded models, who answered a part of the items."""
    return Mode(f"bank-2 new.parquet {words} -o out/a.csv --format csv", codes=(0, 3), about=about)


_ASK = {
    "--n-items": "-n 2",
    "--new": "--new",
    "--bank": "--bank bank",
    "--wait": "--wait 1",
    "--format": "--format table",
}

_PROGRAM = "echo 0.5; exit 0"
_NEW_UNIT = """printf "{\\"response\\": 1, \\"costs\\": {\\"joules\\": 3}}" """.strip()
_RAN = (("session export out/run.jsonl --bank bank-2 --format csv", ""),)

_MOVED = {"--bank": "it says where the same bank lies; another is refused"}
_WAIT = {"--wait": "tests/cli/session/test_loop.py has two commands at one journal"}
_REPLAYED = ("random", "half-width", "threshold", "ability")
"""Modes of a replay beside its table; the others differ in options that it shares with `session start`."""
_SURE = [name for name in _MODES if name != "random"]


def _alike(mode, *options):
    """Options that have a say in a mode, whose few answers end alike for the value that is tried."""
    return {(mode, option): "these few answers end alike; in other modes they do not" for option in options}


CASES = {
    "session plan": Case(
        modes={
            "items": Mode("bank-2 -n 6 --format json"),
            "half-width": Mode("bank-2 --half-width 0.2 --format json", about=("--half-width",)),
        },
        values={
            "--jobs": "--jobs 2",
            "--n-items": "-n 7",
            "--half-width": "--half-width 0.25",
            "--target": "--target math",
            "--level": "--level 0.8",
            "--format": "--format table",
        },
        never={"--jobs": "numbers do not depend on the number of processes"},
    ),
    "session start": Case(
        modes={
            **{name: _start(words) for name, words in _MODES.items()},
            "long": _start(
                _LONG,
                about=("--of", "--half-width", "--better-than"),
                values={"--half-width": "--half-width 0.3", "--better-than": "--better-than m5 --confidence 0.6"},
            ),
            "sure": _start(_SURE_SOON, about=("--min-items",)),
        },
        values={
            "--jobs": "--jobs 2",
            **SESSION,
            "--output": "-o out/other.jsonl",
            "--model-id": "--model-id other",
            "--seed": "--seed 7",
        },
        no_effect={
            **no_chance(*_SURE),
            **_alike("v-optimal", "--of"),
            **_alike("d-optimal", "--n-start"),
            **_alike("min-cost", "--input-weight"),
            **_alike("half-width", "--of"),
            **_alike("threshold", "--of", "--half-width", "--at-most"),
            **_alike("ability", "--of"),
        },
        never={"--jobs": "numbers do not depend on the number of processes"},
        nowhere=ONE_ATTEMPT,
    ),
    "session ask": Case(
        modes={
            "begun": Mode("out/run.jsonl --bank bank-2", brings=("run.jsonl",)),
            "pending": Mode("out/asked.jsonl --bank bank-2", brings=("asked.jsonl",)),
        },
        values=_ASK,
        no_effect=settled("begun", "--new"),
        never=_WAIT,
        nowhere=_MOVED,
    ),
    "session tell": Case(
        modes={
            "response": Mode("out/run.jsonl --bank bank-2 math/0 --response 1", brings=("run.jsonl",)),
            "trials": Mode("out/run.jsonl --bank bank-2 math/0 --correct 2 --trials 4", brings=("run.jsonl",)),
            "failed": Mode("out/run.jsonl --bank bank-2 math/0 --failed", brings=("run.jsonl",)),
            "many": Mode("out/run.jsonl --bank bank-2 -", brings=("run.jsonl",), stdin=_ANSWERS),
            "a new unit": Mode(
                "out/run.jsonl --bank bank-2 math/0 --response 1 --cost joules=3",
                about=("--new-units",),
                brings=("run.jsonl",),
                codes=(1,),
            ),
        },
        no_effect={
            ("failed", "--failed"): "it is on already",
            **settled("response", "--new-units"),
            **settled("trials", "--new-units"),
            **settled("failed", "--new-units"),
            **settled("many", "--new-units"),
        },
        never=_WAIT,
        nowhere={**_MOVED, "--failed": "it is one of three answers, and two are refused"},
        values={
            "--new-units": "--new-units",
            "--response": "--response 0",
            "--correct": "--correct 1",
            "--trials": "--trials 5",
            "--cost": "--cost seconds=5",
            "--failed": "--failed",
            "--again": "--again",
            "--reason": "--reason timeout",
            "--bank": "--bank bank",
            "--wait": "--wait 1",
            "--format": "--format table",
        },
    ),
    "session extend": Case(
        modes={
            "items": Mode("out/run.jsonl --bank bank-2 --max-items 40", brings=("run.jsonl",), then=_LATER),
        },
        stops={("items", "--max-tokens"): "has no limit of tokens", ("items", "--max-cost"): "has no limit of seconds"},
        never=_WAIT,
        nowhere=_MOVED,
        values={
            "--max-items": "--max-items 41",
            "--max-tokens": "--max-tokens 1000",
            "--max-cost": "--max-cost seconds=100",
            "--bank": "--bank bank",
            "--wait": "--wait 1",
        },
    ),
    "session serve": Case(
        modes={"requests": Mode("out/run.jsonl --bank bank-2", brings=("run.jsonl",), stdin=_REQUESTS)},
        never=_WAIT,
        nowhere=_MOVED,
        values={"--new-units": "--new-units", "--bank": "--bank bank", "--wait": "--wait 1"},
    ),
    "session run": Case(
        modes={
            "json": Mode(
                f"out/run.jsonl --bank bank-2 --command '{_PROGRAM}' --shell --format csv",
                brings=("run.jsonl",),
                then=_RAN,
                about=("--command", "--pattern", "--exit-code", "--logs", "--bank", "--format"),
                values={"--exit-code": "--exit-code"},
            ),
            "words": Mode(
                "out/run.jsonl --bank bank-2 --command 'echo 0.25 #1' --pattern [0-9.]+$ --format csv",
                brings=("run.jsonl",),
                then=_RAN,
                about=("--shell",),
            ),
            "failing": Mode(
                "out/run.jsonl --bank bank-2 --command false --format csv",
                brings=("run.jsonl",),
                then=_RAN,
                codes=(1,),
                hears=True,
                about=("--retries", "--max-failures"),
            ),
            "slow": Mode(
                "out/run.jsonl --bank bank-2 --command 'sh -c \"sleep 0.4; echo 1\"' --format csv",
                brings=("run.jsonl",),
                then=_RAN,
                codes=(0, 1),
                about=("--timeout",),
            ),
            "a new unit": Mode(
                f"out/run.jsonl --bank bank-2 --command '{_NEW_UNIT}' --shell --format csv",
                brings=("run.jsonl",),
                then=_RAN,
                codes=(0, 1),
                about=("--new-units",),
            ),
        },
        values={
            "--command": "--command 'echo 0'",
            "--shell": "--shell",
            "--pattern": "--pattern '([01])'",
            "--exit-code": "--exit-code",
            "--timeout": "--timeout 0.001",
            "--logs": "--logs out/logs",
            "--retries": "--retries 0",
            "--max-failures": "--max-failures 3",
            "--new-units": "--new-units",
            "--jobs": "--jobs 2",
            "--wait": "--wait 1",
            "--bank": "--bank bank",
            "--format": "--format json",
            "--report": "--report out/page.html",
        },
        stops={("slow", "--timeout"): "Its time was up"},
        never={
            **_WAIT,
            **PAGES,
            "--jobs": "it changes how long a run takes; tests/harnesses/test_drive.py counts what runs",
        },
        nowhere=_MOVED,
    ),
    "session status": Case(
        modes={"answered": Mode("out/answered.jsonl --bank bank-2", brings=("answered.jsonl",))},
        values={"--bank": "--bank bank", "--format": "--format json", "--report": "--report out/page.html"},
        nowhere=_MOVED,
        never=PAGES,
    ),
    "session export": Case(
        modes={
            "printed": Mode("out/answered.jsonl --bank bank-2", brings=("answered.jsonl",)),
            "file": Mode("out/answered.jsonl --bank bank-2 -o out/a.parquet", brings=("answered.jsonl",)),
        },
        values={
            "--bank": "--bank bank",
            "--format": "--format json",
            "--output": "-o out/answers.parquet",
        },
        nowhere=_MOVED,
    ),
    "replay": Case(
        modes={
            "table": Mode(f"bank-2 one.csv {_FAST} --format csv"),
            **{name: _replay(_MODES[name]) for name in _REPLAYED},
            "d-optimal": _replay(_MODES["d-optimal"], about=("--criterion", "--of", "--cost", "--input-weight")),
            "sure": _replay(_SURE_SOON, about=("--min-items",)),
        },
        values={
            **SESSION,
            **ALLOWED,
            **COMMON,
            "--batch": "--batch 2",
            "--jobs": "--jobs 2",
            "--output": "-o out/asked.csv",
        },
        no_effect={
            **no_chance("table", *(name for name in _REPLAYED if name in _SURE)),
            **_alike("table", "--n-start"),
            **_alike("random", "--max-tokens"),
            **_alike("half-width", "--ability-error"),
            **_alike(
                "threshold",
                "--of",
                "--max-items",
                "--max-tokens",
                "--max-cost",
                "--half-width",
                "--ability-error",
                "--at-most",
                "--exclude",
            ),
            **_alike("ability", "--half-width", "--ability-error"),
        },
        never={**MIXED, "--jobs": "models end as they do in one process"},
    ),
}
