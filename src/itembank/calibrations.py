"""Ways to calibrate a bank, and what a calibration gives: what `build_bank` takes as its method."""

from itembank.bank.banks import Calibration
from itembank.calibration.calibrate import calibrate
from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational
from itembank.calibration.dimensions import choose_n_dims, parallel_analysis
from itembank.irt.parameters import AbilityPrior, ItemParameters

__all__ = [
    "AbilityPrior",
    "Calibration",
    "ItemParameters",
    "JointMAP",
    "MarginalML",
    "Variational",
    "calibrate",
    "choose_n_dims",
    "parallel_analysis",
]
