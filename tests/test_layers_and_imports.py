"""What a bare import and `--help` may not load, and which layers may see which."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import itembank
from tests.readers.logs import answers, write_run

REPOSITORY = Path(__file__).resolve().parent.parent
SOURCE = REPOSITORY / "src" / "itembank"
MODULE = re.compile(r"itembank\.(?P<part>\w*)[\w.]*(:\w+)?")
HEAVY = ("numpy", "scipy", "polars", "safetensors", "rich", "pandas", "pyarrow", "vl_convert", "jinja2", "vl_convert")


HELP = """
import runpy
sys.argv = ["itembank", *{arguments}]
try:
    from itembank.cli.main import main
    main()
except SystemExit as end:
    assert end.code in (0, None), end.code
"""
REPORT = """
import json
print("\\n" + json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""


def modules_loaded_by(code):
    """Run code in a fresh interpreter; return the top-level modules it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{REPORT}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


HELPS = (["--help"], ["--version"], ["select", "-h"], ["calibrate", "-h"])


@pytest.mark.parametrize(
    "code",
    ["import itembank; dir(itembank); assert itembank.__version__", *(HELP.format(arguments=words) for words in HELPS)],
    ids=["import", "help", "version", "select", "calibrate"],
)
def test_no_heavy_package_is_loaded(code):
    loaded = modules_loaded_by(code)
    assert "itembank" in loaded
    assert not set(loaded) & set(HEAVY)


def test_a_name_that_is_used_loads_what_it_needs():
    # The witness that the test above can fail.
    assert "numpy" in modules_loaded_by("import itembank; itembank.calibrations.ItemParameters")


def test_every_public_name_can_be_imported():
    missing = """
import itembank
names = []
for home in (itembank, *(one for name in itembank.__all__ if hasattr(one := getattr(itembank, name), "__all__"))):
    assert set(home.__all__) <= set(dir(home)), home
    for name in home.__all__:
        try:
            getattr(home, name)
        except (ImportError, AttributeError) as error:
            names.append(f"{home.__name__}.{name}: {error}")
assert not names, names
assert "scipy.stats" not in sys.modules, "it takes as long to load as all the rest of scipy"
"""
    modules_loaded_by(missing)


def test_the_front_door_is_narrow():
    names = [name for name in itembank.__all__ if not isinstance(getattr(itembank, name), ModuleType)]
    assert len(names) <= 44


@pytest.mark.parametrize(
    ("name", "message"), [("no_such_name", "itembank has no 'no_such_name'.$"), ("estimat", "Did you mean 'estimate'")]
)
def test_a_name_that_is_not_here_says_which_was_meant(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(itembank, name)


def test_a_result_shows_its_page_though_nobody_imported_pages():
    pytest.importorskip("jinja2")
    loaded = modules_loaded_by("""
import itembank as ib
import numpy as np
chosen = ib.Selection(("item",), ("part",), np.ones(1), "random", "bank-id")
assert "itembank.tabular" in sys.modules
assert not [name for name in sys.modules if name.startswith("itembank.pages")]
assert "Selection of 1 question" in chosen._repr_html_(), chosen._repr_html_()
""")
    assert "jinja2" in loaded


def test_every_package_and_module_has_a_layer_and_circles_are_looked_for_everywhere():
    contract = contracts()[0]
    layers = set(floors())
    packages = {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file()}
    assert packages <= layers
    assert layers <= packages | {file.stem for file in SOURCE.glob("*.py")}
    assert contract["exhaustive"]
    circles = {one["type"]: one for one in contracts()}["acyclic_siblings"]
    names = ("itembank", "itembank_harnesses", "itembank_living", "itembank_scaling", "itembank_studies")
    assert circles["ancestors"] == [name for one in names for name in (one, f"{one}.**")]
    assert "exclude_type_checking_imports" not in settings()


def test_texts_that_no_contract_sees_name_no_wing_no_script_and_quantiles_come_from_one_module():
    def files_with(pattern, folder):
        files = [*folder.rglob("*.py"), *folder.rglob("*.pyi")]
        found = [file for file in files if re.search(pattern, file.read_text(encoding="utf-8"), re.MULTILINE)]
        return [str(file.relative_to(folder)) for file in found]

    assert not files_with(r"itembank_(harnesses|living|scaling|studies)", SOURCE)  # in a text that becomes an import
    assert not files_with(r"^\s*(from|import) scripts\b", REPOSITORY / "benchmarks")  # not so the other way round
    assert files_with("stdtrit", SOURCE) == ["numerics/intervals.py"]


def test_the_core_works_without_wings(tmp_path):
    """Tables are imported, and used to the end; what no wing is there to read is refused, and the message says so."""
    rows = [{"model_id": "new", "item_id": item, "response": 1} for item in ("one", "two")]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    write_run(tmp_path / "logs", "org/m", {"arc": answers(1, 0)})
    program = """
import contextlib, importlib.metadata, io, pathlib, sys
sys.modules |= dict.fromkeys(("itembank_harnesses", "itembank_living", "itembank_scaling", "itembank_studies"))
importlib.metadata.entry_points = lambda group: ()
from itembank.cli.main import main

said = io.StringIO()
for words in (
    "--help", "sample-data -o sample", "import sample/past.csv -o responses.parquet",
    "import responses.parquet -o again.parquet", "import rows.jsonl -o rows.parquet",
    "calibrate responses.parquet -o bank --dims 1", "select bank -n 20 -o selection.json",
    "estimate bank sample/new-model.csv --method p-irt --interval model-based --report new.html",
    "gate sample/new-model.csv sample/new-model.csv", "report bank -o bank.html",
    "session start bank -o run.jsonl --model-id new --max-items 3", "session ask run.jsonl",
):
    sys.argv = ["itembank", *words.split()]
    with contextlib.redirect_stdout(said):
        try:
            main()
        except SystemExit as end:
            assert end.code in (0, None), words
assert "scaling" not in said.getvalue()
log = next(pathlib.Path("logs").rglob("samples_*"))
for words in (f"import {log} -o logs.parquet", "import logs -o logs.parquet"):
    sys.argv = ["itembank", *words.split()]
    with contextlib.redirect_stderr(io.StringIO()) as refusal:
        try:
            main()
        except SystemExit as end:
            assert end.code in (1, 2), words
    told = " ".join(refusal.getvalue().split())
    assert "No package is installed that reads logs of harnesses" in told, told
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"bank", "new.html", "bank.html"} <= {file.name for file in tmp_path.iterdir()}


