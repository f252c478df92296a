"""Names of scores and of the ways to make them; without numpy, so that a command's help can list them."""

from typing import Literal

OVERALL = "overall"
WIN_RATE = "mean_win_rate"
RESERVED_NAMES = (OVERALL, WIN_RATE)
EXTERNAL = "score."
"""Begins the columns of a bank's model table that hold external scores of its models."""

Within = Literal["micro", "macro", "custom"]
Across = Literal["scenarios", "items"]
