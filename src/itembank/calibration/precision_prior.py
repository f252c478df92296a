"""What every method that learns a precision phi takes for granted of it."""

import numpy as np

PRIOR_MEAN, PRIOR_SD = float(np.log(10.0)), 3.0
"""Of log phi, normal: so wide that a hundred cells outweigh it, but responses without any spread stay finite."""

LEAST, MOST = 1e-2, 1e7
"""Of phi."""

DIFFERENCE = 0.05
"""Step of log phi for slopes and curvatures."""
