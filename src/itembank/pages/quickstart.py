"""The whole job on built-in data: hold models out, calibrate, select, estimate, compare with the truth."""

import shlex
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.bank.bank_files import check_bank_destination, save_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.calibration.build import build_bank
from itembank.checks import check_whole
from itembank.errors import DataWarning, MissingDependencyError, ParameterError, shown
from itembank.estimation.estimate import estimate
from itembank.estimation.estimates import ScoreEstimates
from itembank.files.atomic import adding_to_folder
from itembank.numerics.arrays import FloatArray
from itembank.numerics.random import as_generator
from itembank.numerics.ranks import spearman
from itembank.pages.blocks import Answer, Answers, Chart, Column, Facts, Section, Table, Text, bank_provenance
from itembank.pages.render import Page
from itembank.pages.theme import ATYPICAL_WORDS, count, level_words, percent, plural, points
from itembank.pages.truth_charts import PredictionPanel, predicted_against_true_chart
from itembank.planning.select import select
from itembank.progress import ProgressCallback, silent
from itembank.readers.builtin import load_builtin
from itembank.responses.response_files import write_responses
from itembank.responses.responses import ResponseMatrix
from itembank.responses.score_names import OVERALL

HELD_OUT_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to choose items together with a way to estimate from them."""

    name: str
    selection: str
    method: str


STRATEGIES = (
    Strategy("random sampling", "stratified", "mean"),
    Strategy("anchor points", "anchor-irt", "weighted"),
    Strategy("gp-IRT", "anchor-irt", "gp-irt"),
    Strategy("itembank's default", "auto", "auto"),
)
DEFAULT = STRATEGIES[-1]
"""Its items and estimates are those that the folder is about."""
BY_CHANCE = STRATEGIES[0]
"""What everybody can do without a bank."""
SHOWN = (BY_CHANCE, DEFAULT)


@dataclass(frozen=True, slots=True)
class StrategyErrors:
    """How far a strategy's estimates of the overall score were from the truth, over all repeats."""

    strategy: Strategy
    # In how many repeats items were chosen, and scores estimated, by what: where the strategy says 'auto', what that
    # came to.
    selections_used: Mapping[str, int]
    methods_used: Mapping[str, int]
    mean_absolute_error: float  # In points of the score (0 to 100)
    worst_error: float
    spearman: float  # Rank correlation of estimated and true scores of the held-out models, mean over the repeats
    coverage: float  # Share of intervals that hold the true score; the level says how many should
    level: float

    def row(self) -> dict[str, Any]:
        """One record, as the command line prints it."""
        return {
            "strategy": self.strategy.name,
            "selection": self.strategy.selection,
            "method": self.strategy.method,
            "selections_used": _counted(self.selections_used),
            "methods_used": _counted(self.methods_used),
            "mean_absolute_error": self.mean_absolute_error,
            "worst_error": self.worst_error,
            "spearman": self.spearman,
            "coverage": self.coverage,
            "level": self.level,
        }


def _counted(names: Mapping[str, int]) -> str:
    """Say one name as it is, several with how often each came."""
    if len(names) == 1:
        return next(iter(names))
    return ", ".join(f"{count} {name}" for name, count in sorted(names.items(), key=lambda one: -one[1]))


@dataclass(frozen=True, slots=True)
class Round:
    """One split of the models and all that was made of it."""

    bank: Bank
    held_out: ResponseMatrix  # All responses of the models the bank does not know
    true: FloatArray  # (n_held_out, n_targets): Their true scores: every scenario, then overall
    selections: Mapping[str, Selection]
    estimates: tuple[ScoreEstimates, ...]  # tuple of ScoreEstimates, one a strategy


@dataclass(frozen=True, slots=True)
class QuickstartResult:
    """What the quickstart found and where it lies."""

    errors: tuple[StrategyErrors, ...]
    first: Round  # The repeat that was written to the folder
    n_repeats: int
    files: Mapping[str, Path]
    notes: tuple[str, ...]  # What was left out, and why


