"""What is attacked: each kind of file that itembank reads or writes, and the commands that are given it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from itembank.sessions.journal import encode_line
from tests.attacks.workplace import FAST
from tests.bank.crafted_banks import sign
from tests.readers.test_lighteval import DATE as LIGHTEVAL_DATE

JSON = ("--format", "json")
READ = ("import",)
TO = ("-o", "out.parquet", *JSON)
LOG = "logs/org__one"
DATE = "2025-03-01T10-00-00.000001"
LAW = ("scaling", "pretrain", "suite.parquet", "--law", "sigmoid", "--spec", "unchecked.toml", *JSON)
STUDY = ("study.toml", "-o", "study", "--jobs", "1")
PREDICTION = ("prediction.toml", "-o", "prediction", "--jobs", "1")


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of file under attack.

    Attributes
    ----------
    file : str
        Its place in the workplace, and in the folder of each case.
    commands : tuple of tuples of str
        What is run on it, one after the other.
    beside : tuple of str
        Other files and folders that the commands need.
    writes : tuple of str
        What the commands may leave: files, or folders with all that is in them.
    is_gzipped : bool
        Damage what is packed, and pack it again.
    is_standard_input : bool
        The commands read it there.
    sign : function, optional
        Makes the checksums right again for what is damaged, as somebody who means harm would.
    """

    file: str
    commands: tuple[tuple[str, ...], ...]
    beside: tuple[str, ...] = ()
    writes: tuple[str, ...] = ("out.parquet",)
    is_gzipped: bool = False
    is_standard_input: bool = False
    sign: Callable[[Path], None] | None = None


def sign_bank(file: Path) -> None:
    """Write the record of a bank anew so that every checksum is right."""
    sign(file.parent, json.loads((file.parent / "bank.json").read_text(encoding="utf-8")))


def sign_journal(path: Path) -> None:
    """Write the lines of a journal anew so that every check is right."""
    content, check = b"", ""
    for text in path.read_bytes().splitlines():
        record = json.loads(text)
        record.pop("check", None)
        line, check = encode_line(record, check)
        content += line
    path.write_bytes(content)


