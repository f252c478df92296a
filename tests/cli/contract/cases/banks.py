"""Cases of commands that make banks or begin with one."""

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.reading import (
    ALLOWED,
    COMMON,
    ERRORS,
    JQ,
    MATCH,
    MATCHED,
    MIXED,
    ONE_ATTEMPT,
    PAGES,
    no_chance,
    none_lost,
)

_SPEC = (*("--item-model", "--dims", "--method", "--family", "--spec"),)


def _calibrate(words, *, about=_SPEC, **more):
    """The bank counts by what `info` says of it and by its tables, not by the settings that it keeps."""
    then = (("info out/bank --format csv", ""),)
    return Mode(f"{words} -o out/bank --no-folds", about=about, unseen=("bank.json",), then=then, **more)


_CALIBRATE = Case(
    modes={
        "map": _calibrate("flipped.parquet --method map --dims 1", about=()),
        "variational": _calibrate("tiny.parquet --dims 1", about=("--spec",)),
        "1pl": _calibrate("tiny.csv --item-model 1pl", about=("--dims",)),
        "chosen dims": _calibrate(
            "tiny.csv --method map", about=("--dims", "--item-model"), values={"--dims": "--dims 3"}
        ),
        "mml": _calibrate("tiny.csv --method mml --dims 1", about=("--family", "--item-model")),
        "nested": _calibrate("past.csv --method map --item-model nested --dims 2", about=("--family",)),
        "probabilities": _calibrate("probabilities.csv --dims 1 --family beta", about=()),
        "counts": _calibrate("counts.csv --method map --dims 1", about=("--family",)),
        "items alone": Mode(
            "--items items.csv -o out/bank",
            unseen=("bank.json",),
            about=("--items", "--output", "--within", "--format", "--folds", "--method", "--dims"),
            then=(("info out/bank --format csv", ""),),
        ),
        "items with parameters": Mode(
            "--items parameters.csv -o out/bank", about=("--parameters",), then=(("info out/bank --format csv", ""),)
        ),
        "known parameters": Mode(
            "--items tinyBenchmarks.pkl --parameters --benchmark mmlu -o out/bank",
            about=("--benchmark",),
            then=(("info out/bank --format csv", ""),),
        ),
        "replacing": Mode(
            "past.csv --method map --dims 1 --no-folds -o out/two-bank",
            about=("--force",),
            brings=("two-bank",),
            codes=(1,),
        ),
    },
    values={
        "--format": "--format json",
        **options(
            "--jobs 2 --output out/other --items items.csv --item-model 1pl --dims 2 --method mml --family beta "
            "--within custom --across items --spec guessing.toml --folds --force --parameters --benchmark lb"
        ),
    },
    no_effect={
        ("map", "--force"): "nothing stands there",
        ("probabilities", "--force"): "nothing stands there",
        ("probabilities", "--family"): "it is this family already",
        ("items alone", "--items"): "it is this table already",
    },
    nowhere={"--items": "with past results it is refused or says nothing new, and alone one table is at hand"},
    never={"--jobs": "numbers do not depend on the number of processes"},
    stops={
        ("map", "--family"): "no family 'beta'",
        ("mml", "--family"): "no family 'beta'",
        ("counts", "--family"): "no family 'beta'",
        ("probabilities", "--spec"): "known guessing needs a column",
        ("probabilities", "--within"): "custom score weights need a column 'weight'",
        ("nested", "--family"): "no family 'beta'",
    },
)
_INFO = Case(
    modes={
        "facts": Mode("bank", about=("--format", "--log")),
        "history": Mode("retired-bank --log", about=("--format", "--log")),
        "differences": Mode("named-bank retired-bank", about=("--format", "--log")),
    },
    values=options("--log --format json"),
    no_effect={("history", "--log"): "it is on already"},
)


