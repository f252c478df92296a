"""What Inspect loads by the entry point of the package: a release that is too old is told so, not shown a traceback."""

from itembank_harnesses.inspect.samples import check_release

check_release()

from itembank_harnesses.inspect import tasks  # noqa: E402, F401 (which registers tasks, scorer and metric)
