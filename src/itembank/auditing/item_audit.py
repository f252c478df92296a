"""The verb `audit_items`: what may be wrong with the items of a benchmark."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from itembank.auditing.answer_letters import COLUMNS, own_answers, rival_answers
from itembank.auditing.defect_model import (
    SIMULATED,
    defect_features,
    out_of_fold,
    rank_quality,
    share_right,
)
from itembank.auditing.differential_items import compared_models, differential_of, responses_of
from itembank.auditing.differential_results import DifferentialItems
from itembank.auditing.duplicates import duplicates_of
from itembank.auditing.item_audit_names import ORDERS
from itembank.auditing.item_audit_results import ItemAudit, LabelCheck, flagged_of
from itembank.auditing.item_evidence import ItemEvidence, item_evidence
from itembank.auditing.item_reasons import flags, with_reasons
from itembank.auditing.item_statistics import ItemStatistics, item_statistics
from itembank.auditing.panel import Panel, panel_of
from itembank.bank.arguments import GivenResponses
from itembank.bank.banks import Bank
from itembank.checks import check_one_of
from itembank.errors import DataError
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.ties import rounded
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.table_files import read_table_file
from itembank.responses.responses import ResponseMatrix

TEXT_COLUMNS = ("question", "text", "prompt", "input", "problem", "query", "instruction", "doc")
"""Columns of an item table that may hold its text, the likeliest first."""
N_FOLDS, LEAST_GROUPS = 5, 3
"""Of items at random, where there are fewer than three groups to leave out."""
LEAST_LABELS = 10
"""Known bad items, and others, that a model of defects can be learnt from."""
RANGES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
"""Of probability, for what came true of it."""
FEW_POINTS = 0.05
"""Standard deviation of models' scores below which they are too much alike."""
WEAK = 0.5
"""Share of right answers of the best models below which a wrong key looks like a hard item."""
ENOUGH_MODELS = 30
"""With fewer, most wrong keys are not found (the tables of docs/audit.md)."""
ENOUGH_ITEMS = 200
"""Of which some should have a negative item-rest correlation, if nobody has thrown them out."""


@one_blas_thread()
def audit_items(
    source: Bank | GivenResponses,
    *,
    known: Sequence[str] | None = None,
    choices: pl.DataFrame | str | Path | None = None,
    by: str | None = None,
    clusters: str | None = None,
    duplicates: bool = True,
    order: str = "probability",
    progress: ProgressCallback = silent,
) -> ItemAudit:
    """Look for items with a wrong key, without sense, asked twice, or unlike for some models.

    Answers alone are looked at: what is flagged should be read by a person. See docs/audit.md.

    Parameters
    ----------
    source : Bank, ResponseMatrix, path or paths
        Of a bank, its calibration responses.
    known : sequence of str, optional
        Ids of items that are known to be bad, at least ten. The probability of a defect is then learnt from them,
        for each item by a model that has not seen the items of its group.
    choices : table or path, optional
        Which answer each model gave: columns `model_id`, `item_id`, `choice`.
    by : str, optional
        Column of the model table: also look for items that differ between its groups (`differential_items`).
    clusters : str, optional
        Column of the model table, of base models for one, whose equal values count as one model in that.
    duplicates : bool
        Look for duplicates, which takes most of the time where there are ten thousands of items.
    order : str
        'probability': of a defect. 'suspicion': first where the best models fail on an item among easy ones.
        'key-ratio': first where another key explains the answers best, for models of mixed strength.
    progress : ProgressCallback

    Returns
    -------
    ItemAudit

    Raises
    ------
    DataError
        With fewer than five models; when known ids are unknown or too few, or a column is not there.
    ParameterError
        For another order.

    Examples
    --------
    >>> audit = audit_items("responses.parquet")  # doctest: +SKIP
    >>> audit.having(["wrong-key"])  # doctest: +SKIP
    """
    check_one_of("order", order, ORDERS)
    responses = responses_of(source, "An audit needs")
    is_bad = None if known is None else _labels(responses, known)
    answers = None if choices is None else own_answers(_choices(choices), responses)
    if by is not None:
        compared_models(responses, by, clusters)  # refused before the work
    progress("abilities and statistics", 0.0)
    panel = panel_of(responses)
    statistics, evidence = item_statistics(panel), item_evidence(panel)
    features = defect_features(evidence, statistics)
    probability = SIMULATED.probability(features)
    if is_bad is not None:
        probability = out_of_fold(features, is_bad, _folds(panel.group))
    flagged = flags(statistics, evidence, probability)
    table = _table(responses, statistics, evidence, probability)
    if duplicates:
        progress("duplicates", 0.3)
        table, flagged["duplicate"] = _with_duplicates(table, responses, panel, evidence)
    differential = None
    if by is not None:
        part = part_of(progress, 0.7, 1.0)
        differential = differential_of(responses, panel, by, clusters=clusters, level=0.05, progress=part)
        table, flagged["differs"] = _with_groups(table, differential)
    if answers is not None:
        rivals = rival_answers(answers, responses, panel)
        table = table.join(rivals, on="item_id", how="left", maintain_order="left")
    table = with_reasons(table, flagged)
    labels = None if is_bad is None else _label_check(table, is_bad)
    return ItemAudit(
        responses.n_models,
        order,
        _with_text(_ordered(table, order), responses.items),
        tuple(_cautions(panel, statistics)),
        labels,
        differential,
    )


def _labels(responses: ResponseMatrix, known: Sequence[str]) -> BoolArray:
    """Which items are known to be bad, (n_items,)."""
    is_bad = np.zeros(responses.n_items, dtype=np.bool_)
    is_bad[responses.item_indices(list(dict.fromkeys(known)))] = True
    if not LEAST_LABELS <= is_bad.sum() <= responses.n_items - LEAST_LABELS:
        raise DataError(
            f"at least {LEAST_LABELS} items known to be bad, and as many others, are needed to learn from, got "
            f"{is_bad.sum()} bad of {responses.n_items}. Give more, or none."
            " (Without them the probability rests on simulated faults.)"
        )
    return is_bad


