"""Where joint MAP starts on its own."""

from itembank.calibration.joint_map.fit import start_point
from itembank.calibration.start import start_abilities


def leading_point(data, spec):
    """Start at the leading directions of the responses."""
    return start_point(data, spec, start_abilities(data.responses, data.observed, n_dims=spec.n_dims))
