"""Cases of `itembank` itself and of commands that need no bank."""

from tests.cli.contract.case import COMMON, MIXED, Case, each, mode

_ROOT = Case(
    modes={
        "a command": mode("info bank", hears=True),
        "a note": mode("import py-irt.jsonl -o out/r.parquet", "--quiet", hears=True),
        "an error": mode("info logs", "--debug --quiet", codes=(1,), hears=True),
    },
    values="--version --debug --quiet --verbose",
    no_effect={("a command", "--debug"): "nothing fails", ("an error", "--quiet"): "an error is no note"},
)
_PROGRAM = "--jq '.name as $name | .{}[] | {{model_id: $name, item_id: .doc.id, response: .marks.acc}} + .marks'"
_OF_TABLES = "--metric --column --true-value --max-response --missing --drop-column --where --prefix-scenario"
_IMPORT = Case(
    modes={
        "long": mode(
            "repeated.csv -o out/r.parquet --repeats last",
            f"--output --as --models --items --repeats --format --spec {_OF_TABLES}",
        ),
        "lost": mode("lost.csv -o out/r.parquet", "--errors"),
        "one model": mode("nameless.csv -o out/r.parquet --model-id m", "--model-id"),
        "response file": mode("past.parquet -o out/r.parquet", "--metric"),
        "logs": mode("logs -o out/r.parquet", f"--task {_OF_TABLES}", "--max-response 2"),
        "JSON": mode(f"deep.json -o out/r.parquet {_PROGRAM.format('rows')}", "--jq --column --true-value --metric"),
        "journal": mode("answered.jsonl -o out/r.parquet", "--output --format"),
    },
    values=f"--errors wrong {_PROGRAM.format('more')} --output out/other.parquet --as wide-items --models models.csv "
    "--items items.csv --max-response 2 --model-id renamed --repeats mean --true-value 0 --column response=other "
    "--metric acc_norm --missing 0 --drop-column output_tokens --where scenario=math --prefix-scenario --task quiz "
    "--allow-mixed-prompts --spec reading.toml --format json",
    never={"--allow-mixed-prompts": MIXED["--allow-mixed-prompts"]},
    stops={("long", "--as"): "must hold the responses of a model"},
)
_DOWNLOAD = Case(
    nowhere=each("--model --file", "tests/readers/public fetches from a server on this machine"),
    modes={
        "alpaca": mode("alpaca-eval --from alpaca -o out/r.parquet", "--output --items --format --from"),
        "bfcl": mode("bfcl --from bfcl -o out/r.parquet", "--from --file --model"),
        "swe-bench": mode(
            "swebench-verified --from swe --items instances.jsonl -o out/r.parquet",
            "--items --spec",
            "--items instances-2.jsonl --spec errors.toml",
        ),
    },
    values="--output out/other.parquet --items items.csv --from bfcl-more --model a --file x --spec reading.toml "
    "--format json",
    stops={
        ("alpaca", "--from"): "holds no annotations of AlpacaEval",
        ("alpaca", "--items"): "is in the table of items",
    },
)
CASES = {
    "": _ROOT,
    "import": _IMPORT,
    "download": _DOWNLOAD,
    "simulate": Case(
        {"data": mode("-o out/r.parquet --n-models 5 --n-items 40 --n-tasks 3")},
        f"{COMMON} --output out/other.parquet --n-models 6 --n-items 41 --n-tasks 4 --n-dims 2 --guessing 0.3 "
        "--missing 0.2",
    ),
    "quickstart": Case({"language models": mode("-o out/quickstart --format csv")}, "--output out/other --format json"),
    "sample-data": Case({"files": mode("-o out/sample")}, "--output out/other --format json"),
}
