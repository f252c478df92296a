"""Cases of commands that make banks, change them, publish them or begin with one."""

from tests.cli.contract.case import COMMON, JQ, MATCHED, MIXED, ONCE, PAGES, Case, each, mode, no_chance, none_lost

_INFO_OF_IT = (("info out/bank --format csv", ""),)


def _calibrate(words, about="--item-model --dims --method --family --spec", **more):
    """The bank counts by what `info` says of it and by its tables, not by the settings that it keeps."""
    return mode(f"{words} -o out/bank --no-folds", about, unseen="bank.json", then=_INFO_OF_IT, **more)


def _start(words, about, **more):
    return mode(f"--items {words} -o out/bank", about, then=_INFO_OF_IT, **more)


_CALIBRATE = Case(
    modes={
        "map": _calibrate("flipped.parquet --method map --dims 1", ""),
        "variational": _calibrate("tiny.parquet --dims 1", "--spec"),
        "1pl": _calibrate("tiny.csv --item-model 1pl", "--dims"),
        "chosen dims": _calibrate("tiny.csv --method map", "--dims --item-model", values="--dims 3"),
        "mml": _calibrate("tiny.csv --method mml --dims 1", "--family --item-model"),
        "nested": _calibrate("past.csv --method map --item-model nested --dims 2", "--family"),
        "probabilities": _calibrate("probabilities.csv --dims 1 --family beta", ""),
        "counts": _calibrate("counts.csv --method map --dims 1", "--family"),
        "items alone": _start(
            "items.csv", "--items --output --within --format --folds --method --dims", unseen="bank.json"
        ),
        "items with parameters": _start("parameters.csv", "--parameters"),
        "known parameters": _start("tinyBenchmarks.pkl --parameters --benchmark mmlu", "--benchmark"),
        "replacing": mode(
            "past.csv --method map --dims 1 --no-folds -o out/two-bank", "--force", brings="two-bank", codes=(1,)
        ),
    },
    values="--format json --jobs 2 --output out/other --items items.csv --item-model 1pl --dims 2 --method mml "
    "--family beta --within custom --across items --spec guessing.toml --folds --force --parameters --benchmark lb",
    no_effect={
        **each("--force", "nothing stands there", "map", "probabilities"),
        ("probabilities", "--family"): "it is this family already",
        ("items alone", "--items"): "it is this table already",
    },
    nowhere={"--items": "with past results it is refused or says nothing new, and alone one table is at hand"},
    never={"--jobs": "numbers do not depend on the number of processes"},
    stops={
        **each("--family", "no family 'beta'", "map", "mml", "counts", "nested"),
        ("probabilities", "--spec"): "known guessing needs a column",
        ("probabilities", "--within"): "custom score weights need a column 'weight'",
    },
)
_INFO = Case(
    modes={
        "facts": mode("bank", "--format --log"),
        "history": mode("retired-bank --log", "--format --log"),
        "differences": mode("named-bank retired-bank", "--format --log"),
    },
    values="--log --format json",
    no_effect={("history", "--log"): "it is on already"},
)
_SELECT = Case(
    modes={
        "auto": mode("bank -n 7 --format csv", "--method --n-items --spec"),
        "random": mode("bank -n 7 --method random --format csv"),
        "v-optimal": mode("bank -n 7 --method v-optimal --format csv"),
        "design": mode("bank-2 -n 7 --method optimal-design --format csv"),
        "d-optimal": mode("bank-2 -n 7 --method optimal-design --spec design.toml --format csv", "--spec"),
        "random design": mode("bank -n 7 --method optimal-design --spec random-design.toml --format csv"),
        "ids": mode("bank -n 7 --method random --ids list", "--output --ids --format --seed"),
        "file": mode("bank -n 7 --method random -o out/s.json", "--output --format", unseen="s.json"),
        "next stage": mode("bank --after alone.csv --selection stage1.json --format csv"),
    },
    values=f"{COMMON} --jobs 2 --n-items 12 --stages 2 --after another.csv --selection other-stage1.json "
    "--per-scenario --output out/selection.json --ids swe-bench --method stratified --target law --predict law "
    "--spec other-design.toml --exclude exclude.txt --must-include include.txt",
    no_effect={**no_chance("v-optimal", "design"), ("random design", "--target"): "it draws whatever is wanted"},
    stops={
        ("next stage", "--after"): "chosen for one model, from its own answers, got 2 models",
        ("random", "--spec"): "the file must be empty",
        ("v-optimal", "--spec"): "keys of the file must be among",
        ("random design", "--method"): "keys of the file must be among",
    },
    never={"--jobs": "numbers do not depend on the number of processes"},
)
_ACCURACY = "bank whole.csv --only accuracy"
_CHECK = Case(
    modes={
        "choose": mode(f"{_ACCURACY} -n 9 --format csv", "--n-items --format --known --by --most", codes=(0, 3)),
        "selection": mode(
            f"{_ACCURACY} --selection selection.json --format csv", "--selection --n-items", codes=(0, 3)
        ),
        "fit": mode("bank past.csv --only fit --format json", "--only --group --reference --since", codes=(0, 3)),
        "drift": mode("bank past.csv --only drift --format json", "--since --group --n-items"),
        "items": mode("flipped.csv -o out/audit.csv --format json"),
        "text": mode("faulty.parquet", "--sort --most --reason --format --output"),
        "groups": mode("all-known.parquet --by size --format json", "--by --clusters"),
        "items of a bank": mode("bank -o out/audit.csv --format json"),
    },
    values="--format json --match hash --n-items 12 --selection random.json --ignore-unknown --only drift "
    "--group public=selection.json --reference random.json --since 2025-01-31 --known exclude.txt "
    "--choices choices.csv --by family --clusters family --sort key-ratio --reason dead --most 3 --fail-on dead "
    "--output out/other.csv --jq . --report out/page.html",
    no_effect={
        **each("--reason --most", "no item is flagged", "items", "items of a bank"),
        **each("--format", "it is JSON already", "items", "items of a bank"),
    },
    never={
        **PAGES,
        **MATCHED,
        **JQ,
        "--ignore-unknown": "no full run here has more items; tests/cli/test_check.py has one",
        "--since": "no results here have dates; tests/cli/test_check.py has some",
        "--fail-on": "it ends the command with code 1: tests/cli/test_check.py",
    },
    stops={("items", "--by"): "the models must have a column 'family'"},
)
_BY_MODEL = "--method p-irt --interval model-based --format csv"
_WHOLE = ("table", "model-based", "design")
_ESTIMATE = Case(
    modes={
        "table": mode(
            "bank one.csv --selection selection.json --method p-irt --format csv", values="--interval model-based"
        ),
        "model-based": mode("bank one.csv --method gp-irt --interval model-based --format csv"),
        "design": mode(
            "bank whole.csv --selection random.json --interval design --format csv", values="--selection selection.json"
        ),
        "stacked": mode("bank one.csv --selection selection.json --format csv", "--parent"),
        "target": mode(f"retired-bank one.csv {_BY_MODEL}", "--target"),
        "unknown items": mode(f"bank more.csv {_BY_MODEL}", "--ignore-unknown", codes=(1,)),
        "lost": mode(f"bank lost.csv {_BY_MODEL}", "--errors"),
    },
    values="--allow-mixed-prompts --jq . --errors wrong --match hash --format json --ignore-unknown "
    "--selection random.json --method weighted --interval calibrated --estimand repeated --level 0.8 --target quiz@1 "
    "--parent auto --report out/page.html",
    no_effect={**each("--ignore-unknown", "the bank holds every item", *_WHOLE), **none_lost(*_WHOLE)},
    never={**MIXED, **MATCHED, **PAGES},
    nowhere=ONCE,
    stops={
        ("design", "--method"): "design-based intervals bring their own estimate",
        **each("--parent", "a parent is weighed with", *_WHOLE),
        ("design", "--selection"): "need the probability with which each item was drawn",
    },
)
_CHOICES = "--model --selection --method --level --estimand --target --ranking"
_TURNED = "--model m15 --model m14"
_COMPARE = Case(
    modes={
        "pairs": mode("bank flipped.csv one.csv --model m14 --model m15 --method p-irt --format csv"),
        "paired": mode("bank one.csv --method paired --format csv", _CHOICES, _TURNED),
        "selection": mode("bank one.csv --selection random.json --method mean --format csv", _CHOICES, _TURNED),
        "ranking": mode("bank past.csv --ranking --format csv --method p-irt", _CHOICES, "--estimand run"),
        "unknown items": mode("bank more.csv --method paired --format csv", "--ignore-unknown", codes=(1,)),
        "no bank": mode("flipped.csv one.csv --format csv", "--model --level --estimand --target", "--estimand run"),
        "lost": mode("bank lost.csv --method p-irt --format csv", "--errors"),
    },
    values="--allow-mixed-prompts --jq . --errors wrong --match hash --format json --ignore-unknown "
    "--selection selection.json --method gp-irt --level 0.8 --estimand questions --target math --ranking "
    "--report out/page.html --model m3 --model m0",
    no_effect={
        **none_lost("pairs"),
        ("pairs", "--ignore-unknown"): "the bank holds every item",
        ("ranking", "--ranking"): "it is on already",
        ("ranking", "--method"): "these models answered every item: nothing is estimated",
    },
    stops={("paired", "--selection"): "chose are not raw ones", ("selection", "--selection"): "chose need past models"},
    never={**MIXED, **MATCHED, **PAGES},
)
_BOTH_GOALS = "give half_width or difference, not both"
_PLAN = Case(
    modes={
        "sizes": mode("bank --format json"),
        "half-width": mode("bank --max-items 15 --half-width 0.2 --format json"),
        "difference": mode("bank --max-items 15 --difference 0.2 --format json"),
        "floor": mode("counts-bank --trials --format json"),
        "split": mode("counts-bank --trials --budget 9000 --cost output_tokens --format json"),
    },
    values="--format table --half-width 0.1 --difference 0.1 --target math --level 0.8 --estimand repeated "
    "--power 0.6 --max-items 11 --trials --budget 7000 --cost input_tokens --judged judged.csv",
    no_effect=each("--trials", "it is given already", "floor", "split"),
    nowhere=ONCE,
    stops={
        ("half-width", "--difference"): _BOTH_GOALS,
        ("difference", "--half-width"): _BOTH_GOALS,
        ("sizes", "--trials"): "past models must have tried items several times",
    },
)
_REPORT = Case(
    modes={
        "bank": mode("bank -o out/page.html", "--output --bank"),
        "journal": mode(
            "out/answered.jsonl --bank bank-2 -o out/page.html", "--output --bank", brings="answered.jsonl"
        ),
    },
    values="--output out/other.html --bank bank",
    nowhere={"--bank": "a bank that is not the session's is refused, which names the option"},
)


