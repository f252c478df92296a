"""Cases of scaling laws."""

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.reading import COMMON, READING, USABLE

_NOT_OURS = (
    *("--metric", "--filter", "--task", "--exclude-task", "--response", "--response-column", "--column"),
    *("--true-value", "--max-response"),
)
"""Options of reading that a response file of ours has no use for."""
_SUITE = (
    "suite.parquet --bank suite-bank --models suite-models.csv --law irsl --checked 1 --fewest-sizes 3 --format csv"
)
_DRAWN = "suite.parquet --bank suite-bank --models suite-models.csv --checked 0 --law irsl -o out/f.png --format csv"
_BANK = "--bank samples-bank"
_SAMPLES = "samples.parquet --only model-1 --k 1,10 --interval model-based --format csv"

CASES = {
    "scaling pretrain": Case(
        never=USABLE,
        modes={
            "files": Mode(
                _SUITE, about=(*_NOT_OURS, "--loss", "--figure", "--law", "--budget", "--level", "--target-flops")
            ),
            "figure of laws": Mode(f"{_DRAWN} --figure laws", about=("--recipe", "--output")),
        },
        values={
            **READING,
            **COMMON,
            "--builtin": "--builtin bytelms",
            "--target-flops": "--target-flops 1e15",
            "--bank": "--bank suite-bank",
            "--loss": "--loss losses.csv",
            "--recipe-column": "--recipe-column kind",
            "--drop-unknown": "--drop-unknown",
            "--law": "--law sigmoid",
            "--largest-flops": "--largest-flops 3e12",
            "--fewest-sizes": "--fewest-sizes 5",
            "--budget": "--budget 4",
            "--calibration-recipe": "--calibration-recipe recipe-0",
            "--checked": "--checked 0",
            "--level": "--level 0.8",
            "--item-model": "--item-model 1pl",
            "--family": "--family bernoulli",
            "--known-guessing": "--known-guessing",
            "--pooling": "--pooling none",
            "--shape": "--shape line",
            "--show": "--show curves",
            "--output": "-o out/laws.png",
            "--figure": "--figure abilities",
            "--recipe": "--recipe recipe-1",
            "--item": "--item item-0",
        },
    ),
    "scaling test-time": Case(
        never=USABLE,
        modes={
            "files": Mode(
                f"{_SAMPLES} {_BANK}",
                about=("--item-model", "--plan-k", "--only", "--k", "--method", "--level", *_NOT_OURS),
            ),
            "calibrating": Mode(_SAMPLES, about=("--item-model", "--bank")),
            "plan": Mode(f"{_SAMPLES} {_BANK} --half-width 0.05 --show plan", about=("--half-width", "--plan-k")),
            "budget": Mode(
                f"{_SAMPLES} {_BANK} --budget 10 --show errors", about=("--budget", "--seed", "--minimum-pass-rate")
            ),
        },
        values={
            **READING,
            **COMMON,
            "--builtin": "--builtin bytelms-samples",
            "--bank": _BANK,
            "--only": "--only model-2",
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
            "--output": "-o out/f.png",
        },
    ),
    "scaling transfer": Case(
        never=USABLE,
        modes={
            "files": Mode("two.parquet --source s0 --target s1 --format csv", about=("--share-easy", *_NOT_OURS)),
            "builtin": Mode(
                "--builtin bytelms --source copying --target reversal --force --format csv",
                about=("--response", "--metric", "--column"),
            ),
        },
        values={
            **READING,
            **COMMON,
            "--builtin": "--builtin bytelms",
            "--source": "--source s1",
            "--target": "--target s0",
            "--k": "--k 1,2",
            "--method": "--method common-scale",
            "--bank": "--bank two-bank",
            "--calibration-model": "".join(f" --calibration-model m{j}" for j in range(10)),
            "--share-easy": "--share-easy 0.3",
            "--folds": "--folds 3",
            "--warn-below": "--warn-below 0.99",
            "--force": "--force",
            "--group": "--group recipe",
            "--level": "--level 0.8",
            "--show": "--show models",
            "--output": "-o out/f.png",
        },
    ),
    "scaling validity": Case(
        never=USABLE,
        modes={
            "files": Mode("two.parquet --format csv", about=("--table", "--group", "--level", "--format", *_NOT_OURS)),
            "figure": Mode("two.parquet -o out/f.png --format csv", about=("--table", "--output")),
            "builtin": Mode("--builtin bytelms --format csv", about=tuple(READING)),
        },
        values={
            **READING,
            **COMMON,
            "--builtin": "--builtin bytelms",
            "--group": "--group recipe",
            "--level": "--level 0.8",
            "--table": "--table disattenuated",
            "--output": "-o out/other.png",
        },
    ),
}
PENDING = {"scaling pretrain", "scaling test-time", "scaling transfer", "scaling validity"}
"""Commands of which not every option has a mode yet in which it acts."""

KNOWN_SILENT: dict = {}
