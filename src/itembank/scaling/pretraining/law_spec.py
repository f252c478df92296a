"""What the specs of all pre-training laws are derived from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PretrainingLawSpec:
    """Choices of a law; each law adds its own."""