def _writing(words, values, *, nowhere=""):
    """A bank counts by its history; its files are compared, too."""
    modes = {
        "new": mode(f"{words} -o out/made", then=(("info out/made --log --format json", ""),)),
        "replacing": mode(f"{words} -o out/two-bank", "--force", brings="two-bank", codes=(1,)),
    }
    if "--dry-run" in values:
        modes["dry run"] = mode(f"{words} --dry-run", "--format --how --output --status")
    return Case(
        modes,
        f"--output out/other --force --format csv {values}",
        no_effect={("new", "--force"): "nothing stands there"},
        never={name: why for name, why in MIXED.items() if name in values},
        nowhere=each(nowhere, "a bank that is to be written is refused with it"),
    )


_HUB = "it needs the Hub: tests/living/publishing/test_hub.py sees it at work against a stand-in"
_BUILT = "it writes into the user's folder: tests/cli/test_bank.py sees it at work"
_PUSH = "--private --no-responses --license --include-column --drop-column --format"


def _elsewhere(words, names, reason, code):
    return Case({"refused": mode(words, codes=(code,))}, names, never=each(names, reason))


CASES = {
    "calibrate": _CALIBRATE,
    "info": _INFO,
    "report": _REPORT,
    "select": _SELECT,
    "check": _CHECK,
    "estimate": _ESTIMATE,
    "compare": _COMPARE,
    "plan": _PLAN,
    "bank retire": _writing("named-bank math/0 --reason key", "--reason noise --status suspect --label clean"),
    "bank note": _writing("named-bank text", "--name other"),
    "bank add-items": _writing(
        "bank late.csv", "--allow-mixed-prompts --dry-run --status field-test --how random", nowhere="--dry-run"
    ),
    "bank add-models": _writing("bank one.csv", "--allow-mixed-prompts --how random --selection random.json"),
    "bank add-scores": _writing("named-bank models.csv --score size", "--score number"),
    "bank recalibrate": _writing("bank one.csv --how random", "--allow-mixed-prompts --how fixed"),
    "bank list": Case({"list": mode("")}, "--format json"),
    "bank build": _elsewhere("nothing", "--from --force --format", _BUILT, 2),
    "export ids": Case(
        {"printed": mode("bank --selection selection.json", values="--selection random.json")},
        "--selection selection.json --form harbor",
    ),
    "publish-tiny": Case(
        {
            "chosen here": mode("bank -n 9 -o out/tiny"),
            "given": mode("bank --selection selection.json -o out/tiny", values="--selection random.json"),
        },
        "--n-items 12 --selection selection.json --output out/other --license mit --include-column nothing "
        "--drop-column n_options --force --format json",
        stops=each("--include-column", "got 'nothing'", "chosen here", "given"),
        never={"--force": "tests/living/publishing/test_tiny.py sees it replace what is there"},
    ),
    "push": _elsewhere("bank hf:me/bank", _PUSH, _HUB, 1),
    "pull": _elsewhere("hf:me/bank -o out/bank", "--output --force", _HUB, 1),
}