def run_quickstart(
    folder: str | Path,
    *,
    n_items: int = 100,
    n_repeats: int = 3,
    rng: np.random.Generator | int | None = 0,
    progress: ProgressCallback = silent,
) -> QuickstartResult:
    """Do the whole job on the language models of `bytelms` and write it to a folder.

    Hold out a quarter of the training runs with all their checkpoints, calibrate on the rest, choose items, estimate
    the held-out models' scores from these items alone, and compare with their true scores. Every repeat splits,
    calibrates and chooses anew; the files are of the first.

    Parameters
    ----------
    folder : path
        Gets `bank/`, `selection.json` (by 'auto'), `new-models.parquet` (the held-out models' responses to the
        items in it), `estimates.csv` (of all strategies) and, where vl-convert is installed,
        `predicted-against-true.png`.
    n_items : int
        Items to choose, in all.
    n_repeats : int
    rng : Generator, int or None
    progress : ProgressCallback

    Raises
    ------
    ParameterError
        For fewer than one repeat, more items than there are, or a folder with files of something else.
    BankError
        When `bank` in the folder is something other than a bank.

    Examples
    --------
    >>> result = run_quickstart("quickstart")  # doctest: +SKIP
    >>> [round(one.mean_absolute_error, 1) for one in result.errors]  # doctest: +SKIP
    """
    check_whole("n_repeats", n_repeats, least=1)
    folder = Path(folder)
    _check_folder(folder)
    check_bank_destination(folder / "bank", overwrite=True)
    responses = load_builtin("bytelms")
    rounds = []
    for number, generator in enumerate(as_generator(rng).spawn(n_repeats)):
        progress(f"repeat ({number + 1} of {n_repeats})", number / n_repeats)
        rounds.append(_run_round(responses, n_items, generator))
    progress("writing", 1.0)
    files, notes = _write(folder, rounds)
    errors = tuple(_errors(strategy, k, rounds) for k, strategy in enumerate(STRATEGIES))
    return QuickstartResult(errors, rounds[0], n_repeats, files, notes)


def _files(folder: Path) -> dict[str, Path]:
    """Where each file goes."""
    return {
        "bank": folder / "bank",
        "selection": folder / "selection.json",
        "responses": folder / "new-models.parquet",
        "estimates": folder / "estimates.csv",
    }


def _check_folder(folder: Path) -> None:
    """Raise `ParameterError` when something else than an earlier quickstart would be overwritten."""
    files = _files(folder).values()
    there = [path.name for path in files if path.exists()]
    if there and len(there) < len(files):
        raise ParameterError(
            f"{folder} must be a new folder or that of an earlier quickstart, but it holds {shown(there)} of something "
            "else. Choose another folder (-o)."
        )


def _run_round(responses: ResponseMatrix, n_items: int, rng: np.random.Generator) -> Round:
    """Split, calibrate, select, estimate."""
    runs = responses.models["mixture"] + "/" + responses.models["size"]
    names = runs.unique(maintain_order=True)
    chosen = rng.permutation(len(names))[: round(HELD_OUT_SHARE * len(names))]
    is_held_out = runs.is_in(names.gather(chosen).implode()).to_numpy()
    held_out, past = (responses.take(models=np.flatnonzero(one)) for one in (is_held_out, ~is_held_out))
    with warnings.catch_warnings():  # late checkpoints of one run answer alike, as they should
        warnings.filterwarnings("ignore", ".* models answer like another one", DataWarning)
        bank = build_bank(past, rng=rng)
    seed = int(rng.integers(2**31))
    methods = dict.fromkeys(strategy.selection for strategy in STRATEGIES)
    selections = {method: select(bank, n_items, method=method, rng=seed) for method in methods}
    estimates = tuple(
        estimate(bank, held_out, selection=selections[strategy.selection], method=strategy.method)
        for strategy in STRATEGIES
    )
    true = bank.targets.with_overall(bank.targets.scenario_means(held_out.responses))
    return Round(bank, held_out, true, selections, estimates)


