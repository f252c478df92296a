"""Where joint MAP starts on its own."""

from itembank.calibration.joint_map.fit import start_point
from itembank.calibration.start import start_abilities, start_values


def leading_point(data, spec, model=None):
    """Start at the leading directions of the responses."""
    values = data.responses if model is None else start_values(data)
    return start_point(data, spec, start_abilities(values, data.observed, n_dims=spec.n_dims), model)