def sign_selection(path: Path) -> None:
    """Take the digest out of a selection."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content.pop("sha256", None)
    path.write_text(json.dumps(content), encoding="utf-8")


ESTIMATE = ("estimate", "bank", "new.csv", *FAST, *JSON)
PAGE = ("-o", "page.html")
BANK = (
    ("info", "bank", *JSON),
    ESTIMATE,
    ("select", "bank", "-n", "6", "--method", "anchor-irt", *JSON),
    ("check", "bank", *JSON),
)
CHANGED_BANK = (
    ("info", "retired", "--log", *JSON),
    ("estimate", "retired", "new.csv", "--target", "quiz@1", *FAST, *JSON),
    ("bank", "retire", "retired", "math/0", "--status", "active", "--reason", "right", "-o", "back", *JSON),
    ("info", "named", "retired", *JSON),
    ("bank", "merge", "retired", "named", "-o", "back", "--force", *JSON),
)
SESSION = (
    ("session", "status", "run.jsonl", *JSON),
    ("session", "ask", "run.jsonl"),
    ("session", "tell", "run.jsonl", "math/15", "--response", "1"),
    ("import", "run.jsonl", "-o", "told.parquet", *JSON),
    ("check", "bank", "run.jsonl", *JSON),
    ("report", "run.jsonl", *PAGE),
)
SELECTION = (
    (*ESTIMATE, "--selection", "selection.json"),
    ("compare", "bank", "new.csv", "other.csv", "--selection", "selection.json", "--method", "p-irt", *JSON),
)
PUBLISH = ("publish-tiny", "bank", "--selection", "selection.json", "-o", "tiny", *JSON)
OF_OTHER_TOOLS = {
    "alpaca-eval": "alpaca/results/a/weighted_alpaca_eval_gpt4_turbo/annotations.json",
    "bfcl": "bfcl/score/a/non_live/BFCL_v4_simple_score.json",
    "eee": "eee/l0/00000000-0000-4000-8000-000000000000_samples.jsonl",
    "evalplus": "evalplus/a_eval_results.json",
    "evalscope": "evalscope/l0/reviews/l0/arc.jsonl",
    "helm": "helm/l0/runs/v1/arc:model=l0/per_instance_stats.json",
    "inspect": "inspect/0-arc.eval",
    "lighteval": f"lighteval/l0/details/l0/{LIGHTEVAL_DATE}/details_arc_{LIGHTEVAL_DATE}.parquet",
    "livecodebench": "livecodebench/a/Scenario.codegeneration_2_0.2_eval_all.json",
    "opencompass": "opencompass/l0/results/l0/arc.json",
    "swe-bench": "reports/a.run.json",
}
"""By the format that `--as` names."""


def _bank_files() -> dict[str, Target]:
    files = ("bank.json", "items.parquet", "models.parquet", "responses.parquet", "arrays.safetensors")
    targets = {}
    for name in files:
        targets[f"bank: {name}"] = Target(f"bank/{name}", BANK, ("bank", "new.csv"))
        targets[f"bank, signed: {name}"] = Target(f"bank/{name}", BANK, ("bank", "new.csv"), sign=sign_bank)
        targets[f"changed bank, signed: {name}"] = Target(
            f"retired/{name}", CHANGED_BANK, ("retired", "named", "new.csv"), ("back",), sign=sign_bank
        )
    return targets


def _of_other_tools() -> dict[str, Target]:
    """Logs and results of other tools, each file with the folder that it lies in, and a file of a shape of its own."""
    columns = ("--column", "item_id=doc.id", "--column", "response=marks.acc", "--model-id", "a")
    targets = {
        tool: Target(file, (("import", file.split("/")[0], "--as", tool, *TO),), (file.split("/")[0],))
        for tool, file in OF_OTHER_TOOLS.items()
    }
    return targets | {
        "JSON": Target("deep.json", (("import", "deep.json", "--as", "json", "--column", "rows=rows", *columns, *TO),))
    }


TARGETS = {
    "long CSV": Target("long.csv", ((*READ, "long.csv", *TO),)),
    "wide CSV": Target("wide.csv", ((*READ, "wide.csv", *TO),)),
    "counts CSV": Target("counts.csv", ((*READ, "counts.csv", "--repeats", "count", *TO),)),
    "JSON Lines": Target("long.jsonl", ((*READ, "long.jsonl", *TO),)),
    "Parquet": Target("long.parquet", ((*READ, "long.parquet", *TO),)),
    "gzip of CSV": Target("long.csv.gz", ((*READ, "long.csv.gz", *TO),)),
    "CSV in gzip": Target("long.csv.gz", ((*READ, "long.csv.gz", *TO),), is_gzipped=True),
    "JSON Lines in gzip": Target("long.jsonl.gz", ((*READ, "long.jsonl.gz", *TO),), is_gzipped=True),
    "py-irt": Target("py-irt.jsonl", (("import", "py-irt.jsonl", *TO),)),
    "lm-eval samples": Target(f"{LOG}/samples_digits_{DATE}.jsonl", (("import", "logs", *TO),), ("logs",)),
    "lm-eval options": Target(
        f"{LOG}/samples_capitals_{DATE}.jsonl",
        (
            (
                *("import", "logs", "--task", "capitals", "--spec", "probability.toml"),
                *TO,
            ),
        ),
        ("logs", "probability.toml"),
    ),
    "lm-eval results": Target(f"{LOG}/results_{DATE}.json", (("import", "logs", *TO),), ("logs",)),
    "model table": Target("models.csv", ((*READ, "long.csv", "--models", "models.csv", *TO),), ("long.csv",)),
    "item table": Target("items.csv", ((*READ, "long.csv", "--items", "items.csv", *TO),), ("long.csv",)),
    "compute table": Target(
        "compute.csv", ((*READ, "suite.parquet", "--models", "compute.csv", *TO),), ("suite.parquet",)
    ),
    "losses, CSV": Target(
        "losses.csv",
        ((*LAW, "--law", "two-step", "--loss", "losses.csv"),),
        ("suite.parquet", "unchecked.toml"),
    ),
    "losses, Parquet": Target(
        "losses.parquet",
        ((*LAW, "--law", "two-step", "--loss", "losses.parquet"),),
        ("suite.parquet", "unchecked.toml"),
    ),
    "response file": Target(
        "responses.parquet",
        ((*READ, "responses.parquet", *TO), ("estimate", "bank", "responses.parquet", *FAST, *JSON)),
        ("bank",),
    ),
    **_of_other_tools(),
    **_bank_files(),
    "cache: folds": Target(
        "cached/cache/folds.safetensors",
        (("estimate", "cached", "new.csv", "--selection", "selection.json", "--method", "p-irt", *JSON),),
        ("cached", "new.csv", "selection.json"),
    ),
    "bank of a page, signed": Target(
        "bank/arrays.safetensors",
        ((*ESTIMATE, "--selection", "selection.json", "--report", "page.html"),),
        ("bank", "new.csv", "selection.json"),
        ("page.html",),
        sign=sign_bank,
    ),
    "selection": Target("selection.json", SELECTION, ("bank", "new.csv", "other.csv")),
    "selection, unsigned": Target(
        "selection.json", (*SELECTION, PUBLISH), ("bank", "new.csv", "other.csv"), ("tiny",), sign=sign_selection
    ),
    "journal": Target("run.jsonl", SESSION, ("bank",), ("page.html", "told.parquet")),
    "journal, signed": Target("run.jsonl", SESSION, ("bank",), ("page.html", "told.parquet"), sign=sign_journal),
    "answers": Target(
        "answers.jsonl",
        (("session", "tell", "run.jsonl", "-"),),
        ("bank", "run.jsonl"),
        ("run.jsonl",),
        is_standard_input=True,
    ),
    "results to audit": Target(
        "past.csv", (("check", "past.csv", *JSON), ("check", "past.csv", "--report", "page.html")), (), ("page.html",)
    ),
    "chosen options": Target("choices.csv", (("check", "past.csv", "--choices", "choices.csv", *JSON),), ("past.csv",)),
    "items to begin with": Target(
        "begin.csv",
        (("start", "begin.csv", "-o", "begun", "-n", "6", "--selection", "begun.json", *JSON),),
        (),
        ("begun", "begun.json"),
    ),
    "results to check": Target(
        "new.csv",
        (
            ("check", "bank", "new.csv", *JSON),
            ("bank", "add-models", "bank", "new.csv", "--how", "random", "-o", "grown", *JSON),
            ("bank", "recalibrate", "bank", "new.csv", "--how", "random", "-o", "anew", *JSON),
        ),
        ("bank",),
        ("grown", "anew"),
    ),
    "results on new items": Target(
        "late.csv", (("bank", "add-items", "bank", "late.csv", "-o", "grown", *JSON),), ("bank",), ("grown",)
    ),
    "estimates": Target(
        "estimates.json",
        (("export", "eee", "estimates.json", "-o", "records", "--organization", "us", *JSON),),
        (),
        ("records",),
    ),
    "excluded items": Target(
        "excluded.txt",
        (("select", "bank", "-n", "6", "--method", "random", "--exclude", "excluded.txt", *JSON),),
        ("bank",),
    ),
    "config": Target(
        "config.toml",
        (
            ("--config", "config.toml", "select", "bank", *JSON),
            ("--config", "config.toml", "estimate", "bank", "new.csv", *JSON),
        ),
        ("bank", "new.csv"),
    ),
    "study file": Target("study.toml", (("study", "run", *STUDY),), ("study-data.parquet",), ("study",)),
    "study manifest": Target(
        "study/manifest.json",
        (("study", "table", "study", *JSON), ("study", "run", *STUDY)),
        ("study", "study.toml", "study-data.parquet"),
        ("study",),
    ),
    "study part": Target(
        "study/parts/00000.parquet",
        (("study", "run", *STUDY), ("study", "table", "study", *JSON)),
        ("study", "study.toml", "study-data.parquet"),
        ("study",),
    ),
    "study estimates": Target(
        "study/estimates.parquet", (("study", "table", "study", "--against", "random", "weighted", *JSON),), ("study",)
    ),
    "study summary": Target(
        "study/summary.parquet",
        (("study", "table", "study", *JSON), ("report", "study", *PAGE)),
        ("study",),
        ("page.html",),
    ),
    "prediction file": Target(
        "prediction.toml", (("study", "run", *PREDICTION),), ("prediction-data.parquet",), ("prediction",)
    ),
    "prediction manifest": Target(
        "prediction/manifest.json", (("study", "table", "prediction", *JSON),), ("prediction",)
    ),
    "prediction part": Target(
        "prediction/parts/00000/predictions.parquet",
        (("study", "run", *PREDICTION), ("study", "table", "prediction", *JSON)),
        ("prediction", "prediction.toml", "prediction-data.parquet"),
        ("prediction",),
    ),
    "prediction curves": Target(
        "prediction/curves.parquet", (("study", "table", "prediction", *JSON),), ("prediction",)
    ),
    "simulated truth": Target("made.truth.safetensors", (("load_truth", "made.truth.safetensors"),)),
}
