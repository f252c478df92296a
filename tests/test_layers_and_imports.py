"""What a bare import and `--help` may not load, and which layers may see which."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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
    assert "numpy" in modules_loaded_by("import itembank; itembank.ItemParameters")


def test_every_public_name_can_be_imported():
    missing = """
import itembank
names = []
for name in itembank.__all__:
    try:
        getattr(itembank, name)
    except (ImportError, AttributeError) as error:
        names.append(f"{name}: {error}")
assert not names, names
assert "scipy.stats" not in sys.modules, "it takes as long to load as all the rest of scipy"
"""
    modules_loaded_by(missing)


def test_an_unknown_name_is_an_attribute_error():
    modules_loaded_by(
        """
import itembank
try:
    itembank.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
else:
    raise SystemExit("no error")
"""
    )


def test_every_package_and_module_has_a_layer():
    contract = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    layers = {name.strip() for layer in contract["layers"] for name in layer.split("|")}
    source = REPOSITORY / "src" / "itembank"
    packages = {folder.name for folder in source.iterdir() if (folder / "__init__.py").is_file()}
    assert packages <= layers
    assert layers <= packages | {file.stem for file in source.glob("*.py")}
    assert contract["exhaustive"]
