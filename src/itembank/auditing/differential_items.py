"""Items that behave differently for a group of equally able models: the verb `differential_items` and its result."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from itembank.auditing.differential import ability_strata, benjamini_hochberg, mantel_haenszel_delta, score_test
from itembank.auditing.panel import Panel, panel_of, without_items
from itembank.bank.arguments import GivenResponses, as_bank_or_responses
from itembank.bank.banks import Bank
from itembank.checks import check_fraction
from itembank.errors import DataError, did_you_mean, shown
from itembank.numerics.arrays import BoolArray, FloatArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.responses.model_features import standardised
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular


@dataclass(frozen=True, slots=True, repr=False)
class DifferentialItems(Tabular):
    """What a column of the model table explains of answers beyond ability.

    Attributes
    ----------
    column : str
    level : float
        False flags to be expected among the flagged, at most (Benjamini and Hochberg).
    table : table of one row an item and group, those of the largest effect first
        `item_id`, `scenario`; `group` (for a column of numbers, its name), `n_group` and `n_others` models; `effect` in
        shares of right answers at equal ability (group less others; for numbers per standard deviation), `z`,
        `p_value`, `adjusted_p`; `mh_delta` and `mh_class` of Mantel and Haenszel (A small, B, C large; null for
        numbers); `is_flagged`.
    scores : table of one row a scenario and group
        `score_effect`: difference of scores at equal overall ability; `n_items`, `n_flagged`; `flagged_effect`: how
        much of the score's difference the flagged items make.
    notes : tuple of str
        What must be known to read it.
    """

    column: str
    level: float
    table: pl.DataFrame
    scores: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def flagged(self) -> pl.DataFrame:
        """Rows of flagged items."""
        return self.table.filter("is_flagged")

    def rows(self) -> list[dict[str, Any]]:
        """One record an item and group."""
        return self.table.to_dicts()

    def to_polars(self) -> pl.DataFrame:
        """Return the records as a polars table."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows."""
        return {
            "column": self.column,
            "level": self.level,
            "n_flagged": self.flagged.height,
            "scores": self.scores.to_dicts(),
            "notes": list(self.notes),
        }


@one_blas_thread()
def differential_items(
    source: Bank | GivenResponses,
    column: str,
    *,
    clusters: str | None = None,
    level: float = 0.05,
    progress: ProgressCallback = silent,
) -> DifferentialItems:
    """Find items that are easier or harder for some models than for others of equal ability.

    A column of text is taken as groups, each of which is compared with all other models; a column of numbers or dates
    (sizes by their logarithm) as one covariate.

    Parameters
    ----------
    source : Bank, ResponseMatrix, path or paths
        Of a bank, its calibration responses.
    column : str
        Of the model table: `family`, `size`, `date`, `prompt_language`, ...
    clusters : str, optional
        Column of the model table whose equal values mark models that are not independent, such as fine-tunes of one
        base model. Each cluster then counts as one model.
    level : float
        Share of false flags to be expected among the flagged, at most.
    progress : ProgressCallback

    Raises
    ------
    DataError
        When a column is not there, or says the same of nearly all models.
    ParameterError
        When the level is not between 0 and 1.

    Examples
    --------
    >>> differential_items("responses.parquet", "family").flagged  # doctest: +SKIP
    """
    check_fraction("level", level)
    responses = responses_of(source, "Finding items that behave differently needs")
    return differential_of(responses, panel_of(responses), column, clusters=clusters, level=level, progress=progress)


def responses_of(source: Bank | GivenResponses, what: str) -> ResponseMatrix:
    """Return the responses, or those that a bank was calibrated on, of models that answered anything.

    `what` begins the message where a bank has none: "An audit needs".
    """
    given = as_bank_or_responses(source)
    if isinstance(given, Bank):
        given.check_responses(what)
        given = given.responses
    return given.take(models=np.flatnonzero(given.observed.any(axis=1)))


