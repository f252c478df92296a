"""Change constants and operators of kernels, one at a time, and see whether the fast tests notice.

Run ``make mutations`` in a checkout. Six changes are drawn for each of twelve packages, with a seed, from all numbers,
arithmetic operators, comparisons, `and`/`or` and minus signs in files that work on arrays. Each is made in a scratch
copy. The tests that mirror the changed module run first, then those that import it, then those of the modules that
import it, then the whole package's; the first failure ends it. What none of these notices has survived.
"""

import argparse
import ast
import collections
import itertools
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = Path("src"), Path("tests")
PACKAGES = (
    "irt", "numerics", "calibration", "selection", "estimation", "comparison", "planning", "sessions", "scaling",
    "auditing", "gating", "living",
)  # fmt: skip
EACH = 6
SEED = 11
CPU_SECONDS = 240
"""A change that makes one stage of the tests run longer than this, in processor time, is noticed."""
ALWAYS = ("numerics/intervals.py", "1.1", "1.0")
"""The allowance of the intervals: in every sample."""
EQUIVALENT = {
    "src/itembank/irt/beta_binomial.py: step = 1e-2: 1e-2 -> 0.005": "a step of differences: "
    "their error grows with the fourth power and is far too small to matter at either",
    "src/itembank/calibration/variational/ascent.py: if curvature <= 1e-3 * float(np.sum(direction * alone)):: "
    "1e-3 -> 0.0005": "when conjugate "
    "gradients stop short of a direction that is nearly straight: the next sweep goes on from there",
    "src/itembank/calibration/marginal_ml/posterior.py: curve_spacing = float(np.diff(grid.curve_nodes[:2, -1])[0]) "
    "if has_own_curves else 0.0: 2 -> 3": "only the first difference is taken, whatever nodes follow",
    "src/itembank/estimation/design_based.py: freedom = _ratio(sample.sums(counts) ** 2, "
    "sample.sums(counts**2), otherwise=1.0) - 1.0: 1.0 -> 0.5": "of the first, as drawn: "
    "degrees of freedom are at least zero",
    "src/itembank/irt/linear_gaussian.py: remaining = max(total - float(eigenvalues[:n_spikes].sum()), 1e-6 * "
    "total): 1e-6 -> 5e-07": "stands for nothing at all, and must not be zero",
    "src/itembank/irt/families.py: terms = mean_terms(logit + node * spread, asymptotes): "
    "+ -> -": "nodes and weights are symmetric about zero",
    "src/itembank/numerics/newton.py: result: FloatArray = precision + ridge * largest[:, None, None] * "
    "np.eye(precision.shape[1]): 1 -> 2": "precisions are square",
    "src/itembank/irt/answers.py: n_trials = np.where(is_answered, n_trials, 0.0): 0.0 -> 1.0": "terms of cells "
    "without a response are left out afterwards; only NaN would harm",
    "src/itembank/calibration/variational/passes.py: if not isinstance(rule, BetaRule) or blocks.sums is None:: "
    "or -> and": "blocks have sums where the rule is that of the Beta family, and only there",
    "src/itembank/comparison/comparisons.py: which = flagged[self.pairs.first] + 2 * flagged[self.pairs.second]: "
    "+ -> -": "-2 and -1 name the same texts, counted from the end",
    "src/itembank/irt/beta_binomial.py: left, right = 1.0 / a + 1.0 / (n * p), 1.0 / b + 1.0 / (n * (1.0 - p)): "
    "1.0 -> 0.5": "of all but the last: the range reaches 6.4 standard deviations instead of 9, and what lies beyond "
    "is under 1e-9",
    "src/itembank/selection/greedy.py: if step + 1 == n_steps:: + -> -": "spares work that nothing uses any more",
    "src/itembank/comparison/pairs.py: return PairErrorModel(constant, slope, quantile, min(4.0 + 6.0 / max(excess, "
    "1e-9), errors.shape[0] - 1.0), level): 1e-9 -> 5e-10": "either gives the number of models less one",
    "src/itembank/calibration/start.py: first = gram.sum(axis=1) + np.linspace(-1.0, 1.0, size) * np.abs(gram[0, 0])  "
    "# fixed, so that results repeat: * -> /": "any vector begins the search for the eigenvectors",
    "src/itembank/calibration/start.py: if weights.shape[0] <= weights.shape[1]:: <= -> >": "either side solves the "
    "same equations, the larger one in more time",
    "src/itembank_scaling/pretraining/curve_laws.py: power = np.exp(np.minimum(log_scale - exponent * x, 300.0)): "
    "300.0 -> 150.0": "keeps numbers from overflowing",
    "src/itembank_scaling/pass_at_k/cell_posterior.py: values, vectors = np.linalg.eigh(0.5 * (curvature + "
    "curvature.T)): 0.5 -> 0.25": "wider proposals, whose weights give the same posterior",
    "src/itembank_scaling/compute.py: return np.array([truth.get(word, 0.0) == 1.0 for word in words], dtype=bool): "
    "0.0 -> 1.0": "of words that are refused",
    "src/itembank/auditing/item_evidence.py: weights[0] = np.log(share / (1.0 - share)): - -> +": "where Newton's "
    "method begins",
    "src/itembank/sessions/estimates.py: typicality = _mixed([(past.typicality_of(expected.misfit[:, 0]), share) for "
    "past, share in near[0]]): 0 -> 1": "the misfit is that of the answers, the same for all scores",
    'src/itembank_living/changes/linking.py: progress("linking error", one / n_groups): / -> '
    "*": "progress that is shown",
    "src/itembank/gating/gate.py: return Look(n, value, ends[0], ends[1], (ends[2], ends[3]), (ends[4], ends[5]), "
    "is_exact=part == 0.0): 4 -> 5": "a candidate fails by the upper end of this bound alone",
    "src/itembank_living/changes/fixed_parameters.py: half = ndtri((0.5 + np.outer(np.arange(1, 129), steps)) % 1.0): "
    "1 -> 2": "points elsewhere in the same sequence",
    "src/itembank_living/changes/growing.py: ridge = 1e-9 * size[:, None, None] * np.eye(slopes.shape[1]): * "
    "-> /": "next to nothing either way",
    "src/itembank_living/changes/fixed_parameters.py: points = mode[block][:, None, :] + wider * np.einsum("
    '"iab,qb->iqa", roots, units): + -> -': "points are symmetric about the mode",
}
"""Changes that no test can see, each with the reason: the next of the drawn list takes the place."""
OPPOSITE: dict[type, str] = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.Pow: "*", ast.FloorDiv: "*", ast.Mod: "*",
    ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.And: "or",
    ast.Or: "and", ast.USub: "+",
}  # fmt: skip
SIGN: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and",
    ast.Or: "or", ast.USub: "-",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    """`old` at character `at` of a source file becomes `new`."""

    path: Path
    at: int
    line: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}: {self.line}: {self.old} -> {self.new}"

    def apply(self, text: str) -> str:
        """Return the text of the file with the change made."""
        return text[: self.at] + self.new + text[self.at + len(self.old) :]


