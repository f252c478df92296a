"""What is killed: commands that write, what they need, and what must be the same of what they wrote."""

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from itembank.files.documents import JOURNAL as SESSION
from itembank.gating.running import KIND as OF_GATE
from itembank.sessions.journal import parse_journal
from tests.attacks.judging import contents
from tests.cli.session.loops import FAST as FAST_SESSION


@dataclass(frozen=True, slots=True)
class Job:
    words: tuple[str, ...]
    beside: tuple[str, ...]  # what it needs of the workplace
    writes: tuple[str, ...]  # files and folders that it makes or replaces
    again: tuple[str, ...] = ()  # what is given after a kill, where that is another command
    read: Callable[[Path], object] | None = None  # what must be the same of what was written, by its path
    goes_on: bool = False  # it keeps a part of its work, which the same command goes on with


def bytes_of(path: Path) -> object:
    """Digests of a file or of all files of a folder but its cache, which can be made again."""
    if path.is_dir():
        return {name: one for name, one in contents(path).items() if not name.startswith("cache/")}
    return contents(path.parent).get(path.name)


def without_time(path: Path) -> object:
    header = json.loads(path.read_bytes().splitlines()[0])
    return {name: value for name, value in header.items() if name not in {"time", "check"}}


def numbers_of_study(folder: Path) -> object:
    """Every number of a finished study less the seconds; None while it is not finished."""
    names = ("estimates.parquet", "summary.parquet", "curves.parquet", "costs.parquet", "tasks.parquet")
    tables = {name: pl.read_parquet(folder / name) for name in names if (folder / name).is_file()}
    return {
        name: table.select(one for one in table.columns if not one.startswith("seconds")).write_json()
        for name, table in tables.items()
    }


def dateless(folder: Path) -> object:
    if not (folder / "bank.json").is_file():
        return None
    record = json.loads((folder / "bank.json").read_text(encoding="utf-8"))
    for change in record.get("history", {}).get("changes", ()):
        change.pop("at")
    record.get("history", {}).pop("created", None)
    record.pop("record_sha256")
    return {**{name: one for name, one in contents(folder).items() if name != "bank.json"}, "record": record}


def answers_of_session(journal: Path, kind: str = SESSION) -> object:
    """Every answer in the order of the journal, without its time and costs: none twice, none too few."""
    events = parse_journal(journal.read_bytes(), journal.name, kind).events
    return [[one["item_id"], one["response"]] for one in events if one["event"] == "told"]


def answers_of_gate(folder: Path) -> object:
    answers = {path.name: answers_of_session(path, OF_GATE) for path in folder.glob("*.jsonl")}
    return [{name: one for name, one in contents(folder).items() if name not in answers}, answers]


def job(line, beside="", writes="", *, again="", read=None, goes_on=False):
    """Make a job of command lines, and of names between spaces."""
    words, beside, writes, again = (tuple(shlex.split(one)) for one in (line, beside, writes, again))
    return Job(words, beside, writes, again, read, goes_on)


def made_anew(line, beside, writes="new", *, read=None):
    """A command that makes a folder, and has to be told to replace it when it is given again."""
    return job(line, beside, writes, again=f"{line} --force", read=read)


FAST = shlex.join(FAST_SESSION)
RUN = "session run run.jsonl --command 'echo 1'"
ESTIMATE = "estimate bank new.csv --selection selection.json --method p-irt --format csv"
NEEDS = "bank new.csv selection.json"
MAKE_TRUTH = "simulate -o made.parquet --n-models 6 --n-items 12 --n-tasks 2 --n-dims 1 --seed 7"
CALIBRATE = "calibrate responses.parquet -o {} --item-model {} --no-folds"
RESTORE = "bank retire retired math/0 --status active --reason right -o named --force"
PREDICT, NEXT = "study run prediction.toml -o prediction", "gate next gate --command 'echo 1' --model-id n"
FIT_LAW = "scaling pretrain suite.parquet --law sigmoid --spec unchecked.toml"
START = f"session start bank -o new.jsonl --model-id m --max-items 9 {FAST}"
GATE = "gate new.csv other.csv --margin 0.4"
STUDIES, ANSWERED = ({"read": read, "goes_on": True} for read in (numbers_of_study, answers_of_session))
JOBS = {
    "import": job("import long.csv -o out.parquet", "long.csv", "out.parquet"),
    "import over another": job(
        "import long.csv -o responses.parquet", "long.csv responses.parquet", "responses.parquet"
    ),
    "calibrate": made_anew(CALIBRATE.format("new", "2pl"), "responses.parquet"),
    "calibrate --force": job(f"{CALIBRATE.format('bank', '1pl')} --force", "responses.parquet bank", "bank"),
    "select": job("select bank -n 6 --method anchor-irt -o selection.json", "bank selection.json", "selection.json"),
    "estimate": job(ESTIMATE, NEEDS, "bank"),
    "session start": job(START, "bank", "new.jsonl", again="session ask new.jsonl", read=without_time),
    "import of a journal": job("import run.jsonl -o told.parquet", "bank run.jsonl", "told.parquet"),
    "study run": job("study run study.toml -o study --jobs 1", "study.toml study-data.parquet", "study", **STUDIES),
    "study predict": job(f"{PREDICT} --jobs 1", "prediction.toml prediction-data.parquet", "prediction", **STUDIES),
    "study table --figure": job("study table study --figure error.png", "study", "error.png"),
    "scaling": job(f"{FIT_LAW} --figure scores.png", "suite.parquet unchecked.toml", "scores.png"),
    "simulate": job(MAKE_TRUTH, "", "made.parquet made.truth.safetensors"),
    "replay": job(f"replay bank new.csv --max-items 5 {FAST} -o asked.csv", "bank new.csv", "asked.csv"),
    "bank retire": made_anew("bank retire bank math/0 --reason 'wrong key' -o new", "bank", read=dateless),
    "bank restore --force": job(RESTORE, "retired named", "named", read=dateless),
    "bank note": made_anew("bank note named text -o new", "named", read=dateless),
    "bank add-items": made_anew("bank add-items bank late.csv -o new", "bank late.csv", read=dateless),
    "bank add-models": made_anew("bank add-models bank new.csv --how random -o new", "bank new.csv", read=dateless),
    "bank recalibrate": made_anew("bank recalibrate bank new.csv --how random -o new", "bank new.csv", read=dateless),
    "calibrate --items": made_anew("calibrate --items begin.csv -o begun", "begin.csv", "begun"),
    "session run": job(f"{RUN} --logs logs-of-run", "bank run.jsonl", "run.jsonl", again=f"{RUN} --jobs 1", **ANSWERED),
    "gate start": job("gate start new.csv --margin 0.4 -o gate-2", "new.csv", "gate-2"),
    "gate next": job(f"{NEXT} --format json", "gate", "gate", read=answers_of_gate, goes_on=True),
    "gate --report": job(
        f"{GATE} --estimand run --report page.html --junit gate.xml", "new.csv other.csv", "page.html gate.xml"
    ),
    "report": job("report run.jsonl -o page.html", "bank run.jsonl", "page.html"),
    "estimate --report": job(f"{ESTIMATE} --report page.html", NEEDS, "bank page.html"),
    "check": job("check past.csv --report audit.html", "past.csv", "audit.html"),
    "publish-tiny": made_anew("publish-tiny bank -n 6 -o tiny", "bank", "tiny"),
    "sample-data": job("sample-data -o sample", "", "sample/past.csv sample/new-model.csv"),
    "quickstart": job("quickstart -o quickstart", "", "quickstart"),
}
