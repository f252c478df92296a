"""The package of methods that benchmarks compare with, and whether it is installed."""

from pathlib import Path

from itembank.estimation.estimator_specs import METHODS as ESTIMATORS

METHODS = Path(__file__).parent / "methods"
"""Folder of the package."""


def check_installed() -> None:
    """Say how to install the package where it is not."""
    if "knn" not in ESTIMATORS.names():
        raise SystemExit("This benchmark needs the package of rivals: pip install -e benchmarks/rivals/methods")
