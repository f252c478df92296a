"""Running tasks of Inspect in tests, and looking at their logs."""

import inspect_ai
import pytest

import itembank_harnesses.inspect.entry  # noqa: F401 (registers tasks, scorer and metric)

OF_INSPECT = [
    pytest.mark.harness,
    # Of Inspect's own streams and of what it imports.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def run(task, folder, **options):
    """Run a task with the counted model."""
    given = {"log_dir": str(folder), "display": "none", "max_samples": 1, **options}
    (log,) = inspect_ai.eval(task, model="counted/new", **given)
    return log


def metrics(log, scorer="itembank"):
    """Return the metrics of a scorer by name."""
    (found,) = [one.metrics for one in log.results.scores if one.name == scorer]
    return {name: metric.value for name, metric in found.items()}


def ours(log):
    """Return what the package wrote about a run."""
    return log.eval.metadata["itembank"]
