"""What a bare import and `--help` may not load, and which layers may see which."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import itembank

REPOSITORY = Path(__file__).resolve().parent.parent
HEAVY = (
    "numpy",
    "scipy",
    "polars",
    "sklearn",
    "safetensors",
    "rich",
    "pandas",
    "pyarrow",
    "matplotlib",
    "jinja2",
    "vl_convert",
)

IMPORT = "import itembank"
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


@pytest.mark.parametrize(
    "code",
    [
        IMPORT,
        "import itembank; dir(itembank)",
        *(HELP.format(arguments=words) for words in (["--help"], ["--version"], ["select", "-h"], ["calibrate", "-h"])),
    ],
    ids=["import", "dir", "help", "version", "select", "calibrate"],
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
from itembank.moved_names import NAMESPACES
names = []
for home in (itembank, *(getattr(itembank, name) for name in (*NAMESPACES, "plots"))):
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
    assert len(names) <= 40


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_name", "itembank has no 'no_such_name'.$"),
        ("Variational", "It is itembank.calibrations.Variational now"),
        ("pretraining_law", "It is itembank.scaling.pretraining_law now"),
        ("session_settings", "It is itembank.SessionSpec now"),
        ("estimat", "Did you mean 'estimate'"),
    ],
)
def test_a_name_that_is_not_here_says_where_it_is(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(itembank, name)


def test_every_package_and_module_has_a_layer():
    contract = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    layers = {name.strip() for layer in contract["layers"] for name in layer.split("|")}
    source = REPOSITORY / "src" / "itembank"
    packages = {folder.name for folder in source.iterdir() if (folder / "__init__.py").is_file()}
    assert packages <= layers
    assert layers <= packages | {file.stem for file in source.glob("*.py")}
    assert contract["exhaustive"]


def test_the_version_is_told_without_numpy():
    loaded = modules_loaded_by("import itembank; assert itembank.__version__")
    assert not {"numpy", "polars"} & set(loaded)
