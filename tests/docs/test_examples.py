"""What README and docs show works: Python runs, commands exist, links lead somewhere, words are the fixed ones."""

import re
import shlex
import subprocess
from pathlib import Path

import click
import numpy as np
import polars as pl
import pytest

import itembank
import itembank_scaling
from itembank.cli.gate import GateGroup
from itembank.cli.main import cli
from itembank.estimation import folds
from itembank.estimation.estimator_specs import METHODS
from itembank.readers import builtin
from tests.bank.few_items import load_few
from tests.docs.blocks import FENCE
from tests.docs.blocks import blocks as blocks_of
from tests.packages import forget

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = [REPOSITORY / name for name in ("docs", "contributing")]
PAGES = [REPOSITORY / "README.md", *sorted(page for folder in FOLDERS for page in folder.glob("*.md"))]
WORKFLOW, HOOK = (REPOSITORY / "examples" / name for name in ("github-gate.yml", "pre-commit-gate.yaml"))
SKILL = REPOSITORY / "examples" / "skill" / "SKILL.md"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([\w.-]*\.md|)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", flags=re.MULTILINE)
STEPS = {"sessions.md": (21, 6)}
"""Every how many items and models pages get that take any number of them."""
FEW_LANGUAGE_MODELS = {
    "mixture": ["balanced", "code", "facts", "repeated"],  # the fewest recipes that are pooled
    "size": ["11k", "28k", "203k", "1.2M", "2.7M"],  # the fewest that give a law from four sizes one to look ahead to
    "share_of_run": [0.5, 1.0],
}
FEW_RECIPES = {"scaling.md", "bytelms.md"}
"""Pages that get few recipes and sizes of the built-in language models."""
RUNNABLE = [  # README and tutorials: test_tutorials.py
    page
    for page in PAGES[1:]
    if "```python" in page.read_text(encoding="utf-8") and not page.stem.startswith(("tutorial-", "python"))
]


def names(page):
    return page.name


def blocks(page):
    return blocks_of(page.read_text(encoding="utf-8"))


ALIKE = pytest.mark.filterwarnings("ignore:.* models answer like another one")
"""Late checkpoints of the smallest runs of bytelms do, and pages need not say so."""
NO_SKILL = pytest.mark.filterwarnings("ignore:items of 'pronouns'.* are not skill")
"""So few checkpoints, of scaling.md, only guess at these."""


@pytest.fixture
def small(monkeypatch, page):
    """Give pages no more items and models of built-in data, and fits without some models, than they need."""
    bits = itembank_scaling.builtin_bits_per_byte
    chosen = [pl.col(name).is_in(values) for name, values in FEW_LANGUAGE_MODELS.items()]
    is_kept = load_few("bytelms").models.select(pl.all_horizontal(chosen)).to_series().to_numpy()
    every_item, every_model = STEPS.get(page.name, (7, 1))

    def load(name, **choices):
        found = load_few(name, every_item=every_item, every_model=every_model, **choices)
        return found.take(models=np.flatnonzero(is_kept)) if name == "bytelms" and page.name in FEW_RECIPES else found

    monkeypatch.setattr(itembank, "load_builtin", load)  # first: a package keeps what it has loaded
    monkeypatch.setattr(builtin, "load_builtin", load)
    for name in ("N_FOLDS_FEW", "N_FOLDS_MANY"):
        monkeypatch.setattr(folds, name, 3)
    monkeypatch.setattr(itembank_scaling, "builtin_bits_per_byte", lambda: bits()[is_kept, ::every_item])


@pytest.fixture
def as_in_the_wheel(monkeypatch, page):
    """Hide the built-in data that the wheel leaves out, but from pages of contributors."""
    read = builtin._content

    def content(file):
        is_left_out = file.startswith(builtin.IN_CHECKOUT_ONLY) and page.parent.name != "contributing"
        assert not is_left_out, f"{page.name} needs {file}, which the wheel leaves out"
        return read(file)

    monkeypatch.setattr(builtin, "_content", content)


@ALIKE
@NO_SKILL
@pytest.mark.usefixtures("as_in_the_wheel")
@pytest.mark.parametrize("page", RUNNABLE, ids=names)
def test_python_examples_run(page, tmp_path, monkeypatch, small):
    run_examples(page, tmp_path, monkeypatch)


@ALIKE
@NO_SKILL
@pytest.mark.slow
@pytest.mark.usefixtures("as_in_the_wheel")
@pytest.mark.parametrize("page", RUNNABLE, ids=names)
def test_python_examples_run_on_all_items(page, tmp_path, monkeypatch):
    run_examples(page, tmp_path, monkeypatch)


