"""Repeated attempts in samples of lm-evaluation-harness: which the log counts, and which it hides."""

from collections.abc import Mapping, Sequence

import numpy as np

from itembank.errors import DataWarning, first_few, warn
from itembank.numerics.arrays import IntArray
from itembank.readers.lm_eval_samples import Samples

PASS_RATES = ("pass@1", "pass_at_1", "pass1")
"""Metrics that are the share of right ones among all texts that were generated for an item."""
WHOLE = 1e-6


def n_attempts(samples: Samples, metric: str) -> IntArray | None:
    """Count the attempts behind each value of a metric, (n_rows,); None when every value is of one attempt.

    They are told by a metric that is a list, one number an attempt, and by a pass rate beside the texts it was taken
    of. Of other metrics the harness scores one text, whatever was generated: the first, or the majority's.
    """
    found = samples.metrics[metric]
    if found.lengths is not None:
        return found.lengths
    if metric not in PASS_RATES or samples.n_generated.max(initial=0) <= 1:
        return None
    right = np.where(np.isnan(found.values), 0.0, found.values) * samples.n_generated
    is_count = np.abs(right - np.rint(right)) <= WHOLE
    return np.maximum(samples.n_generated, 1) if is_count.all() else None


def warn_of_uncounted(samples: Sequence[Samples], choices: Mapping[str, tuple[str, str]]) -> None:
    """Warn of tasks that generated several texts an item where the chosen metric scores one of them."""
    hidden: dict[str, str] = {}
    for one in samples:
        metric, filter_name = choices[one.file.task]
        most = int(one.n_generated.max(initial=0))
        if most > 1 and n_attempts(one, metric) is None:
            hidden[one.file.task] = f"{one.file.task!r} ({most} texts, {metric!r} after the filter {filter_name!r})"
    if hidden:
        message = (
            f"{len(hidden)} tasks generated several texts an item, of which the log scores one: "
            f"{first_few(list(hidden.values()))}. One trial is counted; to have all, log a metric of every text, or "
            "run the task with several seeds and read them as a table."
        )
        warn(message, DataWarning)