def _errors(strategy: Strategy, k: int, rounds: list[Round]) -> StrategyErrors:
    """Errors of the k-th strategy over all repeats."""
    found = [one.estimates[k] for one in rounds]
    column = found[0].targets.index(OVERALL)
    true = np.array([one.true[:, column] for one in rounds])  # (n_repeats, n_held_out)
    value, low, high = (np.array([getattr(one, name)[:, column] for one in found]) for name in ("value", "low", "high"))
    points = 100.0 * np.abs(value - true)
    return StrategyErrors(
        strategy,
        Counter(one.selections[strategy.selection].method for one in rounds),
        Counter(one.method for one in found),
        float(points.mean()),
        float(points.max()),
        float(np.mean(spearman(true, value))),
        float(np.mean((low <= true) & (true <= high))),
        found[0].level,
    )


def _write(folder: Path, rounds: Sequence[Round]) -> tuple[dict[str, Path], tuple[str, ...]]:
    """Write the first repeat's files; return where they are and what was left out."""
    first = rounds[0]
    selection = first.selections[DEFAULT.selection]
    left_out: tuple[str, ...] = ()
    with adding_to_folder(folder) as new:
        files = _files(new)
        save_bank(first.bank, files["bank"])
        selection.save(files["selection"])
        chosen = first.held_out.item_indices(selection.item_ids)
        write_responses(first.held_out.take(items=chosen), files["responses"])
        _estimate_table(first).write_csv(files["estimates"])
        try:
            files["figure"] = _figure(rounds).save(new / "predicted-against-true.png")
        except MissingDependencyError as error:
            left_out = (f"The figure was left out: {error}",)
    return {name: folder / path.name for name, path in files.items()}, left_out


def _figure(rounds: Sequence[Round]) -> Chart:
    """Draw estimates of all repeats by chance and by the default."""
    chance, ours = (_panel(rounds, strategy) for strategy in SHOWN)
    n_items, n_total = rounds[0].selections[DEFAULT.selection].n_items, rounds[0].bank.n_items
    title = (
        f"{count(n_items)} of {count(n_total)} questions give the full score to {points(ours.error)} on average, where "
        f"{chance.title} errs by {points(chance.error)}"
    )
    return predicted_against_true_chart([chance, ours], title=title)


def _estimate_table(one: Round) -> pl.DataFrame:
    """All estimates of all strategies beside the true scores."""
    tables = []
    for strategy, estimates in zip(STRATEGIES, one.estimates, strict=True):
        table = pl.DataFrame(estimates.rows())  # every target of the first model, then of the next, like `true`
        tables.append(table.with_columns(true=pl.Series(one.true.ravel()), strategy=pl.lit(strategy.name)))
    first = ["strategy", "model_id", "target", "true"]
    combined = pl.concat(tables)
    return combined.select(*first, *(name for name in combined.columns if name not in first))


def _panel(rounds: Sequence[Round], strategy: Strategy) -> PredictionPanel:
    """Estimated and true overall scores by a strategy, in some of the repeats."""
    k, column = STRATEGIES.index(strategy), rounds[0].estimates[0].targets.index(OVERALL)
    found = [one.estimates[k] for one in rounds]
    true = np.concatenate([one.true[:, column] for one in rounds])
    value, low, high = (
        np.concatenate([getattr(one, name)[:, column] for one in found]) for name in ("value", "low", "high")
    )
    flagged = np.concatenate([one.typicality.is_flagged for one in found])
    return PredictionPanel(strategy.name, true, value, low, high, flagged)


