"""`Dimensionality`: eigenvalues, parallel analysis and held-out errors of several numbers of dimensions."""

from dataclasses import dataclass
from typing import Any

from itembank.numerics.arrays import FloatArray
from itembank.tabular import Tabular

N_LISTED = 10
"""Eigenvalues that a summary lists."""


@dataclass(frozen=True, slots=True, repr=False)
class Dimensionality(Tabular):
    """Number of abilities that responses measure.

    Attributes
    ----------
    eigenvalues : (n_eigenvalues,)
        Of the item correlation matrix, falling.
    shares : (n_eigenvalues,)
        Of the items' variance that each explains.
    thresholds : (n_eigenvalues,)
        95th percentile of each eigenvalue when every item's responses are shuffled over models.
    n_dims_parallel : int
        How many leading eigenvalues exceed their threshold.
    candidates : tuple of n_candidates numbers
        Numbers of dimensions tried on models left out; empty with fewer than ten models.
    n_shown : tuple of n_sizes numbers
        Items that a model left out showed; the last is half of all.
    errors, error_standard_errors : (n_sizes, n_candidates)
        Mean over models of the mean over scenarios of ``|predicted - actual|`` score on the hidden half of the items.
    log_likelihoods, log_likelihood_standard_errors : (n_sizes, n_candidates)
        Mean over models of the log-likelihood of a hidden response.
    relative_errors, relative_standard_errors : (n_sizes, n_candidates)
        Error over that of the smallest candidate, minus one (WILD Figure 8); the models are the same, so its standard
        error is smaller than those of the two.
    n_dims : int or None
        The smallest candidate within a quarter of a point of the best error with half of the items shown; None when
        nothing was tried.
    n_models, n_items : int
    n_items_used : int
        Every k-th item of a long benchmark, for the errors.
    share_missing : float
    message : str
    """

    eigenvalues: FloatArray
    shares: FloatArray
    thresholds: FloatArray
    n_dims_parallel: int
    candidates: tuple[int, ...]
    n_shown: tuple[int, ...]
    errors: FloatArray
    error_standard_errors: FloatArray
    log_likelihoods: FloatArray
    log_likelihood_standard_errors: FloatArray
    relative_errors: FloatArray
    relative_standard_errors: FloatArray
    n_dims: int | None
    n_models: int
    n_items: int
    n_items_used: int
    share_missing: float
    message: str

    def rows(self) -> list[dict[str, Any]]:
        """One record for each number of shown items and each candidate."""
        return [
            {
                "n_shown": size,
                "n_dims": n_dims,
                "error": float(self.errors[j, k]),
                "error_standard_error": float(self.error_standard_errors[j, k]),
                "relative_error": float(self.relative_errors[j, k]),
                "relative_standard_error": float(self.relative_standard_errors[j, k]),
                "log_likelihood": float(self.log_likelihoods[j, k]),
                "log_likelihood_standard_error": float(self.log_likelihood_standard_errors[j, k]),
            }
            for j, size in enumerate(self.n_shown)
            for k, n_dims in enumerate(self.candidates)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all but the rows; the first ten eigenvalues."""
        return {
            "n_dims": self.n_dims,
            "n_dims_parallel": self.n_dims_parallel,
            "n_models": self.n_models,
            "n_items": self.n_items,
            "n_items_used": self.n_items_used,
            "share_missing": self.share_missing,
            "eigenvalues": self.eigenvalues[:N_LISTED].tolist(),
            "thresholds": self.thresholds[:N_LISTED].tolist(),
            "shares": self.shares[:N_LISTED].tolist(),
            "message": self.message,
        }
