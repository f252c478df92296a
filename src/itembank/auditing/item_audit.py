"""What may be wrong with the items of a benchmark: the verb `audit_items` and its result, from evidence to reasons."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from itembank.auditing.differential_items import (
    DifferentialItems,
    compared_models,
    differential_of,
    how_to_divide,
    responses_of,
)
from itembank.auditing.duplicates import duplicates_of
from itembank.auditing.item_audit_names import ORDERS, REASONS, SAME_FOR_ALL
from itembank.auditing.item_evidence import (
    SIMULATED,
    Panel,
    defect_probability,
    item_evidence,
    item_statistics,
    out_of_fold,
    panel_of,
    rank_quality,
    share_right,
)
from itembank.bank.arguments import GivenResponses
from itembank.bank.banks import Bank
from itembank.checks import check_one_of, list_of_ids
from itembank.errors import DataError, shown
from itembank.numerics.arrays import BoolArray
from itembank.numerics.parallel import one_blas_thread
from itembank.numerics.ties import rounded
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.table_files import read_table_file
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural
from itembank.tabular import Tabular

COLUMNS = ("model_id", "item_id", "choice")


@dataclass(frozen=True, slots=True, repr=False)
class ItemAudit(Tabular):
    """Items with what may be wrong with each, those most probably defective first.

    Attributes
    ----------
    n_models : int
    order : str
        What items are sorted by.
    table : table of one row an item
        All items, flagged or not: `item_id`, `scenario`, `subscenario`; `reason` (the gravest; null if nothing is
        wrong) and `reasons` (all, with commas); `probability` of a defect; `suspicion`, `key_ratio`, `noise_ratio`,
        `slope`, `slope_error` and `top_logit` (`item_evidence`); `n_models`, `mean`, `item_rest`,
        `n_best`, `n_best_right` and `worth` (`item_statistics`); `duplicate_of`, `duplicate_ratio`;
        `differs_for`, `differs_by`; with answer letters `rival`, `n_rival`, `n_key`; `evidence`, a sentence; `text`,
        if the item table has one.
    cautions : tuple of str
        Why faults may be hidden, or sound items look faulty.
    labels : mapping or None
        If known bad items were given, how well the evidence finds them, by models that had not seen their group:
        `n_bad`; `area`, the probability that a bad item is ranked before a good one; `first`, the share of bad items
        among so many first that are flagged; `calibration`: mean probability (`said`) and share of bad items (`real`)
        among `n_items`, by ranges of the probability.
    differential : DifferentialItems or None
        If groups of models were compared.
    """

    main_columns = ("item_id", "reasons", "probability", "mean", "evidence")

    n_models: int
    order: str
    table: pl.DataFrame
    cautions: tuple[str, ...]
    labels: Mapping[str, Any] | None
    differential: DifferentialItems | None

    @property
    def counts(self) -> dict[str, int]:
        """Number of items with each reason; an item may have several."""
        reasons = self.table["reasons"].str.split(", ").explode(empty_as_null=True)
        return {name: int((reasons == name).sum()) for name in REASONS}

    @property
    def flagged(self) -> pl.DataFrame:
        """Rows of items that are flagged: with a reason other than that nobody, or everybody, solves them."""
        return flagged_of(self.table)

    @property
    def said(self) -> str:
        """How many items are flagged, in words."""
        flagged = self.flagged
        n_several = int(flagged["reasons"].str.contains(",", literal=True).sum())
        several = f", {n_several:,} of them for several reasons" if n_several else ""
        return f"{flagged.height:,} of {self.table.height:,} items{several}"

    @property
    def sentence(self) -> str:
        """How many items are flagged, and for what."""
        found = ", ".join(f"{n:,} {name}" for name, n in self.counts.items() if n and name not in SAME_FOR_ALL)
        return f"Flagged by the answers of {self.n_models:,} models: {self.said}{f' ({found})' if found else ''}"

    def having(self, reasons: Sequence[str]) -> pl.DataFrame:
        """Items that have any of these reasons.

        Raises
        ------
        ParameterError
            For a word that is no reason.
        """
        for reason in reasons:
            check_one_of("a reason", reason, REASONS)
        parts = pl.col("reasons").str.split(", ")
        return self.table.filter(parts.list.set_intersection(list(reasons)).list.len() > 0)

    def rows(self) -> list[dict[str, Any]]:
        """One record a flagged item."""
        return self.flagged.to_dicts()

    def to_polars(self) -> pl.DataFrame:
        """Return the flagged items as a polars table; `table` has all."""
        return self.flagged

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        counts = self.counts
        return {
            "n_models": self.n_models,
            "n_items": self.table.height,
            "n_flagged": self.flagged.height,
            "flagged": {name: count for name, count in counts.items() if name not in SAME_FOR_ALL},
            **{f"n_{name}": counts[name] for name in SAME_FOR_ALL},
            "order": self.order,
            "cautions": list(self.cautions),
            "known": self.labels,
            "differential": None if self.differential is None else self.differential.to_dict(),
        }


def text_column(items: pl.DataFrame) -> str | None:
    """Name of the column of an item table that has the items' texts, None if it has none."""
    likeliest_first = ("question", "text", "prompt", "input", "problem", "query", "instruction", "doc")
    texts = {name.rpartition(".")[2].casefold(): name for name in items.columns if items.schema[name] == pl.String}
    return next((texts[word] for word in likeliest_first if word in texts), None)


