"""`Forecast`: scores by what is known of models before they answer."""

from dataclasses import dataclass

from itembank.numerics.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Forecast:
    """Scores by regression on columns of the model tables, without any answer.

    Attributes
    ----------
    columns : tuple of str
    past : (n_models, n_targets)
        Of the calibration models, by regressions that have not seen them.
    new : (n_new, n_targets)
        Of the new models.
    """

    columns: tuple[str, ...]
    past: FloatArray
    new: FloatArray

    def take(self, rows: IntArray) -> "Forecast":
        """Return the forecast of some of the new models."""
        return Forecast(self.columns, self.past, self.new[rows])
