"""Ways to calibrate a bank, and what a calibration gives: what `calibrate` takes as its method."""

from itembank.bank.banks import Calibration
from itembank.calibration.calibration_specs import JointMAP, MarginalML, Variational
from itembank.calibration.dimensions import choose_n_dims, parallel_analysis
from itembank.calibration.fit_item_model import fit_item_model
from itembank.irt.parameters import AbilityPrior, ItemParameters

__all__ = [
    "AbilityPrior",
    "Calibration",
    "ItemParameters",
    "JointMAP",
    "MarginalML",
    "Variational",
    "choose_n_dims",
    "fit_item_model",
    "parallel_analysis",
]
