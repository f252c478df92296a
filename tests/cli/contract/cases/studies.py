"""Cases of studies, and of scaling laws."""

from tests.cli.contract.case import PAGES, Case, each, mode

_SOME = "--metric --target --against --figure --kind --set"
_OF_PREDICTION = "--set --tasks --show --against --assessor --figure --format --metric"
_DRAWN = "--kind --figure --target --assessor"
_DRAWN_PREDICTION = "--kind --figure --set --tasks --assessor"
_BOTH = " --assessor '2pl, random' --assessor 'task-mean, random'"
_REDRAWN = "--tasks 1 --figure out/p.png"
_PREDICTED = f"--against '2pl, random' {_REDRAWN}"
_DRAWN_OF = {"items": ("cost", ""), "cost": ("items", ""), "tasks": ("models", _BOTH), "models": ("tasks", _BOTH)}
_SHOWN = {
    "prediction": "",
    "prediction, csv": "--format csv",
    "prediction, tasks": "--show tasks",
    "prediction, cost": "--show cost",
    "differences": "--against 'task-mean, random'",
}
_STUDIES = {
    "study run": Case(
        modes={
            "done": mode("study.toml -o out/study --jobs 1", brings="study"),
            "prediction, done": mode("prediction.toml -o out/prediction --jobs 1", brings="prediction"),
        },
        values="--output out/other --jobs 2",
        never={"--jobs": "a study finds the same numbers in any number of processes"},
    ),
    "study table": Case(
        modes={
            "comparison": mode("study", f"{_SOME} --format"),
            "comparison, csv": mode("study --format csv", _SOME),
            "ratios": mode("study --against random/weighted", "--against --metric --target"),
            **{name: mode(f"prediction {words}", _OF_PREDICTION, _PREDICTED) for name, words in _SHOWN.items()},
            **{
                f"figure of {kind}": mode(f"study --kind {kind} --figure out/f.png", _DRAWN)
                for kind in ("error", "rank", "spread", "coverage", "width")
            },
            **{
                f"figure of {kind}": mode(
                    f"prediction --kind {kind} --figure out/f.png{more}",
                    _DRAWN_PREDICTION,
                    f"{_REDRAWN} --kind {other}",
                )
                for kind, (other, more) in _DRAWN_OF.items()
            },
        },
        values="--metric spearman --against random/gp-irt --target part-0 --set extrapolation --tasks 3 --show reach "
        "--figure out/other.png --kind rank --format json --assessor '2pl, random'",
        no_effect={("figure of rank", "--kind"): "it is this kind already"},
        stops=each("--assessor", "two assessors are compared", "figure of tasks", "figure of models"),
    ),
    "study dimensions": Case(
        {"table": mode("flipped.csv --dims 1 --format csv")},
        "--dims 1,2 --by scenario --figure out/dimensions.png --format json",
    ),
    "study homogeneity": Case(
        {
            "table": mode("flipped.csv --format csv"),
            "figure": mode("past.csv --figure out/h.png", "--figure --format"),
            "bank": mode("bank --format csv"),
        },
        "--figure out/homogeneity.png --format json",
    ),
    "study predictions": Case(
        {"bank": mode("bank --format csv"), "figure": mode("bank --figure out/p.png", "--figure --format")},
        "--figure out/other.png --format json",
    ),
    "study weights": Case({"selection": mode("bank selection.json")}, "--figure out/weights.png --format csv"),
    "study tasks": Case(
        {
            "tasks": mode("flipped.csv --format csv"),
            "figure": mode("past.csv --figure out/t.png --format csv", "--cost --figure"),
        },
        "--format json --by item_id --cost tokens --figure out/tasks.png",
    ),
}