def mutations_of(path: Path) -> list[Mutation]:
    """Every change that the rule allows in one file, in the order of the file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    lines, raw = text.splitlines(keepends=True), text.encode()
    starts = [0, *itertools.accumulate(len(line.encode()) for line in lines)]

    def position(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    places = []  # where a change begins, what stands there, what comes
    for node in _in_code(ast.parse(text)):
        begin, end = position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)
        if isinstance(node, ast.Constant):
            places.append((begin, text[begin:end], _other_number(node.value)))
        elif isinstance(node, ast.UnaryOp):
            places.append((begin, "-", "+"))
        else:
            for left, operator, right in _operators(node):
                gap = position(left.end_lineno, left.end_col_offset), position(right.lineno, right.col_offset)
                sign = SIGN[type(operator)]
                places.append((text.index(sign, *gap), sign, OPPOSITE[type(operator)]))
    return [Mutation(path, at, lines[text.count("\n", 0, at)].strip(), *change) for at, *change in sorted(set(places))]


def _in_code(tree: ast.AST) -> Iterator[ast.expr]:
    """Walk the expressions that may change: no annotations, no texts, nothing of an error that is raised."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr):
            continue
        for annotation in {"annotation", "returns"} & set(node._fields):
            setattr(node, annotation, None)
        is_number = isinstance(node, ast.Constant) and type(node.value) in {int, float}
        is_minus = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        if is_number or is_minus or isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp):
            yield node
        yield from _in_code(node)


def _operators(node: ast.expr) -> Iterator[tuple[ast.expr, ast.AST, ast.expr]]:
    if isinstance(node, ast.BinOp):
        triples = [(node.left, node.op, node.right)]
    elif isinstance(node, ast.Compare):
        triples = list(zip([node.left, *node.comparators], node.ops, node.comparators, strict=False))
    else:
        triples = [(left, node.op, right) for left, right in itertools.pairwise(node.values)]
    return (triple for triple in triples if type(triple[1]) in SIGN)


def _other_number(value: float) -> str:
    """Whole numbers become one more, others half as large: by more than any allowance for rounding."""
    return repr(value + 1) if isinstance(value, int) else repr(value / 2 if value else 1.0)


def drawn(package: str, seed: int) -> list[Mutation]:
    """All changes of a package's kernels in an order by chance: those that are known to be equivalent left out."""
    places = (ROOT / SOURCE / "itembank" / package, ROOT / SOURCE / f"itembank_{package}")
    files = sorted(file for place in places for file in place.rglob("*.py"))
    kernels = [file.relative_to(ROOT) for file in files if "FloatArray" in file.read_text(encoding="utf-8")]
    found = [one for path in kernels for one in mutations_of(path)]
    random.Random(f"{seed} {package}").shuffle(found)  # noqa: S311
    suffix, old, new = ALWAYS
    first = [
        Mutation(one.path, one.at, one.line, old, new)
        for one in found
        if str(one.path).endswith(f"{package}/{suffix.split('/')[1]}") and one.old == old
    ]
    return [*first, *(one for one in found if not (first and one.at == first[0].at and one.path == first[0].path))]


