"""Cases of `itembank` itself and of commands that need no bank."""

from dataclasses import replace

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.reading import (
    COMMON,
    ITEMS,
    LEFT_OUT,
    MEMORY,
    MIXED,
    READING,
    RESPONSES,
    SKIPPED,
    USABLE,
    settled,
)

_ROOT = Case(
    modes={
        "a command": Mode("info bank", hears=True),
        "a note": Mode("import py-irt py-irt.jsonl -o out/r.parquet", about=("--quiet", "--config"), hears=True),
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

_IMPORT = {
    "--output": "-o out/other.parquet",
    "--models": "--models models.csv",
    "--items": "--items items.csv",
    "--scenario": "--scenario quiz",
    "--max-response": "--max-response 2",
    "--model-id": "--model-id renamed",
    "--repeats": "--repeats mean",
    "--max-memory": "--max-memory 1",
    "--complete": "--complete",
    "--drop-empty": "--drop-empty",
    "--format": "--format json",
}
_TABLE = Case(
    nowhere=MEMORY,
    modes={
        "long": Mode("repeated.csv -o out/r.parquet --repeats last"),
        "gaps": Mode("gaps.csv -o out/r.parquet", about=("--complete", "--scenario")),
        "an empty model": Mode("empty.csv -o out/r.parquet", about=("--drop-empty",), codes=(1,)),
        "one model": Mode("nameless.csv -o out/r.parquet --model-id m", about=("--model-id",)),
        "wide": Mode("wide.csv -o out/r.parquet"),
        "response file": Mode("past.parquet -o out/r.parquet"),
    },
    values={
        **_IMPORT,
        "--names": "--names names.csv",
        "--layout": "--layout wide-items",
        "--true-value": "--true-value 0",
        "--response-column": "--response-column other",
        "--column": "--column response=other",
        "--prefix-scenario": "--prefix-scenario",
    },
    no_effect={
        **settled("long", "--scenario", "--complete", "--drop-empty"),
        **settled("wide", "--repeats", "--complete", "--drop-empty"),
        **settled("response file", "--scenario", "--repeats", "--complete", "--drop-empty"),
    },
    stops={
        ("long", "--layout"): "must hold the responses of a model",
        ("wide", "--layout"): "there must be a column 'item_id'",
        ("gaps", "--complete"): "every model must have a response to every item",
    },
)
_PY_IRT = Case(
    nowhere=MEMORY,
    modes={
        "lines": Mode("py-irt.jsonl -o out/r.parquet"),
        "gaps": Mode("gaps.jsonl -o out/r.parquet", about=("--complete",)),
        "an empty model": Mode("empty.jsonl -o out/r.parquet", about=("--drop-empty",), codes=(1,)),
        "one model": Mode("one.jsonl -o out/r.parquet", about=("--model-id",)),
        "two files": Mode("py-irt.jsonl one.jsonl -o out/r.parquet --repeats last", about=("--repeats",)),
    },
    values=_IMPORT,
    no_effect=settled("lines", "--repeats", "--complete", "--drop-empty"),
    stops={("gaps", "--complete"): "every model must have a response to every item"},
)
_LOGS = {name: words for name, words in _IMPORT.items() if name != "--max-response"}
_SWE_BENCH = Case(
    nowhere=MEMORY | {"--drop-empty": "instances that nobody was graded on are not there"},
    modes={
        "reports": Mode("reports -o out/r.parquet"),
        "one model": Mode("reports/a.run.json -o out/r.parquet", about=("--model-id",)),
        "attempts": Mode("twice -o out/r.parquet --repeats count", about=("--repeats",)),
        "submission": Mode(
            "swe -o out/r.parquet --items instances.jsonl",
            about=("--errors", "--items"),
            values={"--items": "--items instances-2.jsonl"},
        ),
    },
    values={
        **_LOGS,
        "--items": "--items instances.jsonl",
        "--models": "--models reports.csv",
        "--repeats": "--repeats last",
        "--errors": "--errors wrong",
    },
    no_effect=settled("reports", "--repeats", "--drop-empty"),
    stops={("reports", "--complete"): "every model must have a response to every item"},
)


def _store(folder, **values):
    """Results of one program without gaps, none of them twice; more in tests/readers."""
    return Case(
        nowhere=MEMORY,
        modes={"results": Mode(f"{folder} -o out/r.parquet")},
        values={**_LOGS, "--models": "--models reports.csv", "--items": "--items items.csv", **values},
        never=dict.fromkeys(("--repeats", "--complete", "--drop-empty"), "tests/readers has gaps and repeats"),
        stops={("results", "--items"): "is in the table of items"},
    )


_ALPACA_EVAL = _store("alpaca", **{"--metric": "--metric other"})
_ALPACA_EVAL.modes["one model"] = Mode("alpaca/results/a -o out/r.parquet", about=("--model-id",))
_ROWS = "--rows rows --column item_id=doc.id --column response=marks.acc"
_JSON = Case(
    nowhere=MEMORY,
    modes={
        "rows": Mode(f"deep.json -o out/r.parquet {_ROWS} --column model_id=/name"),
        "again": Mode(
            f"again.json -o out/r.parquet {_ROWS} --column model_id=/name --repeats last --drop-empty",
            about=("--repeats",),
        ),
        "an empty item": Mode(
            f"again.json -o out/r.parquet {_ROWS} --column model_id=/name --repeats last",
            codes=(1,),
            about=("--drop-empty",),
        ),
        "two files": Mode(
            f"deep.json fewer.json -o out/r.parquet {_ROWS} --column model_id=@file", about=("--complete",)
        ),
    },
    values={
        **_IMPORT,
        "--items": "--items deep-items.csv",
        "--models": "--models reports.csv",
        "--rows": "--rows more",
        "--column": "--column response=marks.other",
        "--true-value": "--true-value 0",
    },
    no_effect=settled("rows", "--repeats", "--complete", "--drop-empty"),
    stops={("two files", "--complete"): "every model must have a response to every item"},
)
_FETCHING = dict.fromkeys(("--model", "--only"), "goes with --download, which tests/readers/public tries")
_PUBLIC = Case(
    nowhere={
        **MEMORY,
        **_FETCHING,
        **dict.fromkeys(("--repeats", "--complete", "--drop-empty"), "these stores are complete, once each"),
    },
    modes={
        "alpaca": Mode("alpaca-eval --from alpaca -o out/r.parquet"),
        "bfcl": Mode(
            "bfcl --from bfcl -o out/r.parquet", about=("--from", "--model-id", "--only", "--model", "--metric")
        ),
        "swe-bench": Mode(
            "swebench-verified --from swe --items instances.jsonl -o out/r.parquet",
            about=("--errors", "--items"),
            values={"--items": "--items instances-2.jsonl"},
        ),
    },
    values={
        **_LOGS,
        "--items": "--items items.csv",
        "--models": "--models reports.csv",
        "--list": "--list",
        "--download": "--download",
        "--from": "--from bfcl-more",
        "--model": "--model a",
        "--only": "--only x",
        "--metric": "--metric other",
        "--errors": "--errors missing",
    },
    never={"--download": "tests/readers/public fetches from a server on this machine"},
    no_effect=settled("alpaca", "--repeats", "--complete", "--drop-empty"),
    stops={
        ("alpaca", "--from"): "holds no annotations of AlpacaEval",
        ("alpaca", "--items"): "is in the table of items",
    },
)
_LM_EVAL = Case(
    nowhere=MEMORY,
    modes={
        "metrics": Mode("logs -o out/r.parquet"),
        "options": Mode(
            "logs -o out/r.parquet --response probability",
            values={"--response": "--response probability-per-character"},
        ),
        "one model": Mode("logs/org__l0 -o out/r.parquet", about=("--model-id",)),
        "gaps": Mode("gaps -o out/r.parquet", about=("--complete",)),
    },
    values={
        **_IMPORT,
        "--models": "--models log-models.csv",
        "--items": "--items log-items.csv",
        "--metric": "--metric acc_norm",
        "--filter": "--filter strict",
        "--response": "--response accuracy",
        "--choice-scores": "--choice-scores out/scores.csv",
        "--task": "--task quiz",
        "--exclude-task": "--exclude-task quiz",
        "--allow-mixed-prompts": "--allow-mixed-prompts",
        "--rename": "--rename quiz=puzzle",
        "--groups": "--groups",
        "--model-id-from": "--model-id-from args",
        "--ignore-content": "--ignore-content",
        "--jobs": "--jobs 2",
    },
    no_effect={
        **settled("metrics", "--complete"),
        **settled("options", "--complete"),
    },
    never={
        **MIXED,
        "--scenario": "the task is the scenario of every item of a log; the other readers use it",
        "--repeats": "tests/readers/test_lm_eval_runs.py has runs that disagree",
        "--drop-empty": "a log without any response is refused before",
        "--ignore-content": "tests/readers/test_lm_eval_runs.py has logs whose content differs",
        "--jobs": "responses do not depend on the number of processes",
    },
    stops={
        ("gaps", "--complete"): "every model must have a response to every item",
        ("options", "--metric"): "takes no logged metric",
    },
)


def _harness(name):
    """Logs of a harness with several metrics and tasks, in a folder of its name."""
    return Case(
        nowhere=MEMORY,
        modes={
            "metrics": Mode(f"{name} -o out/r.parquet"),
            "one model": Mode(f"{name}/l0 -o out/r.parquet", about=("--model-id",)),
        },
        values={
            **_IMPORT,
            "--models": "--models log-models.csv",
            "--items": "--items log-items.csv",
            "--metric": "--metric acc_norm",
            "--task": "--task quiz",
            "--exclude-task": "--exclude-task quiz",
            "--rename": "--rename quiz=puzzle",
            "--ignore-content": "--ignore-content",
        },
        never={
            "--complete": "import lm-eval has logs with gaps",
            "--scenario": "the task is the scenario of every item of a log; the other readers use it",
            "--repeats": "tests/readers has logs with repeated attempts",
            "--drop-empty": "tests/readers has logs with answers that failed",
            "--ignore-content": "tests/readers has logs whose content differs",
        },
    )


_AUTO = {"--errors": "--errors wrong", "--allow-mixed-prompts": "--allow-mixed-prompts"}


def _auto():
    """Logs of a harness and, where errors are told, a report of SWE-bench."""
    case = _harness("helm")
    modes = {**case.modes, "errors": Mode("reports -o out/r.parquet", about=("--errors",))}
    return replace(case, modes=modes, values={**case.values, **_AUTO}, never={**case.never, **MIXED})


_INSPECT = Case(
    nowhere=MEMORY,
    modes={
        "logs": Mode("inspect -o out/r.parquet"),
        "one model": Mode("inspect/0-quiz.eval -o out/r.parquet", about=("--model-id",)),
        "epochs": Mode("inspect-gaps/epochs.eval -o out/r.parquet", about=("--repeats",)),
        "unscored": Mode("inspect-gaps -o out/r.parquet", about=("--skip-unusable",), codes=(1,)),
        "gaps": Mode("inspect-partly -o out/r.parquet", about=("--complete",)),
        "an empty item": Mode("inspect-empty -o out/r.parquet", about=("--drop-empty",), codes=(1,)),
        "changed": Mode("inspect-changed -o out/r.parquet", about=("--ignore-content",), codes=(1,)),
    },
    values={
        **_IMPORT,
        "--models": "--models inspect-models.csv",
        "--items": "--items inspect-items.csv",
        "--repeats": "--repeats last",
        "--scorer": "--scorer graded",
        "--task": "--task quiz",
        "--exclude-task": "--exclude-task quiz",
        "--allow-mixed-prompts": "--allow-mixed-prompts",
        "--rename": "--rename quiz=puzzle",
        "--model-id-from": "--model-id-from args",
        "--ignore-content": "--ignore-content",
        "--jobs": "--jobs 2",
    },
    no_effect=settled("logs", "--repeats", "--complete", "--drop-empty", "--skip-unusable", "--ignore-content"),
    never={
        **MIXED,
        "--scenario": "the task is the scenario of every item of a log; the other readers use it",
        "--jobs": "responses do not depend on the number of processes",
    },
    stops={("gaps", "--complete"): "every model must have a response to every item"},
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
_SEVERAL = {**USABLE, "--model-id": "it names one model, and several are needed: it is refused with more"}
_OF_LOGS = {
    **dict.fromkeys(
        ("--metric", "--filter", "--task", "--exclude-task", "--rename", "--response"), "calibrate has a mode of logs"
    ),
    **MEMORY,
}
_DIMENSIONS = Case(
    modes={
        "table": Mode("repeated.csv --repeats last --dims 1 --method map --format csv"),
        "wide": Mode("wide.csv --dims 1 --method map --format csv", about=("--items",)),
        "response file": Mode("past.parquet --dims 1 --method map --format csv", about=tuple(RESPONSES)),
        "logs": Mode("logs --dims 1 --method map --format csv", about=("--response-column", "--column", "--repeats")),
    },
    values={
        **RESPONSES,
        **ITEMS,
        **COMMON,
        "--dims": "--dims 1,2",
        "--method": "--method variational",
        "--figure": "--figure out/dimensions.png",
    },
    no_effect={
        ("table", "--items"): "the table has scenarios",
        **settled("response file", "--repeats"),
        **settled("logs", "--repeats"),
    },
    never=_SEVERAL,
    nowhere=_OF_LOGS,
    stops={
        ("table", "--max-response"): "at least one item must tell models apart",
        ("table", "--repeats"): "at least one item must tell models apart",
    },
)
_HOMOGENEITY = Case(
    modes={
        "table": Mode("repeated.csv --repeats last --format csv"),
        "figure": Mode("past.csv --figure out/h.png", about=("--scenario", "--figure", "--format")),
        "wide": Mode("wide.csv --format csv", about=("--items",)),
        "bank": Mode("bank --format csv"),
        "logs": Mode("logs --format csv", about=("--response-column", "--column", "--repeats")),
    },
    values={
        **RESPONSES,
        **ITEMS,
        **COMMON,
        "--budget": "--budget 20",
        "--scenario": "--scenario math",
        "--figure": "--figure out/homogeneity.png",
    },
    no_effect={("table", "--items"): "the table has scenarios", **settled("logs", "--repeats")},
    never=_SEVERAL,
    nowhere=_OF_LOGS,
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
        "tasks": Mode("repeated.csv --repeats last --format csv"),
        "correlations": Mode("past.csv --show correlations --format csv", about=("--level",)),
        "figure": Mode("past.csv --figure out/t.png --format csv", about=("--kind", "--figure", "--level")),
        "wide": Mode(
            "wide.csv --items halves.csv --format csv", about=("--items",), values={"--items": "--items thirds.csv"}
        ),
        "logs": Mode("logs --format csv", about=("--response-column", "--column", "--repeats")),
    },
    values={
        **RESPONSES,
        **ITEMS,
        "--format": "--format json",
        "--by": "--by item_id",
        "--cost": "--cost tokens",
        "--level": "--level 0.5",
        "--show": "--show correlations",
        "--figure": "--figure out/tasks.png",
        "--kind": "--kind costs --cost tokens",
    },
    no_effect={("tasks", "--items"): "the table has scenarios", **settled("logs", "--repeats")},
    never=_SEVERAL,
    nowhere=_OF_LOGS,
)
_AUDIT = Case(
    modes={
        "table": Mode("repeated.csv --repeats last -o out/audit.csv --format json"),
        "text": Mode("faulty.parquet", about=("--sort", "--rows", "--reason", "--format", "--output")),
        "wide": Mode("wide.csv -o out/audit.csv --format json", about=("--items",)),
        "groups": Mode(
            "past.csv whole.csv --models models.csv --by size --format json",
            about=("--by", "--clusters", "--models"),
            values={"--models": "--models other-models.csv"},
        ),
        "bank": Mode("bank -o out/audit.csv --format json"),
        "logs": Mode("logs --format csv", about=("--response-column", "--column", "--repeats")),
    },
    values={
        **READING,
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
        ("table", "--items"): "the table has scenarios",
        ("table", "--models"): "only --by looks at what is known of models",
        **{(mode, option): "no item is flagged" for mode in ("table", "bank") for option in ("--reason", "--rows")},
        **settled("logs", "--repeats"),
    },
    never={**_SEVERAL, "--fail-on": "it ends the command with code 1: tests/cli/test_audit.py"},
    nowhere=_OF_LOGS,
    stops={
        ("table", "--by"): "the models must have a column 'family'",
        ("bank", "--by"): "must divide the 14 models",
    },
)
_QUICKSTART = Case(
    modes={"language models": Mode("-o out/quickstart -n 16 --repeats 1 --format csv")},
    values={"--output": "-o out/other", "--n-items": "-n 20", "--repeats": "--repeats 2", **COMMON},
)


def _importing(case, never=None):
    """The case with the options that every import of files has."""
    tried = {option for mode in case.modes.values() for option in mode.about}
    never = {option: reason for option, reason in (never or {**SKIPPED, **LEFT_OUT}).items() if option not in tried}
    values = {"--skip-unusable": "--skip-unusable", "--exclude-file": "--exclude-file other"}
    values = {option: words for option, words in values.items() if option in {*never, *tried}}
    return replace(case, values={**case.values, **values}, never={**case.never, **never})


CASES = {
    "": _ROOT,
    "import table": _importing(_TABLE),
    "import py-irt": _importing(_PY_IRT),
    "import lm-eval": _importing(_LM_EVAL),
    "import swe-bench": _importing(_SWE_BENCH),
    "import json": _importing(_JSON),
    "import public": _importing(_PUBLIC, SKIPPED),
    "import match-names": _NAMES,
    **{
        f"import {name}": _importing(_harness(name))
        for name in ("helm", "eee", "evalscope", "lighteval", "opencompass")
    },
    "import alpaca-eval": _importing(_ALPACA_EVAL),
    "import bfcl": _importing(_store("bfcl")),
    "import evalplus": _importing(_store("evalplus", **{"--metric": "--metric base"})),
    "import livecodebench": _importing(_store("livecodebench")),
    "import auto": _importing(_auto()),
    "export eee": _EEE,
    "import inspect": _importing(_INSPECT),
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
