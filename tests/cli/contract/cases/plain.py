"""Cases of `itembank` itself and of commands that need no bank."""

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.reading import COMMON, LEFT_OUT, MEMORY, MIXED, SKIPPED

_ROOT = Case(
    modes={
        "a command": Mode("info bank", hears=True),
        "a note": Mode("import py-irt.jsonl -o out/r.parquet", about=("--quiet", "--config"), hears=True),
        "an error": Mode("info logs", codes=(1,), hears=True, about=("--debug", "--quiet", "--config")),
    },
    values={
        "--version": "--version",
        "--config": "--config defaults.toml",
        "--debug": "--debug",
        "--quiet": "--quiet",
    },
    no_effect={
        ("a command", "--debug"): "nothing fails",
        ("an error", "--quiet"): "an error is no note",
        ("an error", "--config"): "nothing is printed that it could lay out",
    },
)

_ROWS = "--rows rows --column item_id=doc.id --column response=marks.acc --column model_id=/name"
_OF_LOGS = ("--metric", "--filter", "--response", "--rename", "--groups", "--choice-scores", "--model-id-from")
_OF_TABLES = ("--column", "--rows", "--true-value", "--max-response", "--prefix-scenario", "--names")
_IMPORT = Case(
    nowhere=MEMORY,
    modes={
        "long": Mode(
            "repeated.csv -o out/r.parquet --repeats last",
            about=(
                *("--output", "--as", "--models", "--items", "--repeats", "--format", "--errors", "--ignore-content"),
                *(*_OF_LOGS, *_OF_TABLES),
            ),
        ),
        "gaps": Mode("gaps.csv -o out/r.parquet", about=("--complete", "--scenario")),
        "an empty model": Mode("empty.csv -o out/r.parquet", about=("--drop-empty",), codes=(1,)),
        "one model": Mode("nameless.csv -o out/r.parquet --model-id m", about=("--model-id",)),
        "response file": Mode("past.parquet -o out/r.parquet", about=("--names", *_OF_LOGS)),
        "logs": Mode(
            "logs -o out/r.parquet",
            about=("--task", "--exclude-task", *_OF_LOGS, *_OF_TABLES),
            values={"--max-response": "--max-response 2"},
        ),
        "options": Mode(
            "logs -o out/r.parquet --response probability",
            about=("--response",),
            values={"--response": "--response probability-per-character"},
        ),
        "errors": Mode("reports -o out/r.parquet", about=("--errors", "--metric", "--model-id-from")),
        "unscored": Mode("inspect-gaps -o out/r.parquet", about=("--skip-unusable",), codes=(1,)),
        "changed": Mode("inspect-changed -o out/r.parquet", about=("--ignore-content",), codes=(1,)),
        "JSON": Mode(
            f"deep.json -o out/r.parquet --as json {_ROWS}",
            about=("--rows", "--column", "--true-value", "--task", "--prefix-scenario", *_OF_LOGS),
            values={"--column": "--column response=marks.other", "--rows": "--rows more"},
        ),
    },
    values={
        "--output": "-o out/other.parquet",
        "--as": "--as wide-items",
        "--models": "--models models.csv",
        "--items": "--items items.csv",
        "--scenario": "--scenario quiz",
        "--max-response": "--max-response 2",
        "--model-id": "--model-id renamed",
        "--model-id-from": "--model-id-from args",
        "--repeats": "--repeats mean",
        "--max-memory": "--max-memory 1",
        "--complete": "--complete",
        "--drop-empty": "--drop-empty",
        "--skip-unusable": "--skip-unusable",
        "--exclude-file": "--exclude-file other",
        "--names": "--names names.csv",
        "--true-value": "--true-value 0",
        "--column": "--column response=other",
        "--rows": "--rows rows",
        "--prefix-scenario": "--prefix-scenario",
        "--metric": "--metric acc_norm",
        "--filter": "--filter strict",
        "--response": "--response accuracy",
        "--choice-scores": "--choice-scores out/scores.csv",
        "--task": "--task quiz",
        "--exclude-task": "--exclude-task quiz",
        "--allow-mixed-prompts": "--allow-mixed-prompts",
        "--rename": "--rename quiz=puzzle",
        "--groups": "--groups",
        "--errors": "--errors wrong",
        "--ignore-content": "--ignore-content",
        "--jobs": "--jobs 2",
        "--format": "--format json",
    },
    never={**MIXED, **LEFT_OUT, "--jobs": "responses do not depend on the number of processes"},
    stops={
        ("long", "--as"): "must hold the responses of a model",
        ("gaps", "--complete"): "every model must have a response to every item",
    },
)
_DOWNLOAD = Case(
    nowhere={
        **dict.fromkeys(("--model", "--only", "--into"), "tests/readers/public fetches from a server on this machine"),
        "--drop-empty": "these stores are complete",
    },
    modes={
        "alpaca": Mode(
            "alpaca-eval --from alpaca -o out/r.parquet",
            about=("--output", "--models", "--items", "--metric", "--errors", "--list", "--format", "--from"),
        ),
        "bfcl": Mode("bfcl --from bfcl -o out/r.parquet", about=("--from", "--only", "--model", "--into", "--metric")),
        "swe-bench": Mode(
            "swebench-verified --from swe --items instances.jsonl -o out/r.parquet",
            about=("--errors", "--items"),
            values={"--items": "--items instances-2.jsonl"},
        ),
    },
    values={
        "--output": "-o out/other.parquet",
        "--items": "--items items.csv",
        "--models": "--models reports.csv",
        "--list": "--list",
        "--from": "--from bfcl-more",
        "--into": "--into out/store",
        "--model": "--model a",
        "--only": "--only x",
        "--metric": "--metric other",
        "--errors": "--errors missing",
        "--skip-unusable": "--skip-unusable",
        "--drop-empty": "--drop-empty",
        "--format": "--format json",
    },
    never=SKIPPED,
    stops={
        ("alpaca", "--from"): "holds no annotations of AlpacaEval",
        ("alpaca", "--items"): "is in the table of items",
    },
)
_SIMULATE = Case(
    modes={"data": Mode("-o out/r.parquet --models 5 --items 40 --tasks 3")},
    values={
        "--output": "-o out/other.parquet",
        "--models": "--models 6",
        "--items": "--items 41",
        "--tasks": "--tasks 4",
        "--dims": "--dims 2",
        "--guessing": "--guessing 0.3",
        "--missing": "--missing 0.2",
        "--costs": "--no-costs",
        **COMMON,
    },
)
_NAMES = Case(
    modes={"two files": Mode("past.csv renamed.csv -o out/names.csv --format csv")},
    values={"--output": "-o out/other.csv", "--least": "--least 1", "--format": "--format json"},
)
_EEE = Case(
    modes={"records": Mode("estimates.json -o out/records --organization us --timestamp 1")},
    values={
        "--output": "-o out/other",
        "--organization": "--organization them",
        "--relationship": "--relationship first_party",
        "--timestamp": "--timestamp 2",
        "--format": "--format json",
    },
)
_DIMENSIONS = Case(
    modes={
        "table": Mode("flipped.csv --dims 1 --method map --format csv"),
    },
    values={
        **COMMON,
        "--dims": "--dims 1,2",
        "--method": "--method variational",
        "--figure": "--figure out/dimensions.png",
    },
)
_HOMOGENEITY = Case(
    modes={
        "table": Mode("flipped.csv --format csv"),
        "figure": Mode("past.csv --figure out/h.png", about=("--scenario", "--figure", "--format")),
        "bank": Mode("bank --format csv"),
    },
    values={
        **COMMON,
        "--budget": "--budget 20",
        "--scenario": "--scenario math",
        "--figure": "--figure out/homogeneity.png",
    },
)
_PREDICTIONS = Case(
    modes={
        "bank": Mode("bank --format csv"),
        "figure": Mode("bank --figure out/p.png", about=("--scenario", "--figure", "--format")),
    },
    values={**COMMON, "--show": "--show bins", "--scenario": "--scenario math", "--figure": "--figure out/other.png"},
)
_SELECTION = Case(
    modes={"selection": Mode("bank selection.json")},
    values={"--figure": "--figure out/weights.png", "--format": "--format csv"},
)
_TASKS = Case(
    modes={
        "tasks": Mode("flipped.csv --format csv"),
        "correlations": Mode("past.csv --show correlations --format csv", about=("--level",)),
        "figure": Mode("past.csv --figure out/t.png --format csv", about=("--kind", "--figure", "--level")),
    },
    values={
        "--format": "--format json",
        "--by": "--by item_id",
        "--cost": "--cost tokens",
        "--level": "--level 0.5",
        "--show": "--show correlations",
        "--figure": "--figure out/tasks.png",
        "--kind": "--kind costs --cost tokens",
    },
)
_AUDIT = Case(
    modes={
        "table": Mode("flipped.csv -o out/audit.csv --format json"),
        "text": Mode("faulty.parquet", about=("--sort", "--rows", "--reason", "--format", "--output")),
        "groups": Mode(
            "all-known.parquet --by size --format json",
            about=("--by", "--clusters"),
        ),
        "bank": Mode("bank -o out/audit.csv --format json"),
    },
    values={
        "--format": "--format csv",
        "--known": "--known exclude.txt",
        "--choices": "--choices choices.csv",
        "--by": "--by family",
        "--clusters": "--clusters family",
        "--no-duplicates": "--no-duplicates",
        "--sort": "--sort key-ratio",
        "--reason": "--reason dead",
        "--rows": "-n 3",
        "--fail-on": "--fail-on dead",
        "--output": "-o out/other.csv",
    },
    no_effect={
        **{(mode, option): "no item is flagged" for mode in ("table", "bank") for option in ("--reason", "--rows")},
    },
    never={"--fail-on": "it ends the command with code 1: tests/cli/test_audit.py"},
    stops={
        ("table", "--by"): "the models must have a column 'family'",
        ("bank", "--by"): "must divide the 14 models",
    },
)
_QUICKSTART = Case(
    modes={"language models": Mode("-o out/quickstart -n 16 --repeats 1 --format csv")},
    values={"--output": "-o out/other", "--n-items": "-n 20", "--repeats": "--repeats 2", **COMMON},
)


CASES = {
    "": _ROOT,
    "import": _IMPORT,
    "download": _DOWNLOAD,
    "match-names": _NAMES,
    "export eee": _EEE,
    "simulate": _SIMULATE,
    "study dimensions": _DIMENSIONS,
    "study homogeneity": _HOMOGENEITY,
    "study predictions": _PREDICTIONS,
    "study weights": _SELECTION,
    "study tasks": _TASKS,
    "audit": _AUDIT,
    "quickstart": _QUICKSTART,
    "sample-data": Case(
        modes={"files": Mode("-o out/sample")}, values={"--output": "-o out/other", "--format": "--format json"}
    ),
}
