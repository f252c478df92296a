"""Cases of scaling laws."""

from tests.cli.contract.case import Case, Mode, options
from tests.cli.contract.cases.reading import PAGES

_OF_BANK = "--bank suite-bank --law irsl --spec fitted-law.toml --format csv"
_PRETRAIN = Case(
    never=PAGES,
    nowhere={"--builtin": "it takes the place of RESPONSES; scaling transfer has a mode of each"},
    modes={
        "files": Mode(
            f"suite.parquet {_OF_BANK}",
            about=(
                *("--builtin", "--loss", "--bank", "--law", "--spec"),
                "--target-flops",
                *("--show", "--figure", "--kind", "--format"),
            ),
        ),
        "all laws": Mode(f"suite.parquet {_OF_BANK} --show all", about=("--law",)),
        "calibrating": Mode(
            "suite-known.parquet --law irsl --spec calibrating.toml --format csv",
            about=("--spec",),
            values={"--spec": "--spec other-law.toml"},
        ),
        "sigmoid": Mode("suite.parquet --law sigmoid --spec few-recipes.toml --format csv", about=("--bank",)),
        "two-step": Mode("suite.parquet --law two-step --spec few-recipes.toml --format csv", about=("--loss",)),
        "held out": Mode(
            "suite.parquet --bank suite-bank --law irsl --format csv --spec two-sizes.toml --show comparison",
            about=("--spec",),
            values={"--spec": "--spec one-size.toml"},
        ),
        "unknown compute": Mode(f"suite-unknown.parquet {_OF_BANK}", about=("--drop-unknown",), codes=(1,)),
        "figure of laws": Mode(
            f"suite.parquet {_OF_BANK} --figure out/f.png --kind laws", about=("--figure", "--kind")
        ),
    },
    values={
        "--format": "--format json",
        **options(
            "--report out/page.html --builtin bytelms --target-flops 1e15 --bank samples-bank --loss losses.csv "
            "--drop-unknown --law sigmoid --spec bent-law.toml --show curves --figure out/laws.png --kind abilities"
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
            about=(*("--model", "--k", "--method", "--spec"), *("--format", "--show", "--figure")),
        ),
        "unbiased": Mode(f"samples-gaps.parquet --method unbiased {_ASKED}", about=("--bank",)),
        "gaps": Mode(
            f"samples-gaps.parquet --method irsl {_KNOWN}",
            about=("--spec",),
            values={"--spec": "--spec unsampled.toml"},
        ),
        "calibrating": Mode(f"samples.parquet --method irsl-plug-in {_ASKED}", about=("--bank",)),
        "budget": Mode(
            f"samples.parquet --method irsl {_KNOWN} --budget 10 --show errors",
            about=("--budget", "--spec"),
            values={"--spec": "--spec without-rare.toml"},
        ),
        "builtin": Mode("--builtin bytelms-samples --method unbiased --k 1 --format csv", about=("--builtin",)),
    },
    values={
        "--format": "--format json",
        **options(
            "--report out/page.html --builtin classifiers --bank samples-bank --model model-2 --k 1,20 --budget 12 "
            "--method unbiased --spec by-errors.toml "
            "--show tail --figure out/f.png"
        ),
    },
    stops={("builtin", "--builtin"): "without counts"},
)

_SCORES = "--method scores --format csv"
_ONE_TO_OTHER = f"--source s0 --target s1 {_SCORES}"
_TRANSFER = Case(
    modes={
        "files": Mode(
            f"two.parquet --spec forced.toml {_ONE_TO_OTHER}",
            about=(*("--bank", "--k", "--target", "--method"), *("--show", "--figure", "--format")),
        ),
        "known models": Mode(
            f"two-known.parquet --show models --spec forced.toml {_ONE_TO_OTHER}", about=("--clusters",)
        ),
        "in turn": Mode(
            f"two.parquet --spec two-folds.toml {_ONE_TO_OTHER}",
            about=("--spec",),
            values={"--spec": "--spec three-folds.toml"},
        ),
        "easy to hard": Mode(f"two.parquet --source s0 {_SCORES}", about=("--spec",), codes=(1,)),
        "forced": Mode(
            f"two.parquet --source s0 --spec forced.toml {_SCORES}",
            about=("--spec", "--source", "--target"),
            values={"--target": "--target s1"},
        ),
        "counts": Mode(f"samples.parquet --source math --target code --spec forced.toml {_SCORES}", about=("--k",)),
        "new models": Mode(f"two-new.parquet {_ONE_TO_OTHER}", about=("--bank",), codes=(1,)),
        "builtin": Mode(
            f"--builtin bytelms --source copying --target reversal --spec two-folds.toml {_SCORES}",
            about=("--builtin",),
        ),
        "validity": Mode(
            "two.parquet --show validity --format csv",
            about=("--clusters", "--format", "--source", "--method", "--bank"),
            values={"--clusters": "--clusters recipe"},
        ),
        "validity of a pair": Mode(
            "two.parquet --show validity --source s0 --target s1 --figure out/g.png", about=("--source", "--figure")
        ),
    },
    values={
        "--format": "--format json",
        **options(
            "--builtin classifiers --source s1 --target s0 --k 1,2 --method common-scale "
            "--bank two-bank --spec few-easy.toml --clusters kind --show models --figure out/f.png"
        ),
    },
    stops={
        ("builtin", "--builtin"): "'copying'",
        ("files", "--bank"): "models asked about must not be past models of the bank",
    },
)

CASES = {"scaling pretrain": _PRETRAIN, "scaling test-time": _TEST_TIME, "scaling transfer": _TRANSFER}
