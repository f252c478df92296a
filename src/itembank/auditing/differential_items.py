"""Items that behave differently for a group of equally able models: the verb `differential_items`, its result, kernels.

The score test asks whether a group's log-odds of being right differ once ability is accounted for. It needs one fit of
each item without the group (Rao 1948; for differential items Swaminathan & Rogers 1990), and that for all items at
once. The effect size of testing programmes beside it is the delta of Mantel and Haenszel (Holland & Thayer 1988):
``-2.35 log(odds ratio)`` pooled over strata of ability.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit, stdtr

from itembank.auditing.item_evidence import Panel, panel_of, without_items
from itembank.bank.arguments import GivenResponses, as_bank_or_responses
from itembank.bank.banks import Bank
from itembank.checks import check_fraction
from itembank.errors import DataError, did_you_mean, remedy, shown
from itembank.numerics.arrays import BoolArray, FloatArray, IntArray
from itembank.numerics.parallel import one_blas_thread
from itembank.progress import ProgressCallback, silent
from itembank.responses.model_features import standardised
from itembank.responses.responses import ResponseMatrix
from itembank.tabular import Tabular

LEAST = 8
"""Models that a group, and all others together, must have."""
RIDGE = 0.01
"""Precision of the prior of an item's curve in ability, so that items which nobody gets right have one."""


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
        `score_effect`: difference of scores at equal overall ability, NaN where the group, or all others, did not run
        it; `n_items`, `n_flagged`; `flagged_effect`: how
        much of the score's difference the flagged items make.
    notes : tuple of str
        What must be known to read it.
    """

    header = ("column", "level", "n_flagged", "scores", "notes")

    column: str
    level: float
    table: pl.DataFrame
    scores: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def flagged(self) -> pl.DataFrame:
        """Rows of flagged items."""
        return self.table.filter("is_flagged")

    @property
    def n_flagged(self) -> int:
        """Number of these."""
        return self.flagged.height


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
    if not compared:
        raise DataError(how_to_divide(responses, column))
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
    groups = responses.models[column].drop_nulls().cast(pl.String).unique().sort().to_list()
    small = [name for name in groups if name not in {one.name for one in compared}]
    if small and compared[0].is_group:
        notes.append(f"Groups of fewer than {LEAST} models, or with fewer others, are not compared: {shown(small)}.")
    if per_score["scenario"].n_unique() == 1:
        notes.append(
            "There is one scenario, whose score is the ability: score_effect is near 0 whatever differs. See "
            "flagged_effect."
        )
    if clusters is None and any(one.is_group for one in compared):
        notes.append(
            "Models of one group may be copies of each other: p-values take all models as independent and describe "
            "these models only. Name the column of base models to count each once."
        )
    unknown = table.filter(pl.col("p_value").is_nan())["group"].unique().sort().to_list()
    if unknown:
        least = "three clusters in the group or outside it" if compared[0].is_group else "four clusters"
        notes.append(f"{shown(unknown)}: fewer than {least}, so effects are described and nothing is flagged.")
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

    Every group of enough models is compared with enough others; a column of numbers is one covariate. Nothing is where
    none has enough.
    """
    values = _column(responses, column)
    known = values.is_not_null().to_numpy()
    is_two = values.dtype == pl.Boolean or values.drop_nulls().n_unique() <= 2
    numbers = None if is_two else standardised(values)
    compared = []
    if numbers is None:
        text = values.cast(pl.String)
        for name in sorted(text.drop_nulls().unique().to_list()):
            mine = (text == name).fill_null(value=False).to_numpy()
            if LEAST <= mine.sum() <= known.sum() - LEAST:
                compared.append(Comparison(name, mine.astype(np.float64), known, is_group=True))
    elif known.sum() >= 2 * LEAST and numbers.any():
        compared.append(Comparison(column, numbers, known, is_group=False))
    return compared, None if clusters is None else _column(responses, clusters)


def how_to_divide(responses: ResponseMatrix, column: str) -> str:
    """Say what a column must be to compare models."""
    counts = responses.models[column].cast(pl.String).value_counts(sort=True, name="n_models").rows()
    return (
        f"column {column!r} must divide the {responses.n_models} models: groups of at least {LEAST} with as many "
        f"others, or numbers that differ, got {shown([f'{name} ({n})' for name, n in counts])}."
    )