def flagged_of(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of an audit's table that are flagged."""
    return table.filter(pl.col("reason").is_not_null(), ~pl.col("reason").is_in(SAME_FOR_ALL))


def flags(table: pl.DataFrame) -> dict[str, BoolArray]:
    """Which items have each of the reasons that the answers alone give, (n_items,) each; by an audit's table."""
    of = {name: table[name].to_numpy() for name in table.columns[3:]}
    # another explanation must be so much likelier, or odds so much lower than is usual, for a flag
    twenty_times = float(np.log(20.0))
    # an item-rest correlation of -2 / sqrt(n_models) is enough by itself; half of that with a likelihood ratio
    margin = of["item_rest"] * np.sqrt(of["n_models"])
    wrong_key = ((of["key_ratio"] > twenty_times) & (margin < -1.0)) | (margin < -2.0)
    # three best models must all fail; and where a defect is not probable, that is no more than a hard item
    all_fail = (of["n_best"] >= 3) & (of["n_best_right"] == 0.0)
    best_fail = all_fail & (of["suspicion"] > twenty_times) & (of["probability"] > 0.5)
    return {
        "wrong-key": wrong_key,
        "best-fail": best_fail & ~wrong_key,
        "noise": (of["noise_ratio"] > twenty_times) & ~wrong_key & ~best_fail,
        "dead": of["mean"] == 0.0,
        "saturated": of["mean"] == 1.0,
    }


def with_reasons(table: pl.DataFrame, flagged: dict[str, BoolArray]) -> pl.DataFrame:
    """Add `reason`, `reasons` and `evidence` to a table of one row an item; dead and saturated ones have no other."""
    varies = ~np.logical_or.reduce([flagged[name] for name in SAME_FOR_ALL])
    found = {name: mark if name in SAME_FOR_ALL else mark & varies for name, mark in flagged.items()}
    marks = [pl.when(pl.Series(found[name])).then(pl.lit(name)) for name in REASONS if name in found]
    reasons = pl.concat_list(marks).list.drop_nulls().list.join(", ")
    table = table.with_columns(reason=pl.coalesce(marks))
    table = table.with_columns(reasons=pl.when(pl.col("reason").is_not_null()).then(reasons))
    sentences: list[str | None] = []
    for row in table.iter_rows(named=True):
        text = None if row["reason"] is None else "; ".join(SAYS[name](row) for name in row["reasons"].split(", "))
        if text is not None and row.get("rival") is not None and row["n_rival"] > row["n_key"]:
            text += f"; of the best models {row['n_rival']} answer {row['rival']}, {row['n_key']} the key"
        sentences.append(text)
    return table.with_columns(evidence=pl.Series(sentences, dtype=pl.String))


def _times(log_ratio: float) -> float:
    return float(np.exp(min(log_ratio, 20.0)))


def _wrong_key(row: dict[str, Any]) -> str:
    times = _times(row["key_ratio"])
    ratio = f"another key explains the answers {times:,.0f} times better, " if times >= 2.0 else ""
    return f"{ratio}item-rest correlation {row['item_rest']:.2f}"


SAYS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "wrong-key": _wrong_key,
    "best-fail": lambda row: (
        f"none of the {row['n_best']} best models is right; the odds of a top model are "
        f"{_times(row['suspicion']):,.0f} times lower than usual in its group"
    ),
    "noise": lambda row: (
        f"guessing explains the answers {_times(row['noise_ratio']):,.0f} times better than ability, item-rest "
        f"{row['item_rest']:.2f}"
    ),
    "duplicate": lambda row: f"models answer it as they answer {row['duplicate_of']}",
    "differs": lambda row: f"{100.0 * row['differs_by']:+.0f} points for {row['differs_for']} at equal ability",
    "dead": lambda row: (
        f"none of {row['n_models']:,} models is right"
        if row["n_models"] != 1
        else "the one model that answered is wrong"
    ),
    "saturated": lambda row: (
        f"all {row['n_models']:,} models are right" if row["n_models"] != 1 else "the one model that answered is right"
    ),
}
"""How each reason is worded for an item."""


