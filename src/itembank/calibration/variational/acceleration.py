"""Momentum: carrying on in the direction of the last step.

With many dimensions and few models, a sweep closes only a thousandth of the remaining distance in some directions.
Nesterov's extrapolation ``z + (k - 1) / (k + 2) (z - z_before)`` of all posterior means, started anew whenever the
bound would fall (O'Donoghue & Candes 2015), needs about the square root of the number of plain sweeps.
"""

from dataclasses import dataclass, replace

from itembank.calibration.variational.state import Posterior
from itembank.numerics.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Momentum:
    """Where the last sweep led, and how many there were since the momentum was last lost."""

    item_mean: FloatArray | None = None  # (n_items, n_dims + 1)
    ability_mean: FloatArray | None = None  # (n_models, n_dims)
    n_steps: int = 0

    def after(self, posterior: Posterior) -> "Momentum":
        """Return the momentum after a sweep that led to this posterior."""
        return Momentum(posterior.item_mean, posterior.ability_mean, self.n_steps + 1)

    def extrapolate(self, posterior: Posterior) -> Posterior:
        """Carry the means of a posterior on in the direction from the last one; covariances stay."""
        if self.item_mean is None or self.ability_mean is None:
            return posterior
        # (k - 1) / (k + 2) with k = n_steps + 1: none at first, so that a lost momentum begins with a plain step.
        weight = self.n_steps / (self.n_steps + 3.0)
        return replace(
            posterior,
            item_mean=posterior.item_mean + weight * (posterior.item_mean - self.item_mean),
            ability_mean=posterior.ability_mean + weight * (posterior.ability_mean - self.ability_mean),
        )
