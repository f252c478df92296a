"""Cases of adaptive sessions, replays of recorded models, gates, and commands that call an evaluation harness."""

from tests.cli.contract.case import COMMON, JQ, MIXED, Case, each, mode, no_chance, none_lost, options

_SHORT = "--session rare.toml --criterion fisher --errors bounds --max-items 2 --max-cost seconds=6 --half-width 0.05"
"""Options of a session that is begun and run at once."""
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
_RAN = (("import out/run.jsonl -o out/ran.parquet --format csv", ""), ("info out/ran.parquet --format json", ""))


def _start(words, about="", values="", then=_LATER):
    """What is asked and estimated later counts, not the settings that the journal keeps."""
    return mode(f"bank-2 -o out/run.jsonl --model-id new {words}", about, values, unseen="run.jsonl", then=then)


def _of_run(words, about="", **more):
    return mode(f"out/run.jsonl --bank bank-2 {words}", about, brings="run.jsonl", **more)


def _replay(words, about="--session --criterion --cost --max-items --max-cost --half-width --seed"):
    """Two recorded models, who answered a part of the items."""
    return mode(f"bank-2 new.parquet {words} -o out/a.csv --format csv", about, codes=(0, 3))


_PROGRAM = "echo 0.5; exit 0"
_NEW_UNIT = """printf "{\\"response\\": 1, \\"costs\\": {\\"joules\\": 3}}" """.strip()
_SLOW = "'sh -c \"sleep 0.4; echo 1\"'"
_BY_COMMAND = (
    "--command 'echo 0' --shell --pattern '([01])' --exit-code --timeout 0.001 --logs out/logs --retries 0 "
    "--new-units --jobs 2"
)
_JOBS = {"--jobs": "it changes how long a run takes; tests/harnesses/test_drive.py counts what runs"}
"""Of commands that run items by a program."""
_MOVED = {"--bank": "it says where the same bank lies; another is refused"}
_SURE = [name for name in _MODES if name != "random"]

_SESSIONS = {
    "session start": Case(
        modes={
            **{name: _start(words) for name, words in _MODES.items()},
            "long": _start(_LONG, "--half-width --better-than", "--half-width 0.3 --better-than m5"),
            "lost": _start(
                _LONG,
                "--errors",
                then=(("session tell out/run.jsonl --bank bank-2 - --format json", _ANSWERS + _FAILED), _LATER[-1]),
            ),
        },
        values=f"{_SHORT} --predict law --cost output_tokens --target law --threshold 0.2 --better-than m5 "
        "--output out/other.jsonl --model-id other --seed 7",
        no_effect={
            **no_chance(*_SURE),
            **each("--half-width", "these few answers end alike; in other modes they do not", "threshold"),
            **none_lost(*_MODES),
        },
    ),
    "session ask": Case(
        modes={"begun": _of_run(""), "pending": mode("out/asked.jsonl --bank bank-2", brings="asked.jsonl")},
        values="--n-items 2 --new --bank bank --format table",
        no_effect=each("--new", "nothing is pending", "begun"),
        nowhere=_MOVED,
    ),
    "session tell": Case(
        modes={
            "response": _of_run("math/0 --response 1"),
            "trials": _of_run("math/0 --correct 2 --trials 4"),
            "failed": _of_run("math/0 --failed"),
            "many": _of_run("-", stdin=_ANSWERS),
            "a new unit": _of_run("math/0 --response 1 --cost joules=3", "--new-units", codes=(1,)),
        },
        no_effect={
            ("failed", "--failed"): "it is on already",
            **each("--new-units", "all units are known", "response", "trials", "failed", "many"),
        },
        nowhere={**_MOVED, "--failed": "it is one of three answers, and two are refused"},
        values="--new-units --response 0 --correct 1 --trials 5 --cost seconds=5 --failed --again --bank bank "
        "--format table",
    ),
    "session extend": Case(
        modes={"items": _of_run("--max-items 40", then=_LATER)},
        stops={("items", "--max-cost"): "limited by items"},
        nowhere=_MOVED,
        values="--max-items 41 --max-cost seconds=100 --bank bank",
    ),
    "session serve": Case({"requests": _of_run("", stdin=_REQUESTS)}, "--new-units --bank bank", nowhere=_MOVED),
    "session run": Case(
        modes={
            "json": _of_run(
                f"--command '{_PROGRAM}' --shell --format csv",
                "--command --pattern --exit-code --logs --bank --format",
                then=_RAN,
            ),
            "words": _of_run("--command 'echo 0.25 #1' --pattern [0-9.]+$ --format csv", "--shell", then=_RAN),
            "failing": _of_run("--command false --format csv", "--retries", then=_RAN, codes=(1,), hears=True),
            "slow": _of_run(f"--command {_SLOW} --format csv", "--timeout", then=_RAN, codes=(0, 1)),
            "a new unit": _of_run(
                f"--command '{_NEW_UNIT}' --shell --format csv", "--new-units", then=_RAN, codes=(0, 1)
            ),
        },
        values=f"{_BY_COMMAND} --bank bank --format json",
        stops={("slow", "--timeout"): "Its time was up"},
        never=_JOBS,
        nowhere=_MOVED,
    ),
    "session status": Case(
        {"answered": mode("out/answered.jsonl --bank bank-2", brings="answered.jsonl")},
        "--bank bank --format json",
        nowhere=_MOVED,
    ),
    "replay": Case(
        modes={
            "table": mode(f"bank-2 one.csv {_FAST} --format csv"),
            # the other modes differ in options that a replay shares with `session start`
            **{name: _replay(_MODES[name]) for name in ("random", "half-width")},
            "d-optimal": _replay(_MODES["d-optimal"], "--session --cost"),
        },
        values=f"{COMMON} --session rare.toml --criterion fisher --cost output_tokens --max-items 2 "
        "--max-cost seconds=6 --half-width 0.05 --allow-mixed-prompts --batch 2 --jobs 2 --output out/asked.csv",
        no_effect=no_chance("table", "half-width"),
        never={
            "--allow-mixed-prompts": MIXED["--allow-mixed-prompts"],
            "--jobs": "models end as they do in one process",
        },
    ),
}