_SELECT = Case(
    modes={
        "auto": Mode("bank -n 7 --format csv", about=("--method", "--n-items", "--spec")),
        "random": Mode("bank -n 7 --method random --format csv"),
        "v-optimal": Mode("bank -n 7 --method v-optimal --format csv"),
        "design": Mode("bank-2 -n 7 --method optimal-design --format csv"),
        "d-optimal": Mode("bank-2 -n 7 --method optimal-design --spec design.toml --format csv", about=("--spec",)),
        "random design": Mode("bank -n 7 --method optimal-design --spec random-design.toml --format csv"),
        "ids": Mode("bank -n 7 --method random --ids list", about=("--output", "--ids", "--format", "--seed")),
        "file": Mode("bank -n 7 --method random -o out/s.json", about=("--output", "--format"), unseen=("s.json",)),
        "next stage": Mode("bank --after alone.csv --selection stage1.json --format csv"),
    },
    values={
        **COMMON,
        **options(
            "--jobs 2 --n-items 12 --stages 2 --after another.csv --selection "
            "other-stage1.json --per-scenario --output out/selection.json --ids swe-bench --method stratified "
            "--target law --predict law --spec other-design.toml --exclude exclude.txt --must-include include.txt"
        ),
    },
    no_effect={**no_chance("v-optimal", "design"), ("random design", "--target"): "it draws whatever is wanted"},
    stops={
        ("next stage", "--after"): "chosen for one model, from its own answers, got 2 models",
        ("random", "--spec"): "the file must be empty",
        ("v-optimal", "--spec"): "keys of the file must be among",
        ("random design", "--method"): "keys of the file must be among",
    },
    never={"--jobs": "numbers do not depend on the number of processes"},
)
_SORTED = ("--sort", "--most", "--reason", "--format", "--output")
_CHECK = Case(
    modes={
        "choose": Mode(
            "bank whole.csv --only accuracy -n 9 --format csv",
            codes=(0, 3),
            about=("--n-items", "--format", "--known", "--by", "--most"),
        ),
        "selection": Mode(
            "bank whole.csv --only accuracy --selection selection.json --format csv",
            codes=(0, 3),
            about=("--selection", "--n-items"),
        ),
        "fit": Mode(
            "bank past.csv --only fit --format json",
            codes=(0, 3),
            about=("--only", "--group", "--reference", "--since"),
        ),
        "drift": Mode("bank past.csv --only drift --format json", about=("--since", "--group", "--n-items")),
        "items": Mode("flipped.csv -o out/audit.csv --format json"),
        "text": Mode("faulty.parquet", about=_SORTED),
        "groups": Mode("all-known.parquet --by size --format json", about=("--by", "--clusters")),
        "items of a bank": Mode("bank -o out/audit.csv --format json"),
    },
    values={
        "--format": "--format json",
        **MATCH,
        **options(
            "--n-items 12 --selection random.json --ignore-unknown --only drift --group public=selection.json "
            "--reference random.json --since 2025-01-31 --known exclude.txt --choices choices.csv --by family "
            "--clusters family --sort key-ratio --reason dead --most 3 --fail-on dead --output out/other.csv "
            "--jq . --report out/page.html"
        ),
    },
    no_effect={
        **{
            (mode, one): "no item is flagged" for mode in ("items", "items of a bank") for one in ("--reason", "--most")
        },
        **{(mode, "--format"): "it is JSON already" for mode in ("items", "items of a bank")},
    },
    never={
        **PAGES,
        **MATCHED,
        **JQ,
        "--ignore-unknown": "no full run here has more items; tests/cli/test_check.py has one",
        "--since": "no results here have dates; tests/cli/test_check.py has some",
        "--fail-on": "it ends the command with code 1: tests/cli/test_check.py",
    },
    stops={
        ("items", "--by"): "the models must have a column 'family'",
        ("items of a bank", "--by"): "must divide the 14 models",
    },
)
_ESTIMATE = Case(
    modes={
        "table": Mode(
            "bank one.csv --selection selection.json --method p-irt --format csv",
            values={"--interval": "--interval model-based"},
        ),
        "model-based": Mode("bank one.csv --method gp-irt --interval model-based --format csv"),
        "design": Mode(
            "bank whole.csv --selection random.json --interval design --format csv",
            values={"--selection": "--selection selection.json"},
        ),
        "stacked": Mode("bank one.csv --selection selection.json --format csv", about=("--parent",)),
        "target": Mode("retired-bank one.csv --method p-irt --interval model-based --format csv", about=("--target",)),
        "unknown items": Mode(
            "bank more.csv --method p-irt --interval model-based --format csv", about=("--ignore-unknown",), codes=(1,)
        ),
        "lost": Mode("bank lost.csv --method p-irt --interval model-based --format csv", about=("--errors",)),
    },
    values={
        **ALLOWED,
        **ERRORS,
        **MATCH,
        **options(
            "--format json --ignore-unknown --selection random.json --method weighted --interval calibrated "
            "--estimand repeated --level 0.8 --target quiz@1 "
            "--parent auto --report out/page.html"
        ),
    },
    no_effect={
        **{(name, "--ignore-unknown"): "the bank holds every item" for name in ("table", "model-based", "design")},
        **none_lost("table", "model-based", "design"),
    },
    never={**MIXED, **MATCHED, **PAGES},
    nowhere=ONE_ATTEMPT,
    stops={
        ("design", "--method"): "design-based intervals bring their own estimate",
        **{(name, "--parent"): "a parent is weighed with" for name in ("table", "model-based", "design")},
        ("design", "--selection"): "need the probability with which each item was drawn",
    },
)
_CHOICES = ("--model", "--selection", "--method", "--level", "--estimand", "--target", "--ranking")
_OF_THIS_RUN = {"--estimand": "--estimand run"}
_COMPARE = Case(
    modes={
        "pairs": Mode("bank flipped.csv one.csv --model m14 --model m15 --method p-irt --format csv"),
        "paired": Mode(
            "bank one.csv --method paired --format csv", about=_CHOICES, values={"--model": "--model m15 --model m14"}
        ),
        "selection": Mode(
            "bank one.csv --selection random.json --method mean --format csv",
            about=_CHOICES,
            values={"--model": "--model m15 --model m14"},
        ),
        "ranking": Mode("bank past.csv --ranking --format csv --method p-irt", about=_CHOICES, values=_OF_THIS_RUN),
        "unknown items": Mode("bank more.csv --method paired --format csv", about=("--ignore-unknown",), codes=(1,)),
        "no bank": Mode(
            "flipped.csv one.csv --format csv",
            about=("--model", "--level", "--estimand", "--target"),
            values=_OF_THIS_RUN,
        ),
        "lost": Mode("bank lost.csv --method p-irt --format csv", about=("--errors",)),
    },
    values={
        **ALLOWED,
        **MATCH,
        **ERRORS,
        "--format": COMMON["--format"],
        **options(
            "--ignore-unknown --selection selection.json --method gp-irt --level 0.8 --estimand questions "
            "--target math --ranking --report out/page.html"
        ),
        "--model": "--model m3 --model m0",
    },
    no_effect={
        **none_lost("pairs"),
        ("pairs", "--ignore-unknown"): "the bank holds every item",
        ("ranking", "--ranking"): "it is on already",
        ("ranking", "--method"): "these models answered every item: nothing is estimated",
    },
    stops={("paired", "--selection"): "chose are not raw ones", ("selection", "--selection"): "chose need past models"},
    never={**MIXED, **MATCHED, **PAGES},
)
_PLAN = Case(
    modes={
        "sizes": Mode("bank --format json"),
        "half-width": Mode("bank --max-items 15 --half-width 0.2 --format json"),
        "difference": Mode("bank --max-items 15 --difference 0.2 --format json"),
        "floor": Mode("counts-bank --trials --format json"),
        "split": Mode("counts-bank --trials --budget 9000 --cost output_tokens --format json"),
    },
    values=options(
        "--format table --half-width 0.1 --difference 0.1 --target math --level 0.8 --estimand repeated --power 0.6 "
        "--max-items 11 --trials --budget 7000 --cost input_tokens --judged judged.csv"
    ),
    no_effect=dict.fromkeys([("floor", "--trials"), ("split", "--trials")], "it is given already"),
    nowhere=ONE_ATTEMPT,
    stops={
        ("half-width", "--difference"): "give half_width or difference, not both",
        ("difference", "--half-width"): "give half_width or difference, not both",
        ("sizes", "--trials"): "past models must have tried items several times",
    },
)

_ABOUT_PAGES = ("--output", "--bank")
_REPORT = Case(
    modes={
        "bank": Mode("bank -o out/page.html", about=_ABOUT_PAGES),
        "journal": Mode(
            "out/answered.jsonl --bank bank-2 -o out/page.html", brings=("answered.jsonl",), about=_ABOUT_PAGES
        ),
    },
    values=options("--output out/other.html --bank bank"),
    nowhere={"--bank": "a bank that is not the session's is refused, which names the option"},
)
CASES = {
    "calibrate": _CALIBRATE,
    "info": _INFO,
    "report": _REPORT,
    "select": _SELECT,
    "check": _CHECK,
    "estimate": _ESTIMATE,
    "compare": _COMPARE,
    "plan": _PLAN,
}