def _column(responses: ResponseMatrix, name: str) -> pl.Series:
    columns = responses.models.columns
    if name not in columns:
        give = remedy("read_responses(..., models=FILE)", "itembank import --models FILE")
        raise DataError(
            f"the models must have a column {name!r}, got {shown(columns, 10)}.{did_you_mean(name, columns)} Give a "
            f"table of models that has it: {give}."
        )
    column = responses.models[name]
    return column.fill_nan(None) if column.dtype.is_float() else column


def _tested(responses: ResponseMatrix, panel: Panel, one: Comparison, cluster: pl.Series | None) -> pl.DataFrame:
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
        found[:3, items] = score_test(values, observed, np.column_stack(columns), covariate, clusters)
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
        is_compared = np.unique(one.covariate[rows][answered]).size > 1  # else the group, or all others, did not run it
        effect = np.linalg.lstsq(design[answered], score, rcond=None)[0][-1] if is_compared else np.nan
        effects.append(float(effect))
    return pl.DataFrame({"scenario": scenarios, "group": one.name, "score_effect": effects})


def score_test(
    values: FloatArray,  # (n_models, n_items): Responses in [0, 1], and where there is one
    observed: BoolArray,  # (n_models, n_items)
    design: FloatArray,  # (n_models, n_columns): A column of ones, and abilities
    covariate: FloatArray,  # (n_models,): 0 and 1 for a group, or numbers with standard deviation 1
    # (n_models,): Number of each model's cluster, from 0. A cluster counts as one model: its members share a weight of
    # 1, and the variance of the statistic is that of its clusters' sums, with as many degrees of freedom as the group
    # with fewer clusters has, less one
    clusters: IntArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Test whether a covariate explains answers beyond ability.

    Returns effect, z, p_value, (n_items,) each: the difference of the share of right answers at equal ability, of the
    group less the others, or per standard deviation of a covariate; z, positive where items are easier for the group,
    or for models with more of the covariate, than for others of equal ability; p-values of both sides, 1 where an item
    tells nothing, NaN where there are too few clusters.
    """
    weight = np.ones(covariate.size) if clusters is None else 1.0 / np.bincount(clusters)[clusters]
    answers, known = np.where(observed, values, 0.0), observed * weight[:, None]
    # probabilities of right answers by ability alone, by Newton's method: six passes reach the sixth digit, and items
    # that ability tells apart completely, whose steps are bounded, take more
    share = (np.sum(known * answers, axis=0) + 0.5) / (known.sum(axis=0) + 1.0)
    weights = np.zeros((answers.shape[1], design.shape[1]))
    weights[:, 0] = np.log(share / (1.0 - share))
    p: FloatArray = expit(design @ weights.T)
    for _ in range(15):
        gradient = (known * (answers - p)).T @ design - RIDGE * weights
        step = np.linalg.solve(_curvature(known * p * (1.0 - p), design), gradient[..., None])[..., 0]
        weights = weights + np.clip(step, -2.0, 2.0)
        p = expit(np.clip(design @ weights.T, -30.0, 30.0))
    residual = known * (answers - p)
    information = known * p * (1.0 - p)
    between = np.einsum("nc,ni->ic", design * covariate[:, None], information)
    explained = np.linalg.solve(_curvature(information, design), between[..., None])[..., 0]
    remaining = covariate[:, None] - design @ explained.T
    score = np.sum(remaining * residual, axis=0)
    skewness = 0.0
    expected = np.sum(remaining**2 * information, axis=0)
    tells = expected > 0.25  # the variance of one fair coin: below it an item tells nothing of a group
    if clusters is None:
        variance, n_free = expected, np.inf
        third = np.sum(remaining**3 * information * (1.0 - 2.0 * p), axis=0)
        skewness = np.divide(third, variance**1.5, out=np.zeros_like(third), where=tells)
    else:
        sums = np.zeros((int(clusters.max()) + 1, score.size))
        np.add.at(sums, clusters, remaining * residual)
        variance = np.sum(sums**2, axis=0)
        # clusters of the smaller of two groups, less one; of a number all clusters, less two
        n_free = float(np.unique(clusters).size - 2)
        if set(np.unique(covariate).tolist()) <= {0.0, 1.0}:
            n_free = float(min(np.unique(clusters[covariate == side]).size for side in (0.0, 1.0)) - 1)
    z = np.divide(score, np.sqrt(variance), out=np.zeros_like(score), where=tells & (variance > 0.0))
    # Cornish and Fisher's correction for the skewness of a sum over a few models, so that tails are as they should be:
    # skewness (z^2 - 1) / 6, bounded where it would be larger than the expansion bears
    bounded = np.clip(skewness * z, -1.5, 1.5)
    z = np.asarray(z - np.divide(bounded * (z**2 - 1.0), 6.0 * z, out=np.zeros_like(z), where=np.abs(z) > 1.0))
    p_value = np.full(z.shape, np.nan)
    if n_free >= 2.0:
        p_value = 2.0 * stdtr(n_free if np.isfinite(n_free) else 1e10, -np.abs(z))
    total = np.maximum(known.sum(axis=0), 1e-12)
    centred = covariate[:, None] - np.sum(known * covariate[:, None], axis=0) / total
    square = np.sum(known * centred**2, axis=0)
    effect = np.divide(np.sum(centred * residual, axis=0), square, out=np.zeros(total.shape), where=square > 1e-9)
    return effect, z, p_value


def _curvature(information: FloatArray, design: FloatArray) -> FloatArray:
    """Weighted cross-products of the design for every item, (n_items, n_columns, n_columns), with the ridge."""
    n_columns = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(design.shape[0], -1)
    return np.asarray((information.T @ products).reshape(-1, n_columns, n_columns) + RIDGE * np.eye(n_columns))


def mantel_haenszel_delta(
    values: FloatArray,  # (n_models, n_items)
    observed: BoolArray,  # (n_models, n_items)
    in_group: BoolArray,  # (n_models,)
    stratum: IntArray,  # (n_models,): Number of each model's stratum of ability, from 0
) -> tuple[FloatArray, FloatArray]:  # Delta and its error, (n_items,); NaN where no stratum compares the groups
    """Delta of each item and its standard error, (n_items,); negative where the item is harder for the group.

    The variance of the log odds ratio is that of Robins, Breslow and Greenland (1986).
    """
    answers, known = np.where(observed, values, 0.0), observed.astype(np.float64)
    n_strata = int(stratum.max()) + 1
    marks = (stratum == np.arange(n_strata)[:, None]).astype(np.float64)
    right_other, right_group = ((marks * side) @ answers for side in (~in_group, in_group))
    n_other, n_group = ((marks * side) @ known for side in (~in_group, in_group))
    wrong_other, wrong_group = n_other - right_other, n_group - right_group
    total = np.maximum(n_other + n_group, 1.0)
    # R and S, P and Q of Robins, Breslow and Greenland, by stratum
    r, s = right_other * wrong_group / total, wrong_other * right_group / total
    p, q = (right_other + wrong_group) / total, (wrong_other + right_group) / total
    sum_r, sum_s = r.sum(axis=0), s.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log(sum_r / sum_s)
        variance = (
            (p * r).sum(axis=0) / (2.0 * sum_r**2)
            + (p * s + q * r).sum(axis=0) / (2.0 * sum_r * sum_s)
            + (q * s).sum(axis=0) / (2.0 * sum_s**2)
        )
    is_known = (sum_r > 0.0) & (sum_s > 0.0)
    delta = -2.35  # log odds ratios to the scale of ETS: 4 / 1.7
    return np.where(is_known, delta * log_ratio, np.nan), np.where(is_known, -delta * np.sqrt(variance), np.nan)


def ability_strata(theta: FloatArray) -> IntArray:
    """Divide models into strata of ability of about equal size, (n_models,): one for twenty models, ten at most."""
    n_strata = min(10, max(2, theta.size // 20))
    cuts = np.quantile(theta, np.arange(1, n_strata) / n_strata)
    return np.searchsorted(cuts, theta).astype(np.int64)


def benjamini_hochberg(p_values: FloatArray) -> FloatArray:
    """Adjust p-values for their number (Benjamini & Hochberg 1995), (n,); NaN stays NaN and does not count."""
    adjusted = np.full(p_values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    scaled = p_values[order] * order.size / np.arange(1, order.size + 1)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return adjusted
