"""Cases of scaling laws."""

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.reading import COMMON, PAGES, no_chance
from tests.cli.contract.scaling_world import N_PAST

_FITTED = "--checked 0 --format csv"
_OF_BANK = f"--bank suite-bank --law irsl --spec plain-law.toml {_FITTED}"
_FEW = "--spec few-recipes.toml"
_DECIDED = "--splits 1 --calibrating 1 --method 1PL --format csv"
_PRETRAIN = Case(
    never=PAGES,
    nowhere={
        "--builtin": "it takes the place of RESPONSES; scaling validity has a mode of each",
    },
    modes={
        "files": Mode(
            f"suite.parquet {_OF_BANK}",
            about=(
                *("--builtin", "--loss", "--bank", "--law", "--spec"),
                *("--target-flops", "--recipe-column", "--budget", "--level"),
                *("--show", "--figure", "--kind", "--recipe", "--item", "--format"),
            ),
        ),
        "calibrating": Mode(
            f"suite-known.parquet --law irsl --spec calibrating.toml {_FITTED}",
            about=("--spec",),
            values={"--spec": "--spec other-law.toml"},
        ),
        "sigmoid": Mode(f"suite.parquet --law sigmoid {_FEW} {_FITTED}", about=("--bank", "--seed")),
        "two-step": Mode(f"suite.parquet --law two-step {_FEW} {_FITTED}", about=("--loss",)),
        "held out": Mode(
            f"suite.parquet {_OF_BANK} --checked 2 --spec two-sizes.toml --show comparison",
            about=("--checked",),
        ),
        "unknown compute": Mode(
            f"suite-unknown.parquet {_OF_BANK}", about=("--drop-unknown",), codes=(1,)
        ),
        "figure of laws": Mode(
            f"suite.parquet {_OF_BANK} --figure out/f.png --kind laws", about=("--recipe", "--figure", "--kind")
        ),
        "figure of items": Mode(
            f"suite.parquet {_OF_BANK} --figure out/f.png --kind items --item item-1", about=("--item",)
        ),
    },
    values={
        "--report": "--report out/page.html",
        **COMMON,
        "--builtin": "--builtin bytelms",
        "--target-flops": "--target-flops 1e15",
        "--bank": "--bank samples-bank",
        "--loss": "--loss losses.csv",
        "--recipe-column": "--recipe-column kind",
        "--drop-unknown": "--drop-unknown",
        "--law": "--law sigmoid",
        "--budget": "--budget 4",
        "--checked": "--checked 1",
        "--level": "--level 0.8",
        "--spec": "--spec bent-law.toml",
        "--show": "--show curves",
        "--figure": "--figure out/laws.png",
        "--kind": "--kind abilities",
        "--recipe": "--recipe recipe-1",
        "--item": "--item item-2",
    },
    stops={
    },
)  # fmt: skip

_ASKED = "--model model-1 --k 1,10 --format csv"
_KNOWN = f"--bank samples-bank --interval model-based {_ASKED}"
_TEST_TIME = Case(
    never=PAGES,
    modes={
        "files": Mode(
            f"samples.parquet --method irsl {_KNOWN}",
            about=(
                *("--item-model", "--plan-k", "--model", "--k", "--method", "--level", "--interval"),
                *("--minimum-pass-rate", "--half-width", "--seed", "--format", "--show", "--figure"),
            ),
        ),
        "unbiased": Mode(
            f"samples-gaps.parquet --method unbiased {_ASKED}",
            about=("--level", "--interval", "--item-model", "--half-width"),
        ),
        "gaps": Mode(f"samples-gaps.parquet --method irsl {_KNOWN}", about=("--include-unsampled",)),
        "calibrating": Mode(f"samples.parquet --method irsl-plug-in {_ASKED}", about=("--item-model", "--bank")),
        "plan": Mode(
            f"samples.parquet --method unbiased --bank samples-bank --half-width 0.05 --show plan {_ASKED}",
            about=("--half-width", "--plan-k", "--level"),
        ),
        "budget": Mode(
            f"samples.parquet --method irsl {_KNOWN} --budget 10 --show errors",
            about=("--budget", "--seed", "--minimum-pass-rate"),
        ),
        "builtin": Mode("--builtin bytelms-samples --method unbiased --k 1 --format csv", about=("--builtin",)),
    },
    values={
        "--report": "--report out/page.html",
        **COMMON,
        "--builtin": "--builtin classifiers",
        "--bank": "--bank samples-bank",
        "--model": "--model model-2",
        "--k": "--k 1,20",
        "--budget": "--budget 12",
        "--method": "--method unbiased",
        "--item-model": "--item-model 1pl",
        "--minimum-pass-rate": "--minimum-pass-rate 0.3",
        "--include-unsampled": "--include-unsampled",
        "--level": "--level 0.8",
        "--interval": "--interval calibrated",
        "--half-width": "--half-width 0.02",
        "--plan-k": "--plan-k 1",
        "--show": "--show tail",
        "--figure": "--figure out/f.png",
    },
    stops={
        ("builtin", "--builtin"): "without counts",
    },
)

