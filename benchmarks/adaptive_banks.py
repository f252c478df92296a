"""Banks of simulated items whose parameters are the true ones, so that no time goes into a calibration."""

import numpy as np

from itembank.bank.banks import Bank, Calibration, bank_fingerprint
from itembank.irt.parameters import AbilityPrior
from itembank.responses.responses import ResponseMatrix
from itembank.responses.targets import ScoreTargets
from itembank_studies.simulation.simulate import simulate
from itembank_studies.simulation.simulation_specs import SimulationSpec


def bank_and_models(
    n_items: int, n_dims: int, *, n_tasks: int = 40, n_known: int = 60, n_new: int = 20
) -> tuple[Bank, ResponseMatrix]:
    """Return a bank in n_dims dimensions, the general one among them, and the responses of new models to all items."""
    spec = SimulationSpec(n_models=n_known + n_new, n_items=n_items, n_tasks=n_tasks, n_dims=n_dims - 1)
    made = simulate(spec, 0)
    known = made.responses.take(models=np.arange(n_known))
    calibration = Calibration(
        made.truth.parameters,
        np.zeros((n_items, n_dims + 1, n_dims + 1)),
        made.truth.abilities[:n_known],
        np.zeros((n_known, n_dims, n_dims)),
        AbilityPrior.standard(n_dims),
        np.ptp(known.responses, axis=0) == 0.0,
        {},
        "variational",
        "mirt" if n_dims > 1 else "2pl",
        True,
        1,
        "the truth of a simulation",
        np.zeros(1),
    )
    targets = ScoreTargets.create(known.items)
    bank_id = bank_fingerprint(known, made.truth.parameters, targets)
    bias, spread = np.full(targets.n_scenarios, 0.02), np.full(targets.n_scenarios, 0.2)
    bank = Bank(bank_id, known, calibration, targets, bias, spread)
    return bank, made.responses.take(models=np.arange(n_known, n_known + n_new))