def run_examples(page, tmp_path, monkeypatch):
    """All blocks of a page share one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    forget(monkeypatch, METHODS)  # an example registers a method
    namespace = {"__name__": "example"}
    for number, (language, code) in enumerate(blocks(page), start=1):
        if language == "python":
            exec(compile(code, f"{page.name}, block {number}", "exec"), namespace)  # noqa: S102


@pytest.mark.parametrize("page", [*PAGES, SKILL, WORKFLOW, HOOK], ids=names)
def test_commands_and_options_exist(page):
    codes = [code for _, code in blocks(page)] if page.suffix == ".md" else [page.read_text(encoding="utf-8")]
    assert page != HOOK or "\n          itembank gate next" in codes[0]
    for code in codes:
        lines = iter(code.replace("\\\n", " ").splitlines())
        for line in lines:
            while "--jq '" in line and line.count("'") % 2:  # a program of several lines
                line += f" {next(lines)}"  # noqa: PLW2901
            if line.strip().startswith("itembank ") and "[OPTIONS]" not in line:
                check_command(line)


def check_command(line):
    """Follow a command line through groups and compare its options."""
    words = shlex.split(line.split(" > ")[0], comments=True)[1:]
    command, context = cli, click.Context(cli)
    known = {"-h", "--help"}
    for word in words:
        if word in {"--", "|", "||", "&&"}:  # arguments that are no options, another program
            break
        if isinstance(command, click.Group) and not word.startswith("-"):
            for spelling in word.split("|"):  # 'import table|py-irt' stands for both
                usual = "verdict" if isinstance(command, GateGroup) else None  # `itembank gate A B`
                child = command.get_command(context, spelling) or (usual and command.get_command(context, usual))
                assert child is not None, f"no command {spelling!r} in: {line}"
            command, known = child, {"-h", "--help"}
        elif word.startswith("-") and word != "-":
            known |= {spelling for one in command.params for spelling in (*one.opts, *one.secondary_opts)}
            assert word.split("=")[0] in known, f"no option {word} in: {line}"


@pytest.mark.harness  # YAML comes with the harnesses
def test_the_workflow_hides_nothing_and_the_hook_ends_as_the_gate_does(tmp_path, monkeypatch):
    yaml = pytest.importorskip("yaml")
    flow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    assert (flow[True].keys(), flow["permissions"]) == ({"pull_request", "workflow_dispatch"}, {"contents": "read"})
    steps = flow["jobs"]["gate"]["steps"]
    (gate,) = [step for step in steps if step["uses"] == "./itembank"]
    inputs = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert gate["with"].keys() <= inputs.keys()
    check_command(f"itembank gate next {shlex.join(gate['with']['arguments'].splitlines())}")
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in steps if step is not gate)
    assert "cancelled" in next(step["if"] for step in steps if "upload-artifact" in step["uses"])
    program = tmp_path / "itembank"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > given\nexit 3\n')
    (tmp_path / "git").write_text("#!/bin/sh\necho digest\n")
    for one in (program, tmp_path / "git"):
        one.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    (hook,) = yaml.safe_load(HOOK.read_text(encoding="utf-8"))["repos"][0]["hooks"]
    assert re.match(hook["files"], "prompts/system.txt")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert subprocess.run(shlex.split(hook["entry"]), env=environment, check=False).returncode == 3
    given = Path("given").read_text().splitlines()
    assert (given[:4], given[given.index("--model-id") + 1]) == (["gate", "next", "gate", "--command"], "digest")


@pytest.mark.parametrize("page", sorted({*PAGES, *REPOSITORY.glob("*.md")}), ids=names)
def test_links_within_the_project_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    for target in (one for one in targets if "://" not in one and not one.startswith("mailto:")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_to_headings_find_them(page):
    for target, heading in ANCHOR.findall(page.read_text(encoding="utf-8")):
        there = page.parent / target if target else page
        titles = HEADING.findall(FENCE.sub("", there.read_text(encoding="utf-8")))
        slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
        assert heading in slugs, f"{page.name} links to {target}#{heading}"


NEVER = ["calibration models", "left out in turn", "let expect", "percentage points", "runs as it stands"]


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_no_page_says_it_in_other_words(page):
    text = " ".join(FENCE.sub("", page.read_text(encoding="utf-8")).lower().split())
    assert [words for words in NEVER if words in text] == []
    assert {"bytelms.md", "classifiers.md"} <= {page.name for page in RUNNABLE}
