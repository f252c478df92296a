"""Cases of commands that call an evaluation harness, which is not installed where these tests run."""

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.sessions import SESSION

_NOT_HERE = "it needs lm_eval; tests/harnesses/lm_eval runs it there"
_RUN = {
    "--output": "-o out/other",
    "--selection": "--selection selection.json",
    "--n-items": "-n 4",
    "--adaptive": "--adaptive",
    "--batch": "--batch 2",
    "--stages": "--stages 2",
    "--dry-run": "--dry-run",
    "--ignore-prompts": "--ignore-prompts",
    "--format": "--format json",
    "--seed": "--seed 1",
    **SESSION,
}
_RUN_LM_EVAL = {**_RUN, "--model-id": "--model-id renamed", "--import": "--import json"}
_RUN_INSPECT = {**_RUN, "--scorer": "--scorer match", "--task-arg": "--task-arg size=4"}
_EXPORT = {
    "--selection": "--selection selection.json",
    "--output": "-o out/tasks",
    "--name": "--name small",
    "--include-path": "--include-path logs",
    "--include-data": "--include-data",
}

CASES = {
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
    "export lm-eval-tasks": Case(
        modes={"no selection": Mode("bank -o out/tasks", codes=(2,))},
        values=_EXPORT,
        never=dict.fromkeys(_EXPORT, _NOT_HERE),
    ),
}
