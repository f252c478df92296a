"""Cases of `itembank` itself and of commands that need no bank."""

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.reading import COMMON, ERRORS, MIXED

_ROOT = Case(
    modes={
        "a command": Mode("info bank", hears=True),
        "a note": Mode("import py-irt.jsonl -o out/r.parquet", about=("--quiet",), hears=True),
        "an error": Mode("info logs", codes=(1,), hears=True, about=("--debug", "--quiet")),
    },
    values=options("--version --debug --quiet --verbose"),
    no_effect={("a command", "--debug"): "nothing fails", ("an error", "--quiet"): "an error is no note"},
)

_PROGRAM = "--jq '.name as $name | .{}[] | {{model_id: $name, item_id: .doc.id, response: .marks.acc}} + .marks'"
_OF_LOGS = ("--metric",)
_OF_ROWS = ("--drop-column", "--where", "--prefix-scenario")
_OF_TABLES = ("--column", "--true-value", "--max-response", "--missing", *_OF_ROWS)
_IMPORT = Case(
    modes={
        "long": Mode(
            "repeated.csv -o out/r.parquet --repeats last",
            about=(
                *("--output", "--as", "--models", "--items", "--repeats", "--format", "--spec"),
                *(*_OF_LOGS, *_OF_TABLES),
            ),
        ),
        "lost": Mode("lost.csv -o out/r.parquet", about=("--errors",)),
        "one model": Mode("nameless.csv -o out/r.parquet --model-id m", about=("--model-id",)),
        "response file": Mode("past.parquet -o out/r.parquet", about=_OF_LOGS),
        "logs": Mode(
            "logs -o out/r.parquet",
            about=("--task", *_OF_LOGS, *_OF_TABLES),
            values={"--max-response": "--max-response 2"},
        ),
        "JSON": Mode(
            f"deep.json -o out/r.parquet {_PROGRAM.format('rows')}",
            about=("--jq", "--column", "--true-value", *_OF_LOGS),
        ),
        "journal": Mode("answered.jsonl -o out/r.parquet", about=("--output", "--format")),
    },
    values=ERRORS
    | {"--jq": _PROGRAM.format("more")}
    | options(
        "--output out/other.parquet --as wide-items --models models.csv --items items.csv "
        "--max-response 2 --model-id renamed --repeats mean "
        "--true-value 0 --column response=other --metric acc_norm "
        "--missing 0 --drop-column output_tokens --where scenario=math --prefix-scenario "
        "--task quiz --allow-mixed-prompts --spec reading.toml --format json"
    ),
    never={"--allow-mixed-prompts": MIXED["--allow-mixed-prompts"]},
    stops={("long", "--as"): "must hold the responses of a model"},
)
_DOWNLOAD = Case(
    nowhere=dict.fromkeys(("--model", "--file"), "tests/readers/public fetches from a server on this machine"),
    modes={
        "alpaca": Mode(
            "alpaca-eval --from alpaca -o out/r.parquet", about=("--output", "--items", "--format", "--from")
        ),
        "bfcl": Mode("bfcl --from bfcl -o out/r.parquet", about=("--from", "--file", "--model")),
        "swe-bench": Mode(
            "swebench-verified --from swe --items instances.jsonl -o out/r.parquet",
            about=("--items", "--spec"),
            values={"--items": "--items instances-2.jsonl", "--spec": "--spec errors.toml"},
        ),
    },
    values=options(
        "--output out/other.parquet --items items.csv --from bfcl-more "
        "--model a --file x --spec reading.toml --format json"
    ),
    stops={
        ("alpaca", "--from"): "holds no annotations of AlpacaEval",
        ("alpaca", "--items"): "is in the table of items",
    },
)
_SIMULATE = Case(
    modes={"data": Mode("-o out/r.parquet --n-models 5 --n-items 40 --n-tasks 3")},
    values={
        **COMMON,
        **options(
            "--output out/other.parquet --n-models 6 --n-items 41 --n-tasks 4 --n-dims 2 --guessing 0.3 --missing 0.2"
        ),
    },
)
_DIMENSIONS = Case(
    modes={"table": Mode("flipped.csv --dims 1 --format csv")},
    values=options("--dims 1,2 --by scenario --figure out/dimensions.png --format json"),
)
_HOMOGENEITY = Case(
    modes={
        "table": Mode("flipped.csv --format csv"),
        "figure": Mode("past.csv --figure out/h.png", about=("--figure", "--format")),
        "bank": Mode("bank --format csv"),
    },
    values=options("--figure out/homogeneity.png --format json"),
)
_PREDICTIONS = Case(
    modes={
        "bank": Mode("bank --format csv"),
        "figure": Mode("bank --figure out/p.png", about=("--figure", "--format")),
    },
    values=options("--figure out/other.png --format json"),
)
_SELECTION = Case(
    modes={"selection": Mode("bank selection.json")}, values=options("--figure out/weights.png --format csv")
)
_TASKS = Case(
    modes={
        "tasks": Mode("flipped.csv --format csv"),
        "figure": Mode("past.csv --figure out/t.png --format csv", about=("--cost", "--figure")),
    },
    values=options("--format json --by item_id --cost tokens --figure out/tasks.png"),
)
_QUICKSTART = Case(
    modes={"language models": Mode("-o out/quickstart --format csv")},
    values=options("--output out/other --format json"),
)


CASES = {
    "": _ROOT,
    "import": _IMPORT,
    "download": _DOWNLOAD,
    "simulate": _SIMULATE,
    "study dimensions": _DIMENSIONS,
    "study homogeneity": _HOMOGENEITY,
    "study predictions": _PREDICTIONS,
    "study weights": _SELECTION,
    "study tasks": _TASKS,
    "quickstart": _QUICKSTART,
    "sample-data": Case(modes={"files": Mode("-o out/sample")}, values=options("--output out/other --format json")),
}
