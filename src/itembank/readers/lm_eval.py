"""Logs of lm-evaluation-harness: the samples it writes with ``--log_samples``."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from itembank.progress import ProgressCallback, silent
from itembank.readers.json_files import Record
from itembank.readers.lm_eval_files import SampleFile, find_sample_files, is_sample, run_of
from itembank.readers.lm_eval_samples import Samples, read_samples, samples_of
from itembank.readers.lm_eval_scores import needs_options, with_choice_metrics
from itembank.readers.lm_eval_stated import warn_of_other_results
from itembank.readers.logged import LogKind, Logs, logged_rows, read_each_log
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows

KIND = LogKind(
    "lm_eval samples files",
    "doc_hash",
    "The task changed between the runs, or shuffles its options anew, or unsorted ids were given to lm_eval --samples",
    has_document_numbers=True,
    uses_groups=False,
)


def is_lm_eval(record: Record) -> bool:
    """Whether an object is a sample of lm_eval, or the whole of its results."""
    return is_sample(record) or ("results" in record and not {"versions", "configs"}.isdisjoint(record))


def lm_eval_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read samples files and folders of them.

    Raises
    ------
    DataError
        When there are no samples; a metric or filter is unknown, or cannot be a response; items changed between runs.
    """
    found = find_sample_files(paths, spec)
    with_options = needs_options(spec)

    def read(file: SampleFile) -> Samples:
        return with_choice_metrics(read_samples(file, with_options=with_options))

    samples, problems = read_each_log(found.files, read, progress)
    compare = partial(warn_of_other_results, found=found, spec=spec)
    return logged_rows(Logs(KIND, samples, [*found.problems, *problems], found.lonely, compare), spec)


def lm_eval_record_rows(
    samples: Mapping[str, Sequence[Record]], results: Mapping[str, Any], model_id: str, spec: ReadingSpec
) -> ResponseRows:
    """Read samples that a run of the harness has just returned, without a file; the rest as `lm_eval_rows`.

    Parameters
    ----------
    samples : mapping of task to samples
        As the harness logs them.
    results : mapping
        What else the run returned: ``configs``, ``higher_is_better``, ``n-samples``, ...
    model_id : str
    spec : ReadingSpec

    Raises
    ------
    DataError
        As `lm_eval_rows`.
    """
    run = run_of(results, "")
    files = [SampleFile(Path(f"samples of {task}"), task, "", run, model_id) for task in samples]
    read = [
        with_choice_metrics(samples_of(file, [samples[file.task]], with_options=needs_options(spec))) for file in files
    ]
    return logged_rows(Logs(KIND, read, []), spec)
