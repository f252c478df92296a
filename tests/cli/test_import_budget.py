"""Which heavy packages a command may load: most of the time of a short command goes into its imports."""

import json
import subprocess
import sys

import itembank as ib
from tests.bank.banks import make_bank
from tests.cli.session.loops import LIMIT

HEAVY = (
    "numpy", "polars", "scipy.special", "scipy.sparse", "scipy.linalg", "scipy.optimize", "scipy.interpolate",
    "scipy.stats", "scipy.spatial", "joblib", "vl_convert", "pandas", "pyarrow", "rich.console",
    "itembank.readers.read", "itembank_harnesses", "itembank_studies", "itembank_scaling",
)  # fmt: skip
ASKING = {"numpy", "polars"}
READING = ASKING | {"itembank.readers.read"}
FITTING = READING | {f"scipy.{part}" for part in ("special", "optimize", "interpolate", "spatial", "sparse", "linalg")}
COMMANDS = (
    ("session --help", set()),
    ("session ask run.jsonl", ASKING),
    ("session tell run.jsonl {item} --response 1", ASKING),
    ("session status run.jsonl", ASKING),
    ("info bank", ASKING),
    ("import past.csv -o past.parquet", READING),
    ("import past.parquet -o again.parquet", READING),
    ("estimate bank new.parquet --method p-irt --interval model-based", READING),
    ("estimate bank new.parquet", FITTING),
    ("select bank -n 9", FITTING),
)  # Commands with what they may load, each more than those before it: one process runs them in turn
WINGS = {"itembank_harnesses", "itembank_studies", "itembank_scaling"}
OF_WINGS = ("bank list", "import --help", "run lm-eval --help", "run inspect --help", "run harbor --help")
"""Commands that are another package's, or tell of what others bring: these may load the packages, and nothing heavy."""

PROGRAM = """
import contextlib, io, json, sys
from itembank.cli.main import main

loaded, item = [], ""
for words in {commands!r}:
    sys.argv = ["itembank", *words.format(item=item).split()]
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
        except SystemExit as end:
            assert end.code in (0, None), (words, err.getvalue())
    if "ask" in words:
        item = json.loads(out.getvalue())["items"][0]["item_id"]
    loaded.append([name for name in {heavy!r} if name in sys.modules])
print(json.dumps(loaded))
"""


def loaded_by(commands, folder):
    """Run commands one after the other in one process; return the heavy packages that are there after each."""
    program = PROGRAM.format(commands=commands, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_command_loads_no_more_than_it_may(run, fitted_bank, tmp_path):
    (tmp_path / "bank").symlink_to(fitted_bank)
    (tmp_path / "past.csv").write_text("model_id,item_id,response\na,x,1\na,y,0\n")
    past = make_bank().responses
    ib.write_responses(
        ib.ResponseMatrix.create(past.responses[:1], model_ids=["new"], items=past.items), tmp_path / "new.parquet"
    )
    run.ok("session", "start", fitted_bank, "-o", tmp_path / "run.jsonl", "--model-id", "new", *LIMIT)
    loaded = loaded_by([words for words, _ in COMMANDS], tmp_path)
    for (words, allowed), found in zip(COMMANDS, loaded, strict=True):
        assert set(found) <= allowed, words
    of_info = next(found for (words, _), found in zip(COMMANDS, loaded, strict=True) if words == "info bank")
    assert set(of_info) == ASKING  # the list is looked at


def test_what_tells_of_other_packages_loads_nothing_heavy(tmp_path):
    for words, found in zip(OF_WINGS, loaded_by(OF_WINGS, tmp_path), strict=True):
        assert set(found) <= WINGS, words
