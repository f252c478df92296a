"""A bank that has a name and a history, for tests of everything that changes banks."""

import dataclasses

import numpy as np

from itembank.bank.banks import bank_fingerprint
from itembank.calibration.item_model_bias import response_variance
from itembank_living.changes.notes import note, retire
from tests.bank.banks import make_bank


def measured_bank(**sizes):
    """Make a bank whose id and variance are those that a calibration gives, as `calibrate` makes it."""
    bank = make_bank(**sizes)
    bias, variance = np.full(3, 0.02), response_variance(bank.responses, bank.targets)
    prior = bank.calibration.prior
    numbers = (prior.mean, prior.covariance, bias, variance)
    bank_id = bank_fingerprint(bank.responses, bank.parameters, bank.targets, *numbers)
    return dataclasses.replace(bank, bank_id=bank_id, item_model_bias=bias, response_variance=variance)


def named_bank(name="quiz", **sizes):
    """Make the same bank with a name."""
    return note(measured_bank(**sizes), "as it was", name=name)


def retired_bank():
    """Make a bank that keeps an item aside."""
    return retire(named_bank(), ["math/0"], reason="wrong key")
