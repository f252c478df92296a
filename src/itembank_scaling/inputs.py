"""What laws read besides responses and training compute: losses, and what is known of every choice and sample."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from itembank.checks import check_names
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.files.memory import allowing
from itembank.numerics.arrays import FloatArray
from itembank.progress import ProgressCallback, silent
from itembank.readers.builtin import ChoiceLogLikelihoods, builtin_choices, read_builtin_numbers, read_builtin_table
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.refusals import refuse, shortened
from itembank.readers.table_files import read_table_file
from itembank.responses.choice_scores import bits_per_byte
from itembank.responses.responses import ResponseMatrix
from itembank.tables import plural
from itembank_harnesses.readers.lm_eval_choice import COMPARING, SCORES, choose_filter
from itembank_harnesses.readers.lm_eval_files import find_sample_files
from itembank_harnesses.readers.lm_eval_samples import Options, Samples, read_samples
from itembank_harnesses.readers.logged import read_each_log

__all__ = [
    "ChoiceLogLikelihoods",
    "builtin_bits_per_byte",
    "builtin_choices",
    "builtin_sample_probabilities",
    "read_choice_scores",
    "read_losses",
]


def read_choice_scores(
    paths: str | Path | Sequence[str | Path], *, spec: ReadingSpec | None = None, progress: ProgressCallback = silent
) -> pl.DataFrame:
    """Read the scores of answer options from logs of lm-evaluation-harness: accuracy, probability, bits per byte.

    Use it for losses, which are no responses (they are not in [0, 1], and lower is better), and to see several scores
    of the same answers side by side.

    Parameters
    ----------
    paths : path or paths
        Folders of logs, or samples files.
    spec : ReadingSpec, optional
        How to read them: `tasks`, `filter_name`, `model_id`, `model_id_from`, `repeats='last'`.
    progress : function

    Returns
    -------
    table of one row a model and item
        `model_id`, `item_id`, `scenario`, `n_options`; of the right option `log_likelihood`, `n_characters`, `n_bytes`;
        `choice_accuracy`, `choice_accuracy_per_character`, `choice_probability` (null if there is one option),
        `choice_probability_per_character`, `bits_per_byte`.

    Raises
    ------
    DataError
        When no task has answer options, or two runs of a model disagree. Tasks without options are left out with a
        `DataWarning`.
    """
    spec = spec or ReadingSpec()
    with allowing(spec.max_memory):
        sources = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
        found = find_sample_files(sources, spec)
        samples, unread = read_each_log(found.files, lambda file: read_samples(file, with_options=True), progress)
        problems = [*found.problems, *unread]
        if not spec.skip_unusable:
            refuse(problems)
        usable, without = [], []
        for one in samples:
            if one.options is not None and not one.options.problem:
                usable.append((one, one.options))
            elif one.options is not None:
                without.append(f"{one.file.model_id!r} on {one.file.task!r} {one.options.problem}.")
        without = [*problems, *without]
        if not usable:
            raise DataError("no task has answer options with log-likelihoods: " + " ".join(shortened(without)))
        if without:
            warn(f"{plural(len(without), 'run', 'are')} left out: {' '.join(shortened(without))}", DataWarning)
        table = pl.concat([_rows(one, options, spec) for one, options in usable])
        key = ("model_id", "item_id")
        spread = (pl.col("log_likelihood").max() - pl.col("log_likelihood").min()).over(key)
        unequal = table.filter(spread > 1e-6).select(key).unique(maintain_order=True)
        if unequal.height and spec.repeats != "last":
            names = [f"{model} on {item}" for model, item in unequal.iter_rows()]
            raise DataError(
                f"one model must have one log-likelihood for an item, got different ones for "
                f"{plural(len(names), 'pair')}: {shown(names)}. Leave out the runs that do not count, or take the last "
                "(repeats='last')."
            )
        return table.unique(key, keep="last", maintain_order=True)


def _rows(samples: Samples, options: Options, spec: ReadingSpec) -> pl.DataFrame:
    task = samples.file.task
    filter_name, problem = choose_filter(task, [samples], spec, [])
    if problem:
        raise DataError(problem)
    rows = (samples.frame["filter"] == filter_name).arg_true().to_numpy()
    documents = samples.frame["document"].gather(rows).cast(pl.String)
    n_options = np.count_nonzero(~np.isnan(options.n_characters), axis=-1)
    right = np.argmax(np.where(options.is_right, options.log_likelihood / options.n_characters, -np.inf), axis=-1)

    def of_right(values: FloatArray) -> FloatArray:
        result: FloatArray = np.take_along_axis(values, right[:, np.newaxis], axis=-1)[rows, 0]
        return result

    return pl.DataFrame(
        {
            "model_id": pl.repeat(samples.file.model_id, rows.size, eager=True),
            "item_id": task + "/" + documents,
            "scenario": pl.repeat(task, rows.size, eager=True),
            "n_options": n_options[rows].astype(np.int64),
            "log_likelihood": of_right(options.log_likelihood),
            "n_characters": of_right(options.n_characters).astype(np.int64),
            "n_bytes": of_right(options.n_bytes).astype(np.int64),
            # a score that would compare an option with none is unknown
            **{
                name: np.where((n_options >= 2) | (name not in COMPARING), score(options), np.nan)[rows]
                for name, score in SCORES.items()
            },
        },
        nan_to_null=True,
    )


LOSS_COLUMNS = ("loss", "bits_per_byte")
"""Columns that hold a loss, in order of preference; the second is that of `read_choice_scores`."""


def read_losses(
    source: str | Path | pl.DataFrame, responses: ResponseMatrix, *, column: str | None = None
) -> FloatArray:
    """Losses of these responses, from a table of `read_choice_scores` or any with `model_id`, `item_id` and a loss.

    Parameters
    ----------
    source : path or table
    responses : ResponseMatrix
    column : str, optional
        Column of the loss; by default `loss`, else `bits_per_byte`.

    Returns
    -------
    (n_models, n_items)
        NaN where the table has no row.

    Raises
    ------
    DataError
        When a column is absent, a row comes twice, or no row is of these models and items.
    """
    table = source if isinstance(source, pl.DataFrame) else read_table_file(Path(source), infer=True).frame
    column = column or next((name for name in LOSS_COLUMNS if name in table.columns), LOSS_COLUMNS[0])
    absent = [name for name in ("model_id", "item_id", column) if name not in table.columns]
    if absent:
        raise DataError(f"a table of losses must have the columns {shown(absent)}; it has {shown(table.columns, 12)}.")
    check_names("a table of losses", [column])
    numbers = table[column].cast(pl.Float64, strict=False)
    bad = numbers.is_null() & table[column].is_not_null()
    if bad.any():
        raise DataError(
            f"{column} must be a number in every row of a table of losses, got "
            f"{shown(table[column].filter(bad).to_list())}."
        )
    table = table.select(pl.col("model_id", "item_id").cast(pl.String), numbers)
    repeated = table.filter(table.select("model_id", "item_id").is_duplicated())
    if repeated.height:
        names = [f"{model} on {item}" for model, item, _ in repeated.unique("item_id", maintain_order=True).iter_rows()]
        raise DataError(f"a table of losses must have one row a model and item, got several for {shown(names)}.")
    models = pl.DataFrame({"model_id": responses.model_ids}).with_row_index("model")
    items = pl.DataFrame({"item_id": responses.item_ids}).with_row_index("item")
    found = table.join(models, on="model_id").join(items, on="item_id").drop_nulls(column)
    if found.height == 0:
        raise DataError(
            f"the table of losses must hold models and items of the responses, got none of them: it has models "
            f"{shown(table['model_id'].unique(maintain_order=True).to_list(), 3)}, the responses "
            f"{shown(responses.model_ids, 3)}."
        )
    losses = np.full(responses.responses.shape, np.nan)
    losses[found["model"].to_numpy(), found["item"].to_numpy()] = found[column].to_numpy()
    return losses


def builtin_bits_per_byte() -> FloatArray:
    """Bits per byte of the right choice of `bytelms`, (n_models, n_items): the loss of the two-step law.

    Rows and columns are those of ``load_builtin("bytelms")``. Lower is better; it is no response, since it is not in
    [0, 1].
    """
    known = builtin_choices()
    return np.maximum(bits_per_byte(known.log_likelihoods, known.correct, known.n_bytes), 1e-3)


def builtin_sample_probabilities() -> FloatArray:
    """Probability that one sample is right in `bytelms-samples`, (n_models, n_items): the truth behind its counts.

    An answer is one string, so its probability at temperature 1 is known exactly, and with it pass@k for every k.
    The file comes with a checkout and with the source distribution, not with the wheel.

    Raises
    ------
    DataError
        In an installation from the wheel.
    """
    n_models = read_builtin_table("bytelms", "models").height
    log_probability = read_builtin_numbers("bytelms", "samples_exact", "<f4", n_models)
    result: FloatArray = np.exp(log_probability.astype(np.float64))
    return np.minimum(result, 1.0)
