"""Cases of commands that change banks, or show how they changed."""

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.reading import MIXED

_WRITING = {
    "--output": "-o out/other",
    "--force": "--force",
    "--format": "--format csv",
}
_IDLE = {("new", "--force"): "nothing stands there"}
_LORD = "--method stocking-lord"
_MIXED = {"--allow-mixed-prompts": "--allow-mixed-prompts"}
_LOG = (("bank log out/made --format json", ""),)


def _writing(words, **values):
    """A bank counts by its history; its files are compared, too."""
    modes = {
        "new": Mode(f"{words} -o out/made", then=_LOG),
        "replacing": Mode(f"{words} -o out/two-bank", about=("--force",), brings=("two-bank",), codes=(1,)),
    }
    never = {name: why for name, why in MIXED.items() if name in values}
    return Case(modes=modes, values={**_WRITING, **values}, no_effect=dict(_IDLE), never=never)


CASES = {
    "bank retire": _writing(
        "named-bank math/0 --reason key",
        **{"--reason": "--reason noise", "--status": "--status suspect", "--label": "--label clean"},
    ),
    "bank restore": _writing("retired-bank math/0 --reason right", **{"--reason": "--reason fine"}),
    "bank merge": _writing("retired-bank named-bank", **{"--note": "--note both"}),
    "bank note": _writing("named-bank text", **{"--name": "--name other"}),
    "bank link": Case(
        modes={"link": Mode("bank late.csv")},
        values={"--method": _LORD, **_MIXED, "--format": "--format json"},
        never=MIXED,
    ),
    "bank add-items": _writing(
        "bank late.csv",
        **_MIXED,
        **{"--method": _LORD, "--status": "--status field-test", "--how": "--how random", "--note": "--note may"},
    ),
    "bank add-models": _writing(
        "bank one.csv",
        **_MIXED,
        **{"--how": "--how random", "--selection": "--selection random.json", "--note": "--note may"},
    ),
    "bank add-scores": _writing(
        "named-bank models.csv --score size", **{"--score": "--score number", "--note": "--note may"}
    ),
    "bank recalibrate": _writing(
        "bank one.csv --how random",
        **_MIXED,
        **{"--parameters": "--parameters all", "--how": "--how fixed", "--note": "--note may"},
    ),
    "bank log": Case(modes={"log": Mode("retired-bank")}, values={"--format": "--format json"}),
    "bank diff": Case(modes={"diff": Mode("named-bank retired-bank")}, values={"--format": "--format json"}),
}