_PAST = "".join(f" --calibration-model m{j}" for j in range(N_PAST))
_SCORES = "--method scores --format csv"
_ONE_TO_OTHER = f"--source s0 --target s1 {_SCORES}"
_TRANSFER = Case(
    never=PAGES,
    modes={
        "files": Mode(
            f"two.parquet {_ONE_TO_OTHER}{_PAST}",
            about=(
                *("--bank", "--k", "--target", "--method", "--level"),
                *("--show", "--calibration-model", "--figure", "--format"),
            ),
        ),
        "known models": Mode(f"two-known.parquet --show models --force {_ONE_TO_OTHER}{_PAST}", about=("--group",)),
        "in turn": Mode(
            f"two.parquet --spec two-folds.toml --force {_ONE_TO_OTHER}",
            about=("--spec", "--seed"),
            values={"--spec": "--spec three-folds.toml"},
        ),
        "easy to hard": Mode(f"two.parquet --source s0 {_SCORES}{_PAST}", about=("--force",), codes=(1,)),
        "forced": Mode(
            f"two.parquet --source s0 --force {_SCORES}{_PAST}",
            about=("--spec", "--source", "--target"),
            values={"--target": "--target s1"},
        ),
        "counts": Mode(
            f"samples.parquet --source math --target code --force {_SCORES}"
            + "".join(f" --calibration-model model-{j}" for j in range(1, 6)),
            about=("--k",),
        ),
        "new models": Mode(f"two-new.parquet {_ONE_TO_OTHER}", about=("--bank",), codes=(1,)),
        "builtin": Mode(
            f"--builtin bytelms --source copying --target reversal --spec two-folds.toml --force {_SCORES}",
            about=("--builtin",),
        ),
    },
    values={
        "--report": "--report out/page.html",
        **COMMON,
        "--builtin": "--builtin classifiers",
        "--source": "--source s1",
        "--target": "--target s0",
        "--k": "--k 1,2",
        "--method": "--method common-scale",
        "--bank": "--bank two-bank",
        "--calibration-model": f"--calibration-model m{N_PAST}",
        "--spec": "--spec few-easy.toml",
        "--force": "--force",
        "--group": "--group kind",
        "--level": "--level 0.8",
        "--show": "--show models",
        "--figure": "--figure out/f.png",
    },
    stops={
        ("builtin", "--builtin"): "'copying'",
    },
)
_VALIDITY = Case(
    never=PAGES,
    modes={
        "files": Mode(
            "two.parquet --format csv", about=("--kind", "--group", "--level", "--format", "--seed")
        ),
        "groups": Mode("two.parquet --group recipe --format csv", about=("--seed",)),
        "figure": Mode("two.parquet --figure out/f.png --format csv", about=("--kind", "--pair", "--figure")),
        "builtin": Mode("--builtin bytelms --format csv", about=("--builtin",),
                        values={"--builtin": "--builtin bytelms:probability"}),
    },
    values={
        "--report": "--report out/page.html",
        **COMMON,
        "--builtin": "--builtin classifiers",
        "--group": "--group recipe",
        "--level": "--level 0.8",
        "--kind": "--kind disattenuated",
        "--pair": "--pair s0 s1",
        "--figure": "--figure out/other.png",
    },
    no_effect=no_chance("files"),
)  # fmt: skip

_COARSE = "it does not change which of three recipes is better; tests/cli/test_scaling_pretrain.py has it"
_DECISIONS = Case(
    nowhere={
        **dict.fromkeys(("--loss", "--recipe-column"), _COARSE),
        "--builtin": "it takes the place of RESPONSES; scaling validity has a mode of each",
    },
    modes={
        "files": Mode(
            f"suite.parquet {_DECIDED}",
            about=(
                *("--builtin", "--accuracy", "--loss", "--recipe-column", "--method", "--splits"),
                *("--calibrating", "--budget", "--show", "--figure", "--seed", "--format"),
            ),
        ),
        "unknown compute": Mode(f"suite-unknown.parquet {_DECIDED}", about=("--drop-unknown",), codes=(1,)),
    },
    values={
        **COMMON,
        "--drop-unknown": "--drop-unknown",
        "--builtin": "--builtin bytelms",
        "--accuracy": "--accuracy suite-right.parquet",
        "--loss": "--loss losses.csv",
        "--recipe-column": "--recipe-column kind",
        "--method": "--method 2PL",
        "--splits": "--splits 2",
        "--calibrating": "--calibrating 3",
        "--budget": "--budget 1",
        "--show": "--show scenarios",
        "--figure": "--figure out/decisions.png",
    },
    no_effect={("files", "--recipe-column"): "the column has the same recipes by other names"},
    stops={
        ("files", "--calibrating"): "two recipes at least must be left to order",
    },
)
CASES = {
    "scaling decisions": _DECISIONS,
    "scaling pretrain": _PRETRAIN,
    "scaling test-time": _TEST_TIME,
    "scaling transfer": _TRANSFER,
    "scaling validity": _VALIDITY,
}
