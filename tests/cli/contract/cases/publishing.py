"""Commands that bring banks to others, and others' banks here."""

from tests.cli.contract.case import Case, Mode, options

_HUB = "it needs the Hub: tests/publishing/test_hub.py sees it at work against a stand-in"
_OPTIONS_OF_PUSH = (*("--private", "--no-responses", "--license", "--include-column", "--drop-column", "--format"),)

_BUILT = "it writes into the user's folder: tests/cli/test_ready_banks.py sees it at work"
_OPTIONS_OF_BUILD = ("--from", "--force", "--format")

CASES = {
    "bank list": Case(modes={"list": Mode("")}, values=options("--format json")),
    "bank build": Case(
        modes={"unknown": Mode("nothing", codes=(2,))},
        values=dict.fromkeys(_OPTIONS_OF_BUILD, ""),
        never=dict.fromkeys(_OPTIONS_OF_BUILD, _BUILT),
    ),
    "export ids": Case(
        modes={"printed": Mode("bank --selection selection.json", values={"--selection": "--selection random.json"})},
        values=options("--selection selection.json --form harbor"),
    ),
    "publish-tiny": Case(
        modes={
            "chosen here": Mode("bank -n 9 -o out/tiny"),
            "given": Mode(
                "bank --selection selection.json -o out/tiny", values={"--selection": "--selection random.json"}
            ),
        },
        values=options(
            "--n-items 12 --selection selection.json --output out/other --license mit "
            "--include-column nothing --drop-column n_options --force --format json"
        ),
        stops={**{(mode, "--include-column"): "got 'nothing'" for mode in ("chosen here", "given")}},
        never={"--force": "tests/publishing/test_tiny.py sees it replace what is there"},
    ),
    "push": Case(
        modes={"hub": Mode("bank hf:me/bank", codes=(1,))},
        values=dict.fromkeys(_OPTIONS_OF_PUSH, ""),
        never=dict.fromkeys(_OPTIONS_OF_PUSH, _HUB),
    ),
    "pull": Case(
        modes={"hub": Mode("hf:me/bank -o out/bank", codes=(1,))},
        values=dict.fromkeys(("--output", "--force"), ""),
        never=dict.fromkeys(("--output", "--force"), _HUB),
    ),
}
