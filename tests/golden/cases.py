"""Golden fits of R's mirt: responses and results, read from the shared folder."""

import csv
import json
from typing import Any

import numpy as np

from itembank.calibration.fits import FitData


def read_results(shared_dir, name) -> dict[str, Any]:
    """Read all results of a case."""
    return json.loads((shared_dir / "golden" / name / "results.json").read_text())


def read_data(shared_dir, name, *, file="responses.csv", lower=None) -> FitData:
    """Read the responses of a case as a fitting kernel takes them."""
    with (shared_dir / "golden" / name / file).open(newline="") as handle:
        rows = list(csv.reader(handle))[1:]
    responses = np.array([[np.nan if cell in {"NA", ""} else float(cell) for cell in row] for row in rows])
    observed = ~np.isnan(responses)
    lower = np.zeros(responses.shape[1]) if lower is None else np.asarray(lower, dtype=float)
    return FitData(np.where(observed, responses, 0.0), None if observed.all() else observed, lower)


def item_parameters(par, n_dims=1) -> np.ndarray:
    """Loadings and intercepts, (n_items, n_dims + 1)."""
    return np.array(par["items"], dtype=float)[:, : n_dims + 1]


def standard_errors(par, n_dims=1) -> np.ndarray:
    """Standard errors of loadings and intercepts, (n_items, n_dims + 1); NaN where mirt gives none."""
    rows = [par["raw_with_se"][name]["values"][1][: n_dims + 1] for name in par["item_names"]]
    return np.array([[np.nan if isinstance(value, str) else value for value in row] for row in rows], dtype=float)