def _by_command(command, about, codes=(0, 1, 3), **more):
    words = f"out/gate --command {command} --model-id new --format csv"
    return mode(words, about, brings="gate", codes=codes, **more)


_OUTSIDE = each("--report --junit --github", "pages, JUnit's XML and annotations have tests of their own")
_NO_BANK = {"--match": "it is refused without a bank"}
_RULE = "--tolerance 0.01 --false-alarm 0.2 --miss 0.2 --both-sides --cluster scenario"
_TWO = "alone.csv another.csv --margin 0.9"
_GATES = {
    "gate verdict": Case(
        modes={
            "two": mode(f"{_TWO} --format csv", codes=(0, 1, 3)),
            "bank": mode(f"{_TWO} --bank bank --format csv", "--selection --match", codes=(0, 1, 3)),
            "lost": mode("alone.csv alone-lost.csv --margin 0.9 --format csv", "--errors --max-lost", codes=(0, 1, 3)),
            "self-test": mode("alone.csv another.csv --self-test --format csv", "--format"),
        },
        values=f"--errors wrong --max-lost 0.01 --bank bank --selection selection.json --margin 0.01 {_RULE} "
        "--estimand run --self-test --repeats --match hash --allow-mixed-prompts --jq . --report out/page "
        "--junit out/gate.xml --github --format json",
        never={**MIXED, **_OUTSIDE, "--repeats": "nothing is repeated here; tests/gating/test_noise.py sees it"},
        no_effect={**none_lost("two"), ("two", "--max-lost"): "no answer was lost"},
        nowhere=_NO_BANK,
    ),
    "gate start": Case(
        modes={
            "chance": mode("alone.csv --margin 0.3 -o out/gate --format json", unseen="baseline.parquet"),
            "lost": mode(
                "alone-lost.csv --margin 0.3 -o out/gate --format json", "--errors", unseen="baseline.parquet"
            ),
        },
        values=f"--errors wrong --max-lost 0.01 --output out/other --bank bank --margin 0.2 {_RULE} "
        "--estimand questions --max-items 28 --ids swe-bench --jq . --match hash --seed 1 --format csv",
        never={**JQ, "--ids": "JSON has ids as they are; tests/harnesses/test_id_forms.py has all forms"},
        nowhere=_NO_BANK,
    ),
    "gate next": Case(
        modes={
            "results": mode("gate another.csv --format csv", "--format --match", codes=(0, 1, 3)),
            "lost": mode("gate alone-lost.csv --format csv", "--errors", codes=(5,)),
            "json": _by_command(f"'{_PROGRAM}' --shell", "--command --pattern --exit-code --logs --model-id --match"),
            "words": _by_command("'echo 0.25 #1' --pattern [0-9.]+$", "--shell"),
            "failing": _by_command("false", "--retries", (5,), hears=True),
            "slow": _by_command(_SLOW, "--timeout"),
            "a new unit": _by_command(f"'{_NEW_UNIT}' --shell", "--new-units", (5,)),
        },
        values=f"--errors wrong {_BY_COMMAND} --model-id other --ids swe-bench --jq . --match hash "
        "--allow-mixed-prompts --report out/page --junit out/gate.xml --github --format json",
        stops={("slow", "--timeout"): "Its time was up"},
        never={**_JOBS, **MIXED, **_OUTSIDE, "--ids": "with these few items the first stage holds all"},
        nowhere=_NO_BANK,
    ),
}
_RUN = (
    f"{_SHORT} --output out/other --selection selection.json --n-items 4 --adaptive --gate gate --batch 2 --dry-run "
    "--ignore-prompts --format json --junit out/gate.xml --github"
)


def _harness(words, reason, own):
    """A command of a harness that is not installed where these tests run."""
    values, modes = f"{_RUN} {own}", {"no items": mode(f"bank {words} -o out/run", codes=(2,))}
    return Case(modes, values, never=dict.fromkeys(options(values), reason))


CASES = {
    **_SESSIONS,
    **_GATES,
    "run harbor": _harness(
        "tasks@1", "tests/harnesses/test_harbor.py has a stand-in for Harbor", "--model-id renamed --attempts 3"
    ),
    "run lm-eval": _harness("", "tests/harnesses/lm_eval runs it", "--match hash --model-id renamed --import json"),
    "run inspect": _harness("toy.py", "tests/harnesses/inspect runs it", "--match hash --task-arg size=4"),
}
