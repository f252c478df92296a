"""Cases of commands that change banks, or show how they changed."""

from dataclasses import replace

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.reading import MIXED

_WRITING = options("--output out/other --force --format csv")
_IDLE = {("new", "--force"): "nothing stands there"}
_MIXED = {"--allow-mixed-prompts": "--allow-mixed-prompts"}
_LOG = (("info out/made --log --format json", ""),)


def _writing(words, **values):
    """A bank counts by its history; its files are compared, too."""
    modes = {
        "new": Mode(f"{words} -o out/made", then=_LOG),
        "replacing": Mode(f"{words} -o out/two-bank", about=("--force",), brings=("two-bank",), codes=(1,)),
    }
    never = {name: why for name, why in MIXED.items() if name in values}
    return Case(modes=modes, values={**_WRITING, **values}, no_effect=dict(_IDLE), never=never)


def _with_dry_run(words, **values):
    case = _writing(words, **values)
    dry = Mode(f"{words} --dry-run", about=("--format", "--how", "--output", "--status"))
    why = {"--dry-run": "a bank that is to be written is refused with it"}
    return replace(case, modes={**case.modes, "dry run": dry}, nowhere=why)


CASES = {
    "bank retire": _writing(
        "named-bank math/0 --reason key",
        **{"--reason": "--reason noise", "--status": "--status suspect", "--label": "--label clean"},
    ),
    "bank note": _writing("named-bank text", **{"--name": "--name other"}),
    "bank add-items": _with_dry_run(
        "bank late.csv",
        **_MIXED,
        **{"--dry-run": "--dry-run"},
        **{"--status": "--status field-test", "--how": "--how random"},
    ),
    "bank add-models": _writing(
        "bank one.csv", **_MIXED, **{"--how": "--how random", "--selection": "--selection random.json"}
    ),
    "bank add-scores": _writing("named-bank models.csv --score size", **{"--score": "--score number"}),
    "bank recalibrate": _writing("bank one.csv --how random", **_MIXED, **{"--how": "--how fixed"}),
}
