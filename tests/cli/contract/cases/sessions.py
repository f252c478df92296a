"""Cases of adaptive sessions, and of replays of recorded models."""

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.reading import COMMON, MIXED, no_chance, none_lost, settled

SHORT = options(
    "--predict law "
    "--session rare.toml --criterion fisher --cost output_tokens --target law --max-items 2 --max-cost seconds=6 "
    "--half-width 0.05 --errors bounds"
)
"""Options of sessions that are begun and run at once."""
SESSION = {**SHORT, **options("--threshold 0.2 --better-than m5")}
_FAST = "--max-items 4 --session fast.toml"
_LONG = "--max-items 12 --session fast.toml"
_MODES = {
    "v-optimal": _FAST,
    "d-optimal": "--max-items 4 --session d-optimal.toml --cost tokens",
    "random": "--max-items 4 --session random.toml",
    "half-width": f"{_FAST} --half-width 0.25",
    "threshold": "--max-items 4 --session sure-soon.toml",
}
_REQUESTS = """{"request": "tell", "answers": [{"item_id": "math/0", "response": 1, "costs": {"joules": 3}}]}
{"request": "scores"}
"""
_ANSWERS = "".join(
    f'{{"item_id": "{scenario}/{j}", "response": {j % 2}, "costs": {{"seconds": {1 + j}}}}}\n'
    for j, scenario in zip(range(6), ("math", "code", "law") * 2, strict=True)
)
_FAILED = '{"item_id": "law/8", "failed": true, "reason": "timeout"}\n'
_LATER = (
    ("session ask out/run.jsonl --bank bank-2 -n 3 --format ids", ""),
    ("session tell out/run.jsonl --bank bank-2 - --format json", _ANSWERS),
    ("session ask out/run.jsonl --bank bank-2 --new -n 3 --format ids", ""),
    ("session status out/run.jsonl --bank bank-2 --format json", ""),
)


def _start(words, **more):
    """What is asked and estimated later counts, not the settings that the journal keeps."""
    return Mode(f"bank-2 -o out/run.jsonl --model-id new {words}", then=_LATER, unseen=("run.jsonl",), **more)


_REPLAY = {
    name: SESSION[name] for name in ("--session", "--criterion", "--cost", "--max-items", "--max-cost", "--half-width")
}


def _replay(words, about=(*_REPLAY, "--seed")):
    """Two recorded models, who answered a part of the items."""
    return Mode(f"bank-2 new.parquet {words} -o out/a.csv --format csv", codes=(0, 3), about=about)


_ASK = options("--n-items 2 --new --bank bank --format table")

PROGRAM = "echo 0.5; exit 0"
NEW_UNIT = """printf "{\\"response\\": 1, \\"costs\\": {\\"joules\\": 3}}" """.strip()
BY_COMMAND = (
    "--command 'echo 0' --shell --pattern '([01])' --exit-code --timeout 0.001 --logs out/logs --retries 0 "
    "--new-units --jobs 2"
)
JOBS = {"--jobs": "it changes how long a run takes; tests/harnesses/test_drive.py counts what runs"}
"""Of commands that run items by a program."""
_RAN = (("import out/run.jsonl -o out/ran.parquet --format csv", ""), ("info out/ran.parquet --format json", ""))

_MOVED = {"--bank": "it says where the same bank lies; another is refused"}
_REPLAYED = ("random", "half-width")
"""Modes of a replay beside its table; the others differ in options that it shares with `session start`."""
_SURE = [name for name in _MODES if name != "random"]


def _alike(mode, *options):
    """Options that have a say in a mode, whose few answers end alike for the value that is tried."""
    return {(mode, option): "these few answers end alike; in other modes they do not" for option in options}


CASES = {
    "session start": Case(
        modes={
            **{name: _start(words) for name, words in _MODES.items()},
            "long": _start(
                _LONG,
                about=("--half-width", "--better-than"),
                values={"--half-width": "--half-width 0.3", "--better-than": "--better-than m5"},
            ),
            "lost": Mode(
                f"bank-2 -o out/run.jsonl --model-id new {_LONG}",
                about=("--errors",),
                then=(("session tell out/run.jsonl --bank bank-2 - --format json", _ANSWERS + _FAILED), _LATER[-1]),
                unseen=("run.jsonl",),
            ),
        },
        values={**SESSION, **options("--output out/other.jsonl --model-id other --seed 7")},
        no_effect={**no_chance(*_SURE), **_alike("threshold", "--half-width"), **none_lost(*_MODES)},
    ),
    "session ask": Case(
        modes={
            "begun": Mode("out/run.jsonl --bank bank-2", brings=("run.jsonl",)),
            "pending": Mode("out/asked.jsonl --bank bank-2", brings=("asked.jsonl",)),
        },
        values=_ASK,
        no_effect=settled("begun", "--new"),
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
        nowhere={**_MOVED, "--failed": "it is one of three answers, and two are refused"},
        values=options(
            "--new-units --response 0 --correct 1 --trials 5 --cost seconds=5 --failed --again "
            "--bank bank --format table"
        ),
    ),
    "session extend": Case(
        modes={"items": Mode("out/run.jsonl --bank bank-2 --max-items 40", brings=("run.jsonl",), then=_LATER)},
        stops={("items", "--max-cost"): "limited by items"},
        nowhere=_MOVED,
        values=options("--max-items 41 --max-cost seconds=100 --bank bank"),
    ),
    "session serve": Case(
        modes={"requests": Mode("out/run.jsonl --bank bank-2", brings=("run.jsonl",), stdin=_REQUESTS)},
        nowhere=_MOVED,
        values=options("--new-units --bank bank"),
    ),
    "session run": Case(
        modes={
            "json": Mode(
                f"out/run.jsonl --bank bank-2 --command '{PROGRAM}' --shell --format csv",
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
                about=("--retries",),
            ),
            "slow": Mode(
                "out/run.jsonl --bank bank-2 --command 'sh -c \"sleep 0.4; echo 1\"' --format csv",
                brings=("run.jsonl",),
                then=_RAN,
                codes=(0, 1),
                about=("--timeout",),
            ),
            "a new unit": Mode(
                f"out/run.jsonl --bank bank-2 --command '{NEW_UNIT}' --shell --format csv",
                brings=("run.jsonl",),
                then=_RAN,
                codes=(0, 1),
                about=("--new-units",),
            ),
        },
        values=options(f"{BY_COMMAND} --bank bank --format json"),
        stops={("slow", "--timeout"): "Its time was up"},
        never=JOBS,
        nowhere=_MOVED,
    ),
    "session status": Case(
        modes={"answered": Mode("out/answered.jsonl --bank bank-2", brings=("answered.jsonl",))},
        values=options("--bank bank --format json"),
        nowhere=_MOVED,
    ),
    "replay": Case(
        modes={
            "table": Mode(f"bank-2 one.csv {_FAST} --format csv"),
            **{name: _replay(_MODES[name]) for name in _REPLAYED},
            "d-optimal": _replay(_MODES["d-optimal"], about=("--session", "--cost")),
        },
        values={
            **_REPLAY,
            "--allow-mixed-prompts": "--allow-mixed-prompts",
            **COMMON,
            **options("--batch 2 --jobs 2 --output out/asked.csv"),
        },
        no_effect={**no_chance("table", *(name for name in _REPLAYED if name in _SURE))},
        never={
            "--allow-mixed-prompts": MIXED["--allow-mixed-prompts"],
            "--jobs": "models end as they do in one process",
        },
    ),
}
