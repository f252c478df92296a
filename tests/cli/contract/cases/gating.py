"""Cases of gates, whether a candidate is as good as a baseline."""

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.reading import ERRORS, JQ, MIXED, none_lost
from tests.cli.contract.cases.sessions import BY_COMMAND, JOBS, NEW_UNIT, PROGRAM


def _by_command(command, *about, codes=(0, 1, 3), **more):
    words = f"out/gate --command {command} --model-id new --format csv"
    return Mode(words, brings=("gate",), codes=codes, about=about, **more)


_OUTSIDE = "pages, JUnit's XML and annotations have tests of their own"
_FEW = "with these few items the first stage holds all"

CASES = {
    "gate verdict": Case(
        modes={
            "two": Mode("alone.csv another.csv --margin 0.9 --format csv", codes=(0, 1, 3)),
            "bank": Mode(
                "alone.csv another.csv --bank bank --margin 0.9 --format csv",
                about=("--selection", "--match"),
                codes=(0, 1, 3),
            ),
            "lost": Mode(
                "alone.csv alone-lost.csv --margin 0.9 --format csv", codes=(0, 1, 3), about=("--errors", "--max-lost")
            ),
            "self-test": Mode("alone.csv another.csv --self-test --format csv", about=("--format",)),
        },
        values=ERRORS
        | options(
            "--max-lost 0.01 --bank bank --selection selection.json --margin 0.01 --tolerance 0.01 --false-alarm 0.2 "
            "--miss 0.2 --both-sides --estimand run --cluster scenario --self-test --repeats --match hash "
            "--allow-mixed-prompts --jq . --report out/page --junit out/gate.xml --github --format json"
        ),
        never={
            **MIXED,
            "--report": _OUTSIDE,
            "--junit": _OUTSIDE,
            "--github": _OUTSIDE,
            "--repeats": "nothing is repeated here; tests/gating/test_noise.py sees it",
        },
        no_effect={**none_lost("two"), ("two", "--max-lost"): "no answer was lost"},
        nowhere={"--match": "it is refused without a bank"},
    ),
    "gate start": Case(
        modes={
            "chance": Mode("alone.csv --margin 0.3 -o out/gate --format json", unseen=("baseline.parquet",)),
            "lost": Mode(
                "alone-lost.csv --margin 0.3 -o out/gate --format json",
                unseen=("baseline.parquet",),
                about=("--errors",),
            ),
        },
        values=ERRORS
        | options(
            "--max-lost 0.01 --output out/other --bank bank --margin 0.2 --tolerance 0.01 --false-alarm 0.2 "
            "--miss 0.2 --both-sides --estimand questions --cluster scenario --max-items 28 "
            "--ids swe-bench --jq . --match hash --seed 1 "
            "--format csv"
        ),
        never={**JQ, "--ids": "JSON has ids as they are; tests/harnesses/test_id_forms.py has all forms"},
        nowhere={"--match": "it is refused without a bank"},
    ),
    "gate next": Case(
        modes={
            "results": Mode("gate another.csv --format csv", codes=(0, 1, 3), about=("--format", "--match")),
            "lost": Mode("gate alone-lost.csv --format csv", codes=(5,), about=("--errors",)),
            "json": _by_command(
                f"'{PROGRAM}' --shell", "--command", "--pattern", "--exit-code", "--logs", "--model-id", "--match"
            ),
            "words": _by_command("'echo 0.25 #1' --pattern [0-9.]+$", "--shell"),
            "failing": _by_command("false", "--retries", codes=(5,), hears=True),
            "slow": _by_command("'sh -c \"sleep 0.4; echo 1\"'", "--timeout"),
            "a new unit": _by_command(f"'{NEW_UNIT}' --shell", "--new-units", codes=(5,)),
        },
        values=ERRORS
        | options(
            f"{BY_COMMAND} --model-id other --ids swe-bench --jq . --match hash --allow-mixed-prompts "
            "--report out/page --junit out/gate.xml --github --format json"
        ),
        stops={("slow", "--timeout"): "Its time was up"},
        never={**JOBS, **MIXED, "--ids": _FEW, "--report": _OUTSIDE, "--junit": _OUTSIDE, "--github": _OUTSIDE},
        nowhere={"--match": "it is refused without a bank"},
    ),
}