def stages(path: Path) -> Iterator[list[str]]:
    """Test files for a module, nearest first, none twice."""
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    mirrored = _mirrored(path)
    users = [file for file in _importing(SOURCE, module) if file != path]
    of_users = [_mirrored(file) for file in users]
    done: set[Path] = set()
    wide = sorted((ROOT / TESTS / mirrored.relative_to(TESTS).parts[0]).rglob("test_*.py"))
    for stage in (
        [mirrored],
        [file for file in _importing(TESTS, module) if file.name.startswith("test_")],
        of_users,
        [file.relative_to(ROOT) for file in wide],
    ):
        new = [file for file in stage if file not in done and (ROOT / file).is_file()]
        done.update(new)
        if new:
            yield [str(file) for file in new]


def _mirrored(path: Path) -> Path:
    """Return the tests of a module: those of the core by its room, those of another package by its name."""
    package, *rooms = path.relative_to(SOURCE).parent.parts
    return TESTS.joinpath(*package.removeprefix("itembank").strip("_").split(), *rooms, f"test_{path.name}")


def _importing(folder: Path, module: str) -> list[Path]:
    package, _, name = module.rpartition(".")
    marks = (f"from {module} import", f"import {module}", f"from {package} import {name}")
    files = sorted((ROOT / folder).rglob("*.py"))
    return [file.relative_to(ROOT) for file in files if any(mark in file.read_text(encoding="utf-8") for mark in marks)]


def failure(copy: Path, files: list[str]) -> str | None:
    """Run test files in a child of this process, which has loaded what never changes; name the first that fails."""
    report = copy / "failure.txt"
    report.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os._exit(_run_tests(copy, files, report))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"over {CPU_SECONDS} s" if os.WTERMSIG(status) == signal.SIGXCPU else f"signal {os.WTERMSIG(status)}"
    if os.WEXITSTATUS(status) in {0, 5}:  # 5: every test of these files is slow
        return None
    return report.read_text(encoding="utf-8") if report.exists() else "an error before any test"


class _FirstFailure:
    """Plugin of pytest that keeps the name of what failed."""

    def __init__(self, report: Path) -> None:
        self.report = report

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.report.write_text(report.nodeid, encoding="utf-8")

    pytest_collectreport = pytest_runtest_logreport


def _run_tests(copy: Path, files: list[str], report: Path) -> int:
    import pytest  # noqa: PLC0415

    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    sys.path[:0] = [str(copy / "src"), str(copy)]
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    options = ["-x", "-q", "-m", "not slow", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider"]
    return int(pytest.main([*options, *files], plugins=[_FirstFailure(report)]))


def killed_by(copy: Path, mutation: Mutation, number: int) -> str | None:
    """Return the first test that fails with a change, None if all pass; put the file back."""
    target, original = copy / mutation.path, ROOT / mutation.path
    target.write_text(mutation.apply(original.read_text(encoding="utf-8")), encoding="utf-8")
    os.utime(target, (number, number))  # a time of its own: no compiled file of another change is taken for it
    try:
        for files in stages(mutation.path):
            name = failure(copy, files)
            if name is not None:
                return name
        return None
    finally:
        shutil.copy2(original, target)


def scratch_copy(folder: str) -> Path:
    copy = Path(folder) / "copy"
    ignored = shutil.ignore_patterns(".git", ".venv*", "_build", ".hypothesis", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=ignored)
    return copy


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--each", type=int, default=EACH, help="changes of each package")
    parser.add_argument("--package", action="append", choices=PACKAGES)
    parser.add_argument("--list", action="store_true", help="name the changes and end")
    chosen = parser.parse_args()
    import numpy as np  # noqa: F401, PLC0415
    import polars as pl  # noqa: F401, PLC0415
    import scipy.optimize  # noqa: PLC0415
    import scipy.stats  # noqa: F401, PLC0415

    table, witnesses = collections.Counter(), set()
    with tempfile.TemporaryDirectory() as folder:
        copy = scratch_copy(folder)
        number = 0
        for package in chosen.package or PACKAGES:
            judged = 0
            for mutation in drawn(package, chosen.seed):
                if judged == chosen.each:
                    break
                if str(mutation) in EQUIVALENT:
                    print(f"equivalent  {mutation}: {EQUIVALENT[str(mutation)]}", flush=True)
                    continue
                judged += 1
                if chosen.list:
                    print(mutation)
                    continue
                number += 1
                name = killed_by(copy, mutation, number)
                table[package, name is not None] += 1
                witnesses.update({name} - {None})
                print(f"{'survived' if name is None else 'killed  '}    {mutation}    {name or ''}", flush=True)
        false = failure(copy, sorted(name for name in witnesses if "::" in name)) if witnesses else None
    if false is not None:
        print(f"{false} fails without a change too")
        return 2
    killed = sum(count for (_, is_killed), count in table.items() if is_killed)
    print(f"{killed} of {sum(table.values())} killed")
    return int(killed < 0.95 * sum(table.values()))


if __name__ == "__main__":
    sys.exit(main())
