"""What strangers and machines read: workflows, the citation, promises, the skill file, the template of a package."""

import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import itembank
from itembank.bank.bank_records import SCHEMA_VERSION
from itembank.methods import entry_points_of
from itembank.selection.selector_specs import METHODS as SELECTORS
from tests.conftest import REPOSITORY
from tests.docs.blocks import blocks, run_page
from tests.packages import forget, name_entry_points

WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SKILL = (REPOSITORY / "examples" / "skill" / "SKILL.md").read_text(encoding="utf-8")
TEMPLATE = REPOSITORY / "examples" / "plugin-template"
HARNESS = """
import json, sys
ids = sys.argv[sys.argv.index("--instance_ids") + 1 :]
report = {"total_instances": 500, "submitted_ids": ids, "resolved_ids": ids[::2], "unresolved_ids": ids[1::2]}
json.dump(report, open(f"agent.{sys.argv[sys.argv.index('--run_id') + 1]}.json", "w"))
"""


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist_and_ask_for_little(path):
    text = path.read_text(encoding="utf-8")
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"make ([\w-]+)$|target: \[?([\w-]+)", text, flags=re.MULTILINE)
    assert targets
    for target in (one or other for one, other in targets):
        assert re.search(rf"^[\w -]*\b{re.escape(target)}\b[\w -]*:(?!.*export)", makefile, flags=re.MULTILINE), target
    assert "\npermissions:\n  contents: read\n" in text
    assert "pull_request_target" not in text
    assert "{{ secrets" not in text
    steps = re.findall(r"uses: (\S+)", text)
    assert all(re.fullmatch(r"(actions/[\w-]+|pypa/[\w-]+)@(v\d+|release/v\d+)", one) for one in steps)
    scripts = re.findall(r"run: (?:\|\n((?: {10}.*\n)+)|(.*))", text)
    assert not any("${{" in part for script in scripts for part in script if "matrix" not in part)


def test_a_release_has_the_version_of_its_tag_and_notes(tmp_path):
    """The step before anything is built, on a changelog of two versions."""
    release = next(path for path in WORKFLOWS if path.stem == "release").read_text(encoding="utf-8")
    script = re.search(r"has its notes\n +run: \|\n((?: {10}.*\n)+)", release)[1]
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.0] - 2027-01-01\n\nNew.\n\n## [1.1.0]\n\nOld.\n")

    def code(tag):
        words = ["bash", "-e", "-c", script]
        return subprocess.run(words, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "GITHUB_REF_NAME": tag}, check=False)

    assert code("v1.2.0").returncode == 0
    assert (tmp_path / "notes.md").read_text().strip() == "New."
    assert code("v1.1.0").returncode != 0
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.3.0"\n')
    assert code("v1.3.0").returncode != 0


def test_the_citation_the_promise_and_hosted_documents_are_of_this_version():
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\nlicense: {PROJECT['license']}\n" in citation
    text = (REPOSITORY / ".readthedocs.yaml").read_text(encoding="utf-8")
    extras = re.search(r"-e '\.\[([\w,]+)\]'", text)[1].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    page = (REPOSITORY / "contributing" / "versions.md").read_text(encoding="utf-8")
    assert int(re.search(r"\| bank \(`bank\.json`\) \| (\d+);", page)[1]) == SCHEMA_VERSION


def test_installing_is_advised_as_it_works_today():
    """Until there is a release pip finds itembank in a checkout alone: what comes after it says so."""
    paths = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.[mi]*"), *(REPOSITORY / "examples").rglob("*.*")]
    lines = [
        (path.name, line)
        for path in (*paths, *(REPOSITORY / "src").rglob("*.py"))
        if path.suffix in {".md", ".ipynb", ".yml", ".toml", ".py"}
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    early = [one for one in lines if re.search(r"itembank\[[\w,-]+\]['`]|pip install (-\S+ )*itembank\b", one[1])]
    assert [one for one in early if "first release" not in one[1]] == []
    extras = set(",".join(found for _, line in lines for found in re.findall(r"'\.\[([\w,-]+)\]'", line)).split(","))
    assert {"report", "lm-eval", "inspect", "hub"} <= extras - {"NAME"} <= set(PROJECT["optional-dependencies"])


def test_the_skill_gives_a_score_of_swe_bench_in_eight_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "swebench" / "harness").mkdir(parents=True)
    (tmp_path / "swebench" / "harness" / "run_evaluation.py").write_text(HARNESS)
    code = next(code for language, code in blocks(SKILL) if language == "sh")
    assert sum(not line.startswith("#") for line in code.splitlines()) + 1 <= 8  # one to install
    run_page(f"```sh\n{code}```", "SKILL.md")
    printed = Path("score.json").read_text()
    assert '"n_items": 60' in printed
    assert {'"estimate": ', '"low": ', '"high": ', '"typicality": '} <= set(re.findall(r'"\w+": ', printed))
    assert SKILL.startswith("---\nname: itembank\ndescription: ")


@pytest.mark.slow
def test_the_skill_scores_models_on_results_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = [code for language, code in blocks(SKILL) if language == "sh"][1:]
    run_page(f"```sh\n{code}```", "SKILL.md")
    assert '"n_items": 50' in Path("own.json").read_text()


def test_the_template_of_a_package_passes_its_own_test(tmp_path, monkeypatch):
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [f"{name} = {place}" for name, place in project["entry-points"]["itembank.selectors"].items()]
    forget(monkeypatch, SELECTORS)
    name_entry_points(monkeypatch, tmp_path, "itembank_mid_range", {"itembank.selectors": lines})
    monkeypatch.syspath_prepend(str(TEMPLATE))
    namespace = {}
    exec((TEMPLATE / "test_mid_range.py").read_text(encoding="utf-8"), namespace)  # noqa: S102
    namespace["test_items_of_the_mid_range_are_chosen_by_name"]()
    entry_points_of.cache_clear()


PAGE = REPOSITORY / "docs" / "api.md"


def public_names():
    """All names of the package and of what stands below it, as a user writes them."""
    here = {name: getattr(itembank, name) for name in itembank.__all__}
    spaces = {name: one.__all__ for name, one in here.items() if hasattr(one, "__all__")}
    top = [f"itembank.{name}" for name, one in here.items() if not isinstance(one, ModuleType)]
    return [*top, *(f"itembank.{space}.{name}" for space, names in spaces.items() for name in names)]


def test_public_names_are_those_on_the_page():
    words = PAGE.read_text(encoding="utf-8").split()
    assert [name for name in public_names() if name not in words] == []
    words = {word for word in PAGE.read_text(encoding="utf-8").split() if word.startswith("itembank.")}
    assert len(words) > 100
    deeper = {word for word in words if word.count(".") > 2}  # what results are made of
    assert words - deeper - set(public_names()) == set()