def own_answers(
    choices: pl.DataFrame,  # Columns `model_id`, `item_id` and `choice`, one row an answer
    responses: ResponseMatrix,
) -> pl.DataFrame:
    """Return the answers that belong to these models and items, as text."""
    if not set(COLUMNS) <= set(choices.columns):
        raise DataError(
            f"a table of answers must have the columns {shown(COLUMNS)}, got {shown(choices.columns, 10)}. Rename them."
        )
    twice = choices.filter(pl.struct("model_id", "item_id").is_duplicated())
    if twice.height:
        first = twice.row(0, named=True)
        raise DataError(
            f"a model must have one answer an item, got {plural(twice.height, 'row')} of the same model and item: "
            f"{first['model_id']!r} on {first['item_id']!r}. Keep one run."
        )
    texts = choices.select(pl.col(name).cast(pl.String) for name in COLUMNS).drop_nulls()
    ours = texts.filter(
        pl.col("model_id").is_in(responses.models["model_id"].implode())
        & pl.col("item_id").is_in(responses.items["item_id"].implode())
    )
    if not ours.height:
        raise DataError(
            f"answers must belong to responses, got none of {texts.height} that does: their models are "
            f"{shown(texts['model_id'].unique().sort().to_list())}. Check that both use the same ids."
        )
    return ours


def rival_answers(
    answers: pl.DataFrame,  # Of `own_answers`
    responses: ResponseMatrix,  # Which of these answers are right
    panel: Panel,  # Abilities of the same models
) -> pl.DataFrame:
    """Find the wrong answer that most of the best models give: `item_id`, `rival`, `n_rival`, `n_key` for the key."""
    n_best = max(5, round(0.25 * responses.n_models))  # a quarter of the models is asked
    best = np.argsort(-rounded(panel.overall), kind="stable")[:n_best]
    rows, columns = np.nonzero(panel.observed[best])
    known = pl.DataFrame(
        {
            "model_id": responses.models["model_id"][best[rows]],
            "item_id": responses.items["item_id"][columns],
            "is_right": panel.values[best[rows], columns] >= 0.5,
        }
    )
    told = known.join(answers, on=["model_id", "item_id"])
    n_key = told.group_by("item_id").agg(n_key=pl.col("is_right").sum())
    wrong = told.filter(~pl.col("is_right")).group_by("item_id", "choice").agg(n_rival=pl.len())
    rivals = (
        wrong.sort(["n_rival", "choice"], descending=[True, False]).group_by("item_id", maintain_order=True).first()
    )
    return n_key.join(rivals.rename({"choice": "rival"}), on="item_id", how="left").select(
        "item_id", "rival", pl.col("n_rival").fill_null(0), "n_key"
    )


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
    is_bad = None if known is None else _labels(responses, list_of_ids("known items", known))
    if isinstance(choices, str | Path):
        choices = read_table_file(Path(choices), text=COLUMNS).frame
    answers = None if choices is None else own_answers(choices, responses)
    by, undivided = _dividing(responses, by, clusters)
    progress("abilities and statistics", 0.0)
    panel = panel_of(responses)
    evidence = item_evidence(panel)
    table = responses.items.select("item_id", "scenario", "subscenario")
    table = pl.concat([table, evidence.drop("intercept"), item_statistics(panel)], how="horizontal")
    # A likelihood ratio grows with the number of models; its inverse hyperbolic sine is linear near 0 and a logarithm
    # further out, so that a hundred models do not outweigh what else is known.
    names = ("suspicion", "slope", "key_ratio", "n_best_right", "n_best")
    suspicion, slope, key_ratio, n_right, n_best = (table[name].to_numpy() for name in names)
    best_fail = 1.0 - n_right / np.maximum(n_best, 1)
    features = np.stack([suspicion, -slope, np.arcsinh(key_ratio), best_fail], axis=1)
    probability = defect_probability(features, SIMULATED)
    if is_bad is not None:
        # where there are fewer than three groups to leave out, one item of five
        n_groups, in_turn = panel.group.max() + 1, np.arange(panel.group.size) % 5
        probability = out_of_fold(features, is_bad, panel.group if n_groups >= 3 else in_turn)
    table = table.insert_column(3, pl.Series("probability", probability))
    flagged = flags(table)
    if duplicates:
        progress("duplicates", 0.3)
        found = duplicates_of(responses, panel, evidence).table.filter(verdict="duplicate")
        first = found.select("item_id", "duplicate_of", duplicate_ratio="log_ratio").unique("item_id", keep="first")
        table = table.join(first, on="item_id", how="left", maintain_order="left")
        flagged["duplicate"] = table["duplicate_of"].is_not_null().to_numpy()
    differential = None
    if by is not None:
        part = part_of(progress, 0.7, 1.0)
        differential = differential_of(responses, panel, by, clusters=clusters, level=0.05, progress=part)
        most = differential.flagged.unique("item_id", keep="first", maintain_order=True)
        told = most.select("item_id", differs_for="group", differs_by="effect")
        table = table.join(told, on="item_id", how="left", maintain_order="left")
        flagged["differs"] = table["differs_for"].is_not_null().to_numpy()
    if answers is not None:
        rivals = rival_answers(answers, responses, panel)
        table = table.join(rivals, on="item_id", how="left", maintain_order="left")
    table = with_reasons(table, flagged)
    labels = None if is_bad is None else _label_check(table, is_bad)
    keys = [name.replace("-", "_") for name in (order, ORDERS[order])]
    ranks = [pl.Series(name, rounded(table[name].to_numpy())) for name in keys]
    table = table.sort([*ranks, "item_id"], descending=[True, True, False])
    items = responses.items
    text = text_column(items)
    if text is not None:
        table = table.join(items.select("item_id", text=text), on="item_id", how="left", maintain_order="left")
    return ItemAudit(responses.n_models, order, table, (*_cautions(panel, table), *undivided), labels, differential)


