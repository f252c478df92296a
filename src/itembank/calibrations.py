"""Ways to calibrate a bank, and what a calibration gives: what `build_bank` takes as its method."""

from itembank.calibration.calibrate import calibrate
from itembank.calibration.dimensions import choose_n_dims, parallel_analysis
from itembank.calibration.item_regression import item_regression
from itembank.calibration.item_regressions import ItemRegression
from itembank.calibration.specs import JointMAP, MarginalML, Variational
from itembank.data.calibrations import Calibration
from itembank.data.coded_responses import CodedResponses
from itembank.irt.parameters import AbilityPrior, ItemParameters

__all__ = [
    "AbilityPrior",
    "Calibration",
    "CodedResponses",
    "ItemParameters",
    "ItemRegression",
    "JointMAP",
    "MarginalML",
    "Variational",
    "calibrate",
    "choose_n_dims",
    "item_regression",
    "parallel_analysis",
]