def quickstart_page(result: QuickstartResult, *, title: str = "", command: str = "") -> Page:
    """Return the page of what `run_quickstart` found.

    Examples
    --------
    >>> quickstart_page(run_quickstart("quickstart", rng=0)).save("report.html")  # doctest: +SKIP
    """
    first = result.first
    n_items, n_total = first.selections[DEFAULT.selection].n_items, count(first.bank.n_items)
    chance, ours = (next(one for one in result.errors if one.strategy == strategy) for strategy in SHOWN)
    by_chance, by_ours = (points(one.mean_absolute_error / 100.0) for one in (chance, ours))
    answers = [
        Answer(f"Mean error, {one.strategy.name}", error, words=f"Largest error {points(one.worst_error / 100.0)}")
        for one, error in ((chance, by_chance), (ours, by_ours))
    ]
    level = level_words(ours.level)
    answers.append(
        Answer(
            "Coverage of the intervals",
            percent(ours.coverage, 0),
            words=f"Share of {level} intervals by {ours.strategy.name} that cover the true score",
        )
    )
    repeats = f" Errors are over {result.n_repeats} such splits, the picture is of one." if result.n_repeats > 1 else ""
    done = (
        f"{plural(first.held_out.n_models, 'model')} that the bank had never seen were estimated from {n_items} of "
        f"{n_total} questions, and compared with their full runs. The models are tiny language models of our own; no "
        f"checkpoint of a held-out training run is in the bank.{repeats}"
    )
    bank, selection, responses = (shlex.quote(str(result.files[name])) for name in ("bank", "selection", "responses"))
    following = (
        ("Look at the bank", f"itembank report {bank} -o bank.html"),
        (
            "Look at the estimates",
            f"itembank estimate {bank} {responses} --selection {selection} --report estimates.html",
        ),
        ("Import your own results", "itembank import LOGS -o responses.parquet"),
    )
    drawn = [_panel([first], strategy) for strategy in SHOWN]
    means = f"On average {BY_CHANCE.name} is off by {by_chance}, {DEFAULT.name} by {by_ours}"
    return Page(
        title=title or f"{n_items} of {n_total} questions: {by_chance} off by chance, {by_ours} by itembank",
        kind="Quickstart",
        lead=(Answers(tuple(answers)), Text(done)),
        sections=(
            Section(
                "Estimated against true",
                (predicted_against_true_chart(drawn, title=means), _models(first.held_out.model_ids, drawn)),
            ),
            Section("Four ways to do it", (_strategies(result),)),
            Section("What to do next", (Facts(following, are_commands=True),)),
        ),
        provenance=bank_provenance(first.bank),
        command=command,
    )


def _models(model_ids: Sequence[str], drawn: Sequence[PredictionPanel]) -> Table:
    rows = {
        "model": [*model_ids] * len(drawn),
        "way": [one.title for one in drawn for _ in model_ids],
        **{
            name: np.concatenate([getattr(one, name) for one in drawn])
            for name in ("true", "estimate", "low", "high", "is_flagged")
        },
        "error": np.concatenate([one.estimate - one.true for one in drawn]),
    }
    columns = (
        Column("model", "Model", "id"),
        Column("way", "Way", has_menu=True),
        Column("true", "True", "score"),
        Column("estimate", "Estimated", "score"),
        Column("low", "From", "score"),
        Column("high", "To", "score"),
        Column("error", "Error", "points", 1, "Estimated minus true, in points"),
        Column("is_flagged", "Unlike past", "flag", explanation=ATYPICAL_WORDS.capitalize(), has_menu=True),
    )
    return Table.of("Held-out models", "models", rows, columns, n_shown=10)


def _strategies(result: QuickstartResult) -> Table:
    rows = [
        {
            "way": one.strategy.name,
            "items_by": ", ".join(one.selections_used),
            "score_by": ", ".join(one.methods_used),
            "mean": one.mean_absolute_error,
            "worst": one.worst_error,
            "order": one.spearman,
            "coverage": one.coverage,
        }
        for one in result.errors
    ]
    columns = (
        Column("way", "Way"),
        Column("items_by", "Questions by"),
        Column("score_by", "Score by"),
        Column("mean", "Mean error", "number"),
        Column("worst", "Worst error", "number"),
        Column("order", "Rank correlation", "number", 3, "Of estimated and true scores"),
        Column("coverage", "Coverage", "percent", 0, "Share of intervals that cover the true score"),
    )
    return Table.of("Errors of the overall score, in points", "strategies", rows, columns)