def _folds(group: IntArray) -> IntArray:
    """Return groups of items, or, where there are few, items dealt out in turn."""
    return group if group.max() + 1 >= LEAST_GROUPS else np.arange(group.size) % N_FOLDS


def _label_check(table: pl.DataFrame, is_bad: BoolArray) -> LabelCheck:
    """Compare the probability, and what is flagged, with what is known."""
    probability = table["probability"].to_numpy()
    flagged = flagged_of(table.with_columns(is_bad=is_bad))
    n_flagged, said_of, real_of = flagged.height, flagged["probability"].to_numpy(), flagged["is_bad"].to_numpy()
    first = {n: share_right(said_of, real_of, n) for n in (50, 200, n_flagged) if 0 < n <= n_flagged}
    place = np.clip(np.searchsorted(RANGES, probability, side="right"), 1, len(RANGES) - 1)
    bins = ((probability[place == k].mean(), is_bad[place == k].mean(), int((place == k).sum())) for k in set(place))
    said = sorted((float(said), float(real), count) for said, real, count in bins)
    return LabelCheck(int(is_bad.sum()), rank_quality(probability, is_bad), first, tuple(said))


def _table(
    responses: ResponseMatrix, statistics: ItemStatistics, evidence: ItemEvidence, probability: FloatArray
) -> pl.DataFrame:
    """Put the numbers on items into one table."""
    numbers = {
        "probability": probability,
        "suspicion": evidence.suspicion,
        "key_ratio": evidence.key_lr,
        "noise_ratio": evidence.noise_lr,
        "slope": evidence.slope,
        "slope_error": evidence.slope_error,
        "top_logit": evidence.top_logit,
        "n_models": statistics.n_models,
        "mean": statistics.mean,
        "item_rest": statistics.item_rest,
        "n_best": statistics.n_best,
        "n_best_right": statistics.n_best_right,
        "worth": statistics.worth,
    }
    return responses.items.select("item_id", "scenario", "subscenario").with_columns(
        pl.Series(name, values, nan_to_null=True) for name, values in numbers.items()
    )


def _with_duplicates(
    table: pl.DataFrame, responses: ResponseMatrix, panel: Panel, evidence: ItemEvidence
) -> tuple[pl.DataFrame, BoolArray]:
    """Add the item that each repeats, and mark those; the first of a pair is no duplicate."""
    found = duplicates_of(responses, panel, evidence).table.filter(verdict="duplicate")
    first = found.select("item_id", "duplicate_of", duplicate_ratio="log_ratio").unique("item_id", keep="first")
    table = table.join(first, on="item_id", how="left", maintain_order="left")
    return table, table["duplicate_of"].is_not_null().to_numpy()


def _with_groups(table: pl.DataFrame, differential: DifferentialItems) -> tuple[pl.DataFrame, BoolArray]:
    """Add for which group each item differs most, and mark those that do."""
    most = differential.flagged.unique("item_id", keep="first", maintain_order=True)
    told = most.select("item_id", differs_for="group", differs_by="effect")
    table = table.join(told, on="item_id", how="left", maintain_order="left")
    return table, table["differs_for"].is_not_null().to_numpy()


def _choices(given: pl.DataFrame | str | Path) -> pl.DataFrame:
    """Read the table of answers, or take it as it is."""
    return given if isinstance(given, pl.DataFrame) else read_table_file(Path(given), text=COLUMNS).frame


def _ordered(table: pl.DataFrame, order: str) -> pl.DataFrame:
    """Put the most suspicious first; equals stand in the order of their ids."""
    keys = [name.replace("-", "_") for name in (order, ORDERS[order])]
    ranks = [pl.Series(name, rounded(table[name].to_numpy())) for name in keys]
    return table.sort([*ranks, "item_id"], descending=[True, True, False])


def _with_text(table: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """Add the text of items where the item table has one."""
    by_name = {name.rpartition(".")[2].casefold(): name for name in items.columns if items.schema[name] == pl.String}
    name = next((by_name[word] for word in TEXT_COLUMNS if word in by_name), None)
    if name is None:
        return table
    return table.join(items.select("item_id", text=name), on="item_id", how="left", maintain_order="left")


def _cautions(panel: Panel, statistics: ItemStatistics) -> Iterator[str]:
    """Say why faults may be hidden, or sound items look faulty."""
    n_items, n_models = statistics.mean.size, int(panel.observed.any(axis=1).sum())
    if n_models < ENOUGH_MODELS:
        yield (
            f"{n_models} models are few. Of wrong keys planted among real answers a third was found with 14 models, "
            f"and half with {ENOUGH_MODELS}: an item that is not flagged may be wrong. Add models."
        )
    if n_items >= ENOUGH_ITEMS and not (statistics.item_rest < 0.0).any():
        yield (
            f"None of {n_items} items has a negative item-rest correlation. Either all keys are right, or items were "
            "selected by what they tell of models, which throws out most items with wrong keys: audit the whole "
            "benchmark then."
        )
    if panel.scores.std() < FEW_POINTS:
        yield (
            f"The models are much alike (standard deviation of scores {panel.scores.std():.3f}): correlations and the "
            "likelihood ratio of the key say little. Go by the best models' failures, or add weaker models."
        )
    best = np.sort(panel.scores)[-3:].mean()
    if best < WEAK:
        yield (
            f"The best models are right on {best:.0%} of the items only: a wrong key then looks like a hard item. Add "
            "stronger models."
        )
