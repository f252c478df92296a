"""Who the past models of a bank were and what they scored, as far as a bank without their answers may know it."""

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from itembank.numerics.arrays import BoolArray, FloatArray

DIGITS = 16
"""Hexadecimal digits that are kept of a name's SHA-256."""


class PastModels(NamedTuple):
    """Past models of a bank; of some of them the score alone may be known, and no name."""

    names: tuple[str, ...]  # Ids, or with a salt their digests (`name_digest`); none where they are not known
    scores: FloatArray  # (n_models,): The overall score, or the one in its place; NaN where unknown
    salt: str = ""

    def rows(self, model_id: str) -> list[int]:
        """Rows of the past models that have this id."""
        wanted = {model_id}
        if self.salt:  # logs name the same model with its organisation and without
            wanted = {name_digest(name, self.salt) for name in (model_id, model_id.rpartition("/")[2])}
        return [row for row, name in enumerate(self.names) if name in wanted]

    def known(self, model_ids: Sequence[str]) -> tuple[str, ...]:
        """Return those of these models that are past models."""
        if not self.salt:
            names = set(self.names)
            return tuple(one for one in model_ids if one in names)
        return tuple(one for one in model_ids if self.rows(one))

    def best(self, model_ids: Sequence[str]) -> FloatArray:
        """Best score of the past models other than each of these, NaN where none is known, (n_model_ids,)."""
        is_known = ~np.isnan(self.scores)
        known = set(self.known(model_ids))
        usual = float(self.scores[is_known].max()) if is_known.any() else np.nan
        return np.array([self._best_but(one, is_known) if one in known else usual for one in model_ids])

    def _best_but(self, model_id: str, is_known: BoolArray) -> float:
        others = is_known.copy()
        others[self.rows(model_id)] = False
        return float(self.scores[others].max()) if others.any() else np.nan


def is_name_digest(text: str) -> bool:
    """Whether a text may be a digest of a name."""
    return re.fullmatch(f"[0-9a-f]{{{DIGITS}}}", text) is not None


def name_digest(model_id: str, salt: str) -> str:
    """Digest of a model's name by which a bank knows it again that does not tell it: of its letters and digits."""
    plain = "".join(letter for letter in model_id.casefold() if letter.isalnum())
    return hashlib.sha256(f"{salt}:{plain}".encode()).hexdigest()[:DIGITS]
