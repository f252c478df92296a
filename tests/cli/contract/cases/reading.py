"""Options of reading responses, which many commands share."""

JQ = {"--jq": "tests/cli/test_import_jq.py has JSON of other shapes"}
ALLOWED = {"--allow-mixed-prompts": "--allow-mixed-prompts", "--jq": "--jq ."}
MIXED = {"--allow-mixed-prompts": "tests/readers/test_contents.py has logs of other prompts", **JQ}
MATCH = {"--match": "--match hash"}
MATCHED = {"--match": "tests/harnesses find items in logs of tasks that the bank does not know"}
PAGES = {"--report": "tests/cli writes the page of every command that has one"}
ONE_ATTEMPT = {
    "--estimand": "a score over repeated runs is refused, which names the option: no model attempted items repeatedly"
}
ERRORS = {"--errors": "--errors wrong"}
COMMON = {"--seed": "--seed 7", "--format": "--format json"}


def settled(mode, *options):
    """Options that decide on something which the data of a mode have none of; another mode's have it."""
    return {(mode, option): "these data have nothing that it decides on" for option in options}


def none_lost(*modes):
    """Modes in which no answer was lost."""
    return {(mode, "--errors"): "no answer was lost" for mode in modes}


def no_chance(*modes):
    """Modes in which nothing is left to chance."""
    return {(mode, "--seed"): "nothing is left to chance" for mode in modes}