def differential_of(
    responses: ResponseMatrix,
    panel: Panel,
    column: str,
    *,
    clusters: str | None,
    level: float,
    progress: ProgressCallback,
) -> DifferentialItems:
    """Do the work of `differential_items` on responses whose abilities are known."""
    compared, cluster = compared_models(responses, column, clusters)
    tables, scores = [], []
    for number, one in enumerate(compared):
        progress(f"{column} {one.name}", number / len(compared))
        # items that differ are left out of the abilities: they would make others seem to differ the other way
        p_values = _tested(responses, panel, one, cluster)["p_value"].to_numpy()
        purified = without_items(panel, benjamini_hochberg(p_values) < level)
        tables.append(_tested(responses, purified, one, cluster))
        scores.append(_score_effects(responses, panel, one))
    table = pl.concat(tables)
    table = table.with_columns(adjusted_p=benjamini_hochberg(table["p_value"].to_numpy()))
    table = table.with_columns(is_flagged=pl.col("adjusted_p") < level)  # NaN is above every number in polars
    table = table.sort(pl.col("is_flagged"), pl.col("effect").abs(), descending=True, maintain_order=True)
    is_flagged = pl.col("is_flagged")
    flagged_effects = table.group_by("scenario", "group").agg(
        n_items=pl.len(),
        n_flagged=is_flagged.sum(),
        flagged_effect=pl.col("effect").filter(is_flagged).sum() / pl.len(),
    )
    per_score = pl.concat(scores).join(flagged_effects, on=["scenario", "group"], maintain_order="left")
    notes = []
    if clusters is None and any(one.is_group for one in compared):
        notes.append(
            "Models of one group may be copies of each other: p-values take all models as independent and describe "
            "these models only. Name the column of base models to count each once."
        )
    unknown = table.filter(pl.col("p_value").is_nan())["group"].unique().sort().to_list()
    if unknown:
        notes.append(f"{shown(unknown)}: fewer than three clusters, so effects are described and nothing is flagged.")
    return DifferentialItems(column, level, table, per_score, tuple(notes))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A group against all others, or a number."""

    name: str
    covariate: FloatArray
    known: BoolArray
    is_group: bool


def compared_models(
    responses: ResponseMatrix, column: str, clusters: str | None
) -> tuple[list[Comparison], pl.Series | None]:
    """Return what is compared with what, and the cluster of each model where one column tells it.

    Every group of enough models is compared with enough others; a column of numbers is one covariate.
    """
    least = 8  # models that a group, and all others together, must have
    values = _column(responses, column)
    known = values.is_not_null().to_numpy()
    is_two = values.dtype == pl.Boolean or values.drop_nulls().n_unique() <= 2
    numbers = None if is_two else standardised(values)
    compared = []
    if numbers is None:
        text = values.cast(pl.String)
        for name in sorted(text.drop_nulls().unique().to_list()):
            mine = (text == name).fill_null(value=False).to_numpy()
            if least <= mine.sum() <= known.sum() - least:
                compared.append(Comparison(name, mine.astype(np.float64), known, is_group=True))
    elif known.sum() >= 2 * least and numbers.any():
        compared.append(Comparison(column, numbers, known, is_group=False))
    if not compared:
        raise DataError(
            f"column {column!r} must divide the {responses.n_models} models: groups of at least {least} with "
            f"as many others, or numbers that differ, got {shown(values.unique().to_list())}."
        )
    return compared, None if clusters is None else _column(responses, clusters)


def _column(responses: ResponseMatrix, name: str) -> pl.Series:
    """Column of the model table."""
    columns = responses.models.columns
    if name not in columns:
        raise DataError(
            f"the models must have a column {name!r}, got {shown(columns, 10)}.{did_you_mean(name, columns)} Give a "
            "table of models that has it."
        )
    column = responses.models[name]
    return column.fill_nan(None) if column.dtype.is_float() else column


def _tested(responses: ResponseMatrix, panel: Panel, one: Comparison, cluster: pl.Series | None) -> pl.DataFrame:
    """Test every item, group of items by group of items."""
    rows = np.flatnonzero(one.known)
    covariate, in_group = one.covariate[rows], one.covariate[rows] > 0.5
    clusters = None
    if cluster is not None:  # numbered from 0; a model whose cluster is not known is one of its own
        own = pl.Series([f"\0{row}" for row in range(cluster.len())])
        names = cluster.cast(pl.String).fill_null(own)
        clusters = np.unique(names.to_numpy()[rows], return_inverse=True)[1].astype(np.int64)
    found = np.full((5, responses.n_items), np.nan)
    for number in range(panel.theta.shape[1]):
        items = np.flatnonzero(panel.group == number)
        values, observed = panel.values[np.ix_(rows, items)], panel.observed[np.ix_(rows, items)]
        theta, overall = panel.theta[rows, number], panel.overall[rows]
        columns = [np.ones(theta.size), theta] if np.allclose(theta, overall) else [np.ones(theta.size), theta, overall]
        test = score_test(values, observed, np.column_stack(columns), covariate, clusters)
        found[:3, items] = test.effect, test.z, test.p_value
        if one.is_group:
            found[3:, items] = mantel_haenszel_delta(values, observed, in_group, ability_strata(theta))
    effect, z, p_value, delta, error = found
    # moderate (B) and large (C) are absolute deltas of 1 and 1.5 to ETS, beyond chance; C must also exceed 1 beyond it
    size, chance = np.nan_to_num(np.abs(delta)), np.nan_to_num(error, nan=np.inf)
    is_b, is_c = (size >= 1.0) & (size > 1.96 * chance), (size >= 1.5) & (size - 1.645 * chance > 1.0)
    classes = pl.Series("mh_class", np.where(is_c, "C", np.where(is_b, "B", "A")), dtype=pl.String)
    n_group = int(in_group.sum()) if one.is_group else rows.size
    return responses.items.select("item_id", "scenario").with_columns(
        pl.lit(one.name).alias("group"),
        pl.lit(n_group).alias("n_group"),
        pl.lit(rows.size - n_group).alias("n_others"),
        pl.Series("effect", effect),
        pl.Series("z", z),
        pl.Series("p_value", p_value),
        pl.Series("mh_delta", delta).fill_nan(None),
        pl.when(pl.Series(~np.isnan(delta))).then(classes).alias("mh_class"),
    )


def _score_effects(responses: ResponseMatrix, panel: Panel, one: Comparison) -> pl.DataFrame:
    """Difference of each scenario's score at equal overall ability, one row a scenario."""
    rows = np.flatnonzero(one.known)
    overall = panel.overall[rows]
    design = np.column_stack([np.ones(rows.size), overall, overall**2, one.covariate[rows]])
    scenarios = responses.items["scenario"].unique(maintain_order=True).to_list()
    effects = []
    for name in scenarios:
        items = np.flatnonzero((responses.items["scenario"] == name).to_numpy())
        observed = panel.observed[np.ix_(rows, items)]
        answered = observed.any(axis=1)
        total = np.where(observed, panel.values[np.ix_(rows, items)], 0.0).sum(axis=1)
        score = total[answered] / observed[answered].sum(axis=1)
        effects.append(float(np.linalg.lstsq(design[answered], score, rcond=None)[0][-1]))
    return pl.DataFrame({"scenario": scenarios, "group": one.name, "score_effect": effects})
