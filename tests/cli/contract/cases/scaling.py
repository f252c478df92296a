"""Cases of scaling laws."""

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.reading import COMMON, PAGES, no_chance
from tests.cli.contract.scaling_world import N_PAST

_OF_BANK = "--bank suite-bank --law irsl --spec fitted-law.toml --format csv"
_PRETRAIN = Case(
    never=PAGES,
    nowhere={"--builtin": "it takes the place of RESPONSES; scaling transfer has a mode of each"},
    modes={
        "files": Mode(
            f"suite.parquet {_OF_BANK}",
            about=(
                *("--builtin", "--loss", "--bank", "--law", "--spec"),
                *("--target-flops", "--recipe-column", "--n-items", "--level"),
                *("--show", "--figure", "--kind", "--recipe", "--format"),
            ),
        ),
        "all laws": Mode(f"suite.parquet {_OF_BANK} --show all", about=("--law",)),
        "calibrating": Mode(
            "suite-known.parquet --law irsl --spec calibrating.toml --format csv",
            about=("--spec",),
            values={"--spec": "--spec other-law.toml"},
        ),
        "sigmoid": Mode("suite.parquet --law sigmoid --spec few-recipes.toml --format csv", about=("--bank", "--seed")),
        "two-step": Mode("suite.parquet --law two-step --spec few-recipes.toml --format csv", about=("--loss",)),
        "held out": Mode(
            "suite.parquet --bank suite-bank --law irsl --format csv --spec two-sizes.toml --show comparison",
            about=("--spec",),
            values={"--spec": "--spec one-size.toml"},
        ),
        "unknown compute": Mode(f"suite-unknown.parquet {_OF_BANK}", about=("--drop-unknown",), codes=(1,)),
        "figure of laws": Mode(
            f"suite.parquet {_OF_BANK} --figure out/f.png --kind laws", about=("--recipe", "--figure", "--kind")
        ),
    },
    values={
        **COMMON,
        **options(
            "--report out/page.html --builtin bytelms --target-flops 1e15 --bank samples-bank --loss losses.csv "
            "--recipe-column kind --drop-unknown --law sigmoid --n-items 4 --level 0.8 --spec bent-law.toml "
            "--show curves --figure out/laws.png --kind abilities --recipe recipe-1"
        ),
    },
    no_effect={("files", "--law"): "a CSV has the law that is named first, unless all are asked for"},
)

_ASKED = "--model model-1 --k 1,10 --format csv"
_KNOWN = f"--bank samples-bank --spec model-based.toml {_ASKED}"
_TEST_TIME = Case(
    never=PAGES,
    modes={
        "files": Mode(
            f"samples.parquet --method irsl {_KNOWN}",
            about=(
                *("--item-model", "--model", "--k", "--method", "--level", "--spec"),
                *("--seed", "--format", "--show", "--figure"),
            ),
        ),
        "unbiased": Mode(f"samples-gaps.parquet --method unbiased {_ASKED}", about=("--level", "--item-model")),
        "gaps": Mode(
            f"samples-gaps.parquet --method irsl {_KNOWN}",
            about=("--spec",),
            values={"--spec": "--spec unsampled.toml"},
        ),
        "calibrating": Mode(f"samples.parquet --method irsl-plug-in {_ASKED}", about=("--item-model", "--bank")),
        "budget": Mode(
            f"samples.parquet --method irsl {_KNOWN} --budget 10 --show errors",
            about=("--budget", "--seed", "--spec"),
            values={"--spec": "--spec without-rare.toml"},
        ),
        "builtin": Mode("--builtin bytelms-samples --method unbiased --k 1 --format csv", about=("--builtin",)),
    },
    values={
        **COMMON,
        **options(
            "--report out/page.html --builtin classifiers --bank samples-bank --model model-2 --k 1,20 --budget 12 "
            "--method unbiased --item-model 1pl --level 0.8 --spec by-errors.toml "
            "--show tail --figure out/f.png"
        ),
    },
    stops={("builtin", "--builtin"): "without counts"},
)

_PAST = "".join(f" --calibration-model m{j}" for j in range(N_PAST))
_SCORES = "--method scores --format csv"
_ONE_TO_OTHER = f"--source s0 --target s1 {_SCORES}"
_TRANSFER = Case(
    modes={
        "files": Mode(
            f"two.parquet {_ONE_TO_OTHER}{_PAST}",
            about=(
                *("--bank", "--k", "--target", "--method", "--level"),
                *("--show", "--calibration-model", "--figure", "--format"),
            ),
        ),
        "known models": Mode(
            f"two-known.parquet --show models --spec forced.toml {_ONE_TO_OTHER}{_PAST}", about=("--clusters",)
        ),
        "in turn": Mode(
            f"two.parquet --spec two-folds.toml {_ONE_TO_OTHER}",
            about=("--spec", "--seed"),
            values={"--spec": "--spec three-folds.toml"},
        ),
        "easy to hard": Mode(f"two.parquet --source s0 {_SCORES}{_PAST}", about=("--spec",), codes=(1,)),
        "forced": Mode(
            f"two.parquet --source s0 --spec forced.toml {_SCORES}{_PAST}",
            about=("--spec", "--source", "--target"),
            values={"--target": "--target s1"},
        ),
        "counts": Mode(
            f"samples.parquet --source math --target code --spec forced.toml {_SCORES}"
            + "".join(f" --calibration-model model-{j}" for j in range(1, 6)),
            about=("--k",),
        ),
        "new models": Mode(f"two-new.parquet {_ONE_TO_OTHER}", about=("--bank",), codes=(1,)),
        "builtin": Mode(
            f"--builtin bytelms --source copying --target reversal --spec two-folds.toml {_SCORES}",
            about=("--builtin",),
        ),
        "validity": Mode(
            "two.parquet --show validity --format csv",
            about=("--clusters", "--level", "--format", "--seed", "--source", "--method", "--bank"),
            values={"--clusters": "--clusters recipe"},
        ),
        "validity of groups": Mode("two.parquet --show validity --clusters recipe --format csv", about=("--seed",)),
        "validity of a pair": Mode(
            "two.parquet --show validity --source s0 --target s1 --figure out/g.png", about=("--source", "--figure")
        ),
    },
    values={
        **COMMON,
        **options(
            "--builtin classifiers --source s1 --target s0 --k 1,2 --method common-scale "
            "--bank two-bank --spec few-easy.toml --clusters kind --level 0.8 --show models --figure out/f.png"
        ),
        "--calibration-model": f"--calibration-model m{N_PAST}",
    },
    no_effect=no_chance("validity"),
    stops={("builtin", "--builtin"): "'copying'"},
)

CASES = {"scaling pretrain": _PRETRAIN, "scaling test-time": _TEST_TIME, "scaling transfer": _TRANSFER}