def _dividing(responses: ResponseMatrix, by: str | None, clusters: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the column if it divides the models, else what is said of it; refuse one that is not there."""
    if by is None or compared_models(responses, by, clusters)[0]:
        return by, ()
    return None, (f"No groups are compared: {how_to_divide(responses, by)}",)


def _labels(responses: ResponseMatrix, known: Sequence[str]) -> BoolArray:
    """Which items are known to be bad, (n_items,)."""
    least = 10  # bad items, and others, that a model of defects can be learnt from
    is_bad = np.zeros(responses.n_items, dtype=np.bool_)
    is_bad[responses.item_indices(list(dict.fromkeys(known)))] = True
    if not least <= is_bad.sum() <= responses.n_items - least:
        raise DataError(
            f"at least {least} items known to be bad, and as many others, are needed to learn from, got "
            f"{is_bad.sum()} bad of {responses.n_items}. Give more, or none."
            " (Without them the probability rests on simulated faults.)"
        )
    return is_bad


def _label_check(table: pl.DataFrame, is_bad: BoolArray) -> dict[str, Any]:
    """Compare the probability, and what is flagged, with what is known."""
    probability = table["probability"].to_numpy()
    flagged = flagged_of(table.with_columns(is_bad=is_bad))
    n_flagged, said_of, real_of = flagged.height, flagged["probability"].to_numpy(), flagged["is_bad"].to_numpy()
    first = {n: share_right(said_of, real_of, n) for n in (50, 200, n_flagged) if 0 < n <= n_flagged}
    ranges = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)  # of probability, for what came true of it
    place = np.clip(np.searchsorted(ranges, probability, side="right"), 1, len(ranges) - 1)
    bins = ((probability[place == k].mean(), is_bad[place == k].mean(), int((place == k).sum())) for k in set(place))
    said = sorted((float(said), float(real), count) for said, real, count in bins)
    calibration = [{"said": one, "real": real, "n_items": count} for one, real, count in said]
    area = rank_quality(probability, is_bad)
    return {"n_bad": int(is_bad.sum()), "area": area, "first": first, "calibration": calibration}


def _cautions(panel: Panel, table: pl.DataFrame) -> Iterator[str]:
    """Say why faults may be hidden, or sound items look faulty."""
    n_items, n_models = table.height, int(panel.observed.any(axis=1).sum())
    enough_models = 30  # with fewer, most wrong keys are not found (the tables of docs/audit.md)
    by_chance = ", and of those flagged wrong-key half may be sound" if n_models < 14 else ""
    if n_models < enough_models:
        yield (
            f"{n_models} models are few. In tests with planted wrong keys, 14 models found a third of these and "
            f"{enough_models} found half: an item that is not flagged may be wrong{by_chance}. Add models."
        )
    # of two hundred items some should have a negative correlation, if nobody has thrown them out
    if n_items >= 200 and not (table["item_rest"] < 0.0).any():
        yield (
            f"None of {n_items} items has a negative item-rest correlation. Either all keys are right, or items were "
            "selected because they tell models apart, which removes most items with wrong keys: then audit the whole "
            "benchmark."
        )
    if panel.scores.std() < 0.05:
        yield (
            f"The models are much alike (standard deviation of scores {100.0 * panel.scores.std():.1f} points): "
            "correlations and the likelihood ratio of the key say little. Go by the best models' failures, or add "
            "weaker models."
        )
    best = np.sort(panel.scores)[-3:].mean()
    if best < 0.5:
        yield (
            f"The best models are right on only {100.0 * best:.0f} % of the items: a wrong key then looks like a hard "
            "item. Add stronger models."
        )
