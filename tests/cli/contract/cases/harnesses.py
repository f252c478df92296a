"""Cases of commands that call an evaluation harness, which is not installed where these tests run."""

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.sessions import SHORT

RUN = ("--session", "--criterion", "--errors", "--max-items", "--max-cost", "--half-width")
"""Options of a session that is begun and run at once."""
_NOT_HERE = "it needs lm_eval; tests/harnesses/lm_eval runs it there"
_RUN = {
    **{name: SHORT[name] for name in RUN},
    **options(
        "--output out/other --selection selection.json --n-items 4 --adaptive --gate gate --batch 2 --match hash "
        "--dry-run --ignore-prompts --format json --junit out/gate.xml --github"
    ),
}
_RUN_LM_EVAL = {**_RUN, **options("--model-id renamed --import json")}
_RUN_INSPECT = {**_RUN, **options("--task-arg size=4")}
_RUN_HARBOR = {**_RUN, **options("--model-id renamed --attempts 3")}
del _RUN_HARBOR["--match"]

CASES = {
    "run harbor": Case(
        modes={"no items": Mode("bank tasks@1 -o out/run", codes=(2,))},
        values=_RUN_HARBOR,
        never=dict.fromkeys(_RUN_HARBOR, "it needs Harbor; tests/harnesses/test_harbor.py has a stand-in"),
    ),
    "run lm-eval": Case(
        modes={"no items": Mode("bank -o out/run", codes=(2,))},
        values=_RUN_LM_EVAL,
        never=dict.fromkeys(_RUN_LM_EVAL, _NOT_HERE),
    ),
    "run inspect": Case(
        modes={"no items": Mode("bank toy.py -o out/run", codes=(2,))},
        values=_RUN_INSPECT,
        never=dict.fromkeys(_RUN_INSPECT, "it needs inspect_ai; tests/harnesses/inspect runs it there"),
    ),
}