def test_no_text_names_a_module_of_a_higher_floor():
    """Modules that are imported by a text make arrows, too, which no contract sees."""
    floor, found = floors(), {}
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE)
        code, part = file.read_text(encoding="utf-8"), path.parts[0].removesuffix(".py")
        found[str(path)] = higher_names(code, floor.get(part, len(floor)))
    assert not {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ('import_module("itembank.pages.shown").pieces_of(result)', ["itembank.pages.shown"]),
        ('def show(name):\n    return import_module(f"itembank.{name}")', ["itembank."]),
        ('"itembank." + name', ["itembank."]),
        ('KERNEL = "itembank.calibration.fits:fit"', ["itembank.calibration.fits:fit"]),
        ('KERNEL = "itembank.numerics.newton:solve"', []),
        ('KEY = "itembank.digest"', []),
        ('"""What `itembank.pages` shows of it."""', []),
        ('entry_points_of(group="itembank.calibrations")', []),
    ],
)
def test_texts_that_name_higher_modules_are_found(code, names):
    assert higher_names(code, floors()["bank"]) == names


def higher_names(code, floor):
    """Give the texts of code that name a module above a floor, or begin the name of any; names of groups are none."""
    highest, nodes = floors(), list(ast.walk(ast.parse(code)))
    groups = {id(one.value) for one in nodes if isinstance(one, ast.keyword) and one.arg == "group"}
    constants = [one for one in nodes if isinstance(one, ast.Constant) and id(one) not in groups]
    texts = [one.value for one in constants if isinstance(one.value, str)]
    named = [(text, match["part"]) for text in texts if (match := MODULE.fullmatch(text))]
    return [text for text, part in named if (highest.get(part, 0) if part else max(highest.values())) > floor]


def contracts():
    return settings()["contracts"]


@cache
def floors():
    """Return the floor of every package and module, from 0 for the lowest."""
    layers = reversed(contracts()[0]["layers"])
    return {name.strip(): floor for floor, layer in enumerate(layers) for name in layer.split("|")}


@cache
def settings():
    """Return what import-linter is told."""
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]
