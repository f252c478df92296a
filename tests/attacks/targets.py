"""What is attacked: each kind of file that itembank reads or writes, and the commands that are given it."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from itembank.files.documents import with_digest
from itembank.sessions.journal import encode_line
from tests.attacks.workplace import FAST, GATE_ANSWERS
from tests.bank.crafted_banks import sign
from tests.readers.test_lighteval import DATE as LIGHTEVAL_DATE

JSON = ("--format", "json")
SHORT = {"FAST": FAST, "JSON": JSON, "TO": ("-o", "out.parquet", *JSON), "PAGE": ("-o", "page.html")}
"""Words of command lines here that stand for several."""
LOG = "logs/org__one"
DATE = "2025-03-01T10-00-00.000001"
LAW = "scaling pretrain suite.parquet --law sigmoid --spec unchecked.toml JSON --law two-step --loss"
RUN_STUDY = "study run study.toml -o study --jobs 1"
STUDY = "study study.toml study-data.parquet"
PREDICT = "study run prediction.toml -o prediction --jobs 1"


@dataclass(frozen=True, slots=True)
class Target:
    file: str  # its place in the workplace, and in the folder of each case
    commands: tuple[tuple[str, ...], ...]  # what is run on it, one after the other
    beside: tuple[str, ...]  # other files and folders that the commands need
    writes: tuple[str, ...]  # what the commands may leave: files, or folders with all that is in them
    is_gzipped: bool = False  # damage what is packed, and pack it again
    is_standard_input: bool = False  # the commands read it there
    sign: Callable[[Path], None] | None = None  # makes the checksums right again, as somebody who means harm would


def words_of(line: str) -> tuple[str, ...]:
    """Split a command line, its short words written out."""
    return tuple(word for one in shlex.split(line) for word in SHORT.get(one, (one,)))


def target(file: str, lines: str, beside: str = "", writes: str = "out.parquet", **how: Any) -> Target:
    """Make a target of command lines, one a line, and of names between spaces."""
    commands = tuple(map(words_of, lines.splitlines()))
    return Target(file, commands, tuple(beside.split()), tuple(writes.split()), **how)


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


def sign_gate(path: Path) -> None:
    path.write_text(json.dumps(with_digest(json.loads(path.read_text(encoding="utf-8")))), encoding="utf-8")


def sign_selection(path: Path) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    content.pop("sha256", None)  # without a digest nothing is compared
    path.write_text(json.dumps(content), encoding="utf-8")


ESTIMATE = "estimate bank new.csv FAST JSON"
BANK = f"""\
info bank JSON
{ESTIMATE}
select bank -n 6 --method anchor-irt JSON
check bank JSON"""
CHANGED_BANK = """\
info retired --log JSON
estimate retired new.csv --target quiz@1 FAST JSON
bank retire retired math/0 --status active --reason right -o back JSON
info named retired JSON"""
SESSION = """\
session status run.jsonl JSON
session ask run.jsonl
session tell run.jsonl math/15 --response 1
import run.jsonl -o told.parquet JSON
check bank run.jsonl JSON
report run.jsonl PAGE"""
SELECTION = f"""\
{ESTIMATE} --selection selection.json
compare bank new.csv other.csv --selection selection.json --method p-irt JSON"""
PUBLISH = "publish-tiny bank --selection selection.json -o tiny JSON"
BEGIN = "calibrate --items begin.csv -o begun JSON"
CHECK = """\
check bank new.csv JSON
bank add-models bank new.csv --how random -o grown JSON
bank recalibrate bank new.csv --how random -o anew JSON"""
GATE = """\
gate next gate other.csv JSON
gate next gate other.csv --report page.html --junit gate.xml
gate next gate --command 'echo 1' --model-id m JSON"""
GATE_PLAN, PART = "gate/gate.json", "prediction/parts/00000/predictions.parquet"
START_GATE = "gate new.csv other.csv --margin 0.4 JSON\ngate start other.csv --margin 0.4 -o begun JSON"
USE_CACHE = "estimate cached new.csv --selection selection.json --method p-irt JSON"
MAKE_PAGE, TELL = f"{ESTIMATE} --selection selection.json --report page.html", "session tell run.jsonl -"
PREDICTION = "prediction prediction.toml prediction-data.parquet"
JQ_IMPORT = "import deep.json --jq '.rows[] | {item_id: .doc.id, response: .marks.acc}' --model-id a TO"
OPTIONS = "import logs --task capitals --spec probability.toml TO"
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
"""By the format that `--as` names; each file with the folder that it lies in."""
BANK_FILES = ("bank.json", "items.parquet", "models.parquet", "responses.parquet", "arrays.safetensors")
TARGETS = {
    "long CSV": target("long.csv", "import long.csv TO"),
    "wide CSV": target("wide.csv", "import wide.csv TO"),
    "counts CSV": target("counts.csv", "import counts.csv --repeats count TO"),
    "JSON Lines": target("long.jsonl", "import long.jsonl TO"),
    "Parquet": target("long.parquet", "import long.parquet TO"),
    "gzip of CSV": target("long.csv.gz", "import long.csv.gz TO"),
    "CSV in gzip": target("long.csv.gz", "import long.csv.gz TO", is_gzipped=True),
    "JSON Lines in gzip": target("long.jsonl.gz", "import long.jsonl.gz TO", is_gzipped=True),
    "py-irt": target("py-irt.jsonl", "import py-irt.jsonl TO"),
    "lm-eval samples": target(f"{LOG}/samples_digits_{DATE}.jsonl", "import logs TO", "logs"),
    "lm-eval options": target(f"{LOG}/samples_capitals_{DATE}.jsonl", OPTIONS, "logs probability.toml"),
    "lm-eval results": target(f"{LOG}/results_{DATE}.json", "import logs TO", "logs"),
    "model table": target("models.csv", "import long.csv --models models.csv TO", "long.csv"),
    "item table": target("items.csv", "import long.csv --items items.csv TO", "long.csv"),
    "compute table": target("compute.csv", "import suite.parquet --models compute.csv TO", "suite.parquet"),
    "losses, CSV": target("losses.csv", f"{LAW} losses.csv", "suite.parquet unchecked.toml"),
    "losses, Parquet": target("losses.parquet", f"{LAW} losses.parquet", "suite.parquet unchecked.toml"),
    "response file": target(
        "responses.parquet", "import responses.parquet TO\nestimate bank responses.parquet FAST JSON", "bank"
    ),
    **{
        tool: target(file, f"import {file.split('/')[0]} --as {tool} TO", file.split("/")[0])
        for tool, file in OF_OTHER_TOOLS.items()
    },
    "JSON": target("deep.json", JQ_IMPORT),
    **{
        name: one
        for file in BANK_FILES
        for name, one in {
            f"bank: {file}": target(f"bank/{file}", BANK, "bank new.csv"),
            f"bank, signed: {file}": target(f"bank/{file}", BANK, "bank new.csv", sign=sign_bank),
            f"changed bank, signed: {file}": target(
                f"retired/{file}", CHANGED_BANK, "retired named new.csv", "back", sign=sign_bank
            ),
        }.items()
    },
    "cache: folds": target("cached/cache/folds.safetensors", USE_CACHE, "cached new.csv selection.json"),
    "bank of a page, signed": target(
        "bank/arrays.safetensors", MAKE_PAGE, "bank new.csv selection.json", "page.html", sign=sign_bank
    ),
    "selection": target("selection.json", SELECTION, "bank new.csv other.csv"),
    "selection, unsigned": target(
        "selection.json", f"{SELECTION}\n{PUBLISH}", "bank new.csv other.csv", "tiny", sign=sign_selection
    ),
    "journal": target("run.jsonl", SESSION, "bank", "page.html told.parquet"),
    "journal, signed": target("run.jsonl", SESSION, "bank", "page.html told.parquet", sign=sign_journal),
    "answers": target("answers.jsonl", TELL, "bank run.jsonl", "run.jsonl", is_standard_input=True),
    "results to audit": target("past.csv", "check past.csv JSON\ncheck past.csv --report page.html", "", "page.html"),
    "chosen options": target("choices.csv", "check past.csv --choices choices.csv JSON", "past.csv"),
    "items to begin with": target("begin.csv", BEGIN, "", "begun"),
    "results to check": target("new.csv", CHECK, "bank", "grown anew"),
    "results on new items": target("late.csv", "bank add-items bank late.csv -o grown JSON", "bank", "grown"),
    "gate's baseline": target("gate/baseline.parquet", GATE, "other.csv", "page.html gate.xml gate"),
    "gate's plan": target(GATE_PLAN, GATE, "other.csv", "page.html gate.xml gate"),
    "gate's plan, signed": target(GATE_PLAN, GATE, "other.csv", "page.html gate.xml gate", sign=sign_gate),
    "gate's answers": target(f"gate/{GATE_ANSWERS}", GATE, "other.csv", "page.html gate.xml gate"),
    "results to gate": target("other.csv", START_GATE, "new.csv", "begun"),
    "excluded items": target("excluded.txt", "select bank -n 6 --method random --exclude excluded.txt JSON", "bank"),
    "study file": target("study.toml", RUN_STUDY, "study-data.parquet", "study"),
    "study manifest": target("study/manifest.json", f"study table study JSON\n{RUN_STUDY}", STUDY, "study"),
    "study part": target("study/parts/00000.parquet", f"{RUN_STUDY}\nstudy table study JSON", STUDY, "study"),
    "study estimates": target("study/estimates.parquet", "study table study --against random/weighted JSON", "study"),
    "study summary": target("study/summary.parquet", "study table study JSON\nreport study PAGE", "study", "page.html"),
    "prediction file": target("prediction.toml", PREDICT, "prediction-data.parquet", "prediction"),
    "prediction manifest": target("prediction/manifest.json", "study table prediction JSON", "prediction"),
    "prediction part": target(PART, f"{PREDICT}\nstudy table prediction JSON", PREDICTION, "prediction"),
    "prediction curves": target("prediction/curves.parquet", "study table prediction JSON", "prediction"),
    "simulated truth": target("made.truth.safetensors", "load_truth made.truth.safetensors"),
}