_OF_BANK = "--bank suite-bank --law irsl --spec fitted-law.toml --format csv"
_HELD_OUT = "suite.parquet --bank suite-bank --law irsl --format csv --spec two-sizes.toml --show comparison"
_OF_FILES = "--builtin --loss --bank --law --spec --target-flops --show --figure --kind --format"
_PRETRAIN = Case(
    never=PAGES,
    nowhere={"--builtin": "it takes the place of RESPONSES; scaling transfer has a mode of each"},
    modes={
        "files": mode(f"suite.parquet {_OF_BANK}", _OF_FILES),
        "all laws": mode(f"suite.parquet {_OF_BANK} --show all", "--law"),
        "calibrating": mode(
            "suite-known.parquet --law irsl --spec calibrating.toml --format csv", "--spec", "--spec other-law.toml"
        ),
        "sigmoid": mode("suite.parquet --law sigmoid --spec few-recipes.toml --format csv", "--bank"),
        "two-step": mode("suite.parquet --law two-step --spec few-recipes.toml --format csv", "--loss"),
        "held out": mode(_HELD_OUT, "--spec", "--spec one-size.toml"),
        "unknown compute": mode(f"suite-unknown.parquet {_OF_BANK}", "--drop-unknown", codes=(1,)),
        "figure of laws": mode(f"suite.parquet {_OF_BANK} --figure out/f.png --kind laws", "--figure --kind"),
    },
    values="--format json --report out/page.html --builtin bytelms --target-flops 1e15 --bank samples-bank "
    "--loss losses.csv --drop-unknown --law sigmoid --spec bent-law.toml --show curves --figure out/laws.png "
    "--kind abilities",
    no_effect={("files", "--law"): "a CSV has the law that is named first, unless all are asked for"},
)
_ASKED = "--model model-1 --k 1,10 --format csv"
_KNOWN = f"--method irsl --bank samples-bank --spec model-based.toml {_ASKED}"
_TEST_TIME = Case(
    never=PAGES,
    modes={
        "files": mode(f"samples.parquet {_KNOWN}", "--model --k --method --spec --format --show --figure"),
        "unbiased": mode(f"samples-gaps.parquet --method unbiased {_ASKED}", "--bank"),
        "gaps": mode(f"samples-gaps.parquet {_KNOWN}", "--spec", "--spec unsampled.toml"),
        "calibrating": mode(f"samples.parquet --method irsl-plug-in {_ASKED}", "--bank"),
        "budget": mode(
            f"samples.parquet {_KNOWN} --budget 10 --show errors", "--budget --spec", "--spec without-rare.toml"
        ),
        "builtin": mode("--builtin bytelms-samples --method unbiased --k 1 --format csv", "--builtin"),
    },
    values="--format json --report out/page.html --builtin classifiers --bank samples-bank --model model-2 --k 1,20 "
    "--budget 12 --method unbiased --spec by-errors.toml --show tail --figure out/f.png",
    stops={("builtin", "--builtin"): "without counts"},
)
_SCORES = "--method scores --format csv"
_VALIDITY = "two.parquet --show validity"
_FORCED = "--spec forced.toml"
_ONE_TO_OTHER = f"--source s0 --target s1 {_SCORES}"
_TRANSFER = Case(
    modes={
        "files": mode(
            f"two.parquet {_FORCED} {_ONE_TO_OTHER}", "--bank --k --target --method --show --figure --format"
        ),
        "known models": mode(f"two-known.parquet --show models --spec forced.toml {_ONE_TO_OTHER}", "--clusters"),
        "in turn": mode(f"two.parquet --spec two-folds.toml {_ONE_TO_OTHER}", "--spec", "--spec three-folds.toml"),
        "easy to hard": mode(f"two.parquet --source s0 {_SCORES}", "--spec", codes=(1,)),
        "forced": mode(f"two.parquet --source s0 {_FORCED} {_SCORES}", "--spec --source --target", "--target s1"),
        "counts": mode(f"samples.parquet --source math --target code --spec forced.toml {_SCORES}", "--k"),
        "new models": mode(f"two-new.parquet {_ONE_TO_OTHER}", "--bank", codes=(1,)),
        "builtin": mode(
            f"--builtin bytelms --source copying --target reversal --spec two-folds.toml {_SCORES}", "--builtin"
        ),
        "validity": mode(
            f"{_VALIDITY} --format csv", "--clusters --format --source --method --bank", "--clusters recipe"
        ),
        "validity of a pair": mode(f"{_VALIDITY} --source s0 --target s1 --figure out/g.png", "--source --figure"),
    },
    values="--format json --builtin classifiers --source s1 --target s0 --k 1,2 --method common-scale "
    "--bank two-bank --spec few-easy.toml --clusters kind --show models --figure out/f.png",
    stops={
        ("builtin", "--builtin"): "'copying'",
        ("files", "--bank"): "models asked about must not be past models of the bank",
    },
)
CASES = {**_STUDIES, "scaling pretrain": _PRETRAIN, "scaling test-time": _TEST_TIME, "scaling transfer": _TRANSFER}
