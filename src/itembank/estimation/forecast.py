"""`Forecast`: scores by what is known of models before they answer."""

from dataclasses import dataclass

from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """Scores by regression on columns of the model tables, without any answer."""

    columns: tuple[str, ...]
    past: FloatArray  # (n_models, n_targets): Of the calibration models, by regressions that have not seen them
    new: FloatArray  # (n_new, n_targets): Of the new models

    def take(self, rows: IntArray) -> "Forecast":
        """Return the forecast of some of the new models."""
        return Forecast(self.columns, self.past, self.new[rows])
