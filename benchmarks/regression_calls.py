"""The calls that `benchmarks.regression` times, for any version of itembank: ``python regression_calls.py``.

It is run by its path and takes nothing but names that itembank exports, so that the itembank on Python's path is the
one that is measured. It prints a line of JSON: the CPU seconds of each call, what loads on first use included. A call
whose names this version does not have is left out.
"""

import json
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

N_MODELS, N_ITEMS, N_NEW, N_ASKED = 200, 800, 10, 60
SEED = 0


class Calls:
    """The calls, in the order in which they are made: each may take what earlier ones left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load_names(self) -> None:
        """Import itembank, and what its first names load."""
        import itembank  # noqa: PLC0415

        self.ib: ModuleType = itembank
        self.past = itembank.ResponseMatrix.create(simulated(N_MODELS))
        self.new = itembank.ResponseMatrix.create(simulated(N_NEW))

    def calibrate_2pl(self) -> None:
        """Calibrate one ability by the default method."""
        calibrations = self.ib.calibrations
        calibrations.fit_item_model(self.past, calibrations.Variational())

    def calibrate_5_dimensions(self) -> None:
        """Calibrate five abilities."""
        calibrations = self.ib.calibrations
        calibrations.fit_item_model(self.past, calibrations.Variational("mirt", n_dims=5))

    def calibrate_marginal_ml(self) -> None:
        """Calibrate one ability by marginal maximum likelihood."""
        calibrations = self.ib.calibrations
        calibrations.fit_item_model(self.past, calibrations.MarginalML())

    def calibrate(self) -> None:
        """Make a bank."""
        self.bank = self.ib.calibrate(self.past, "variational")

    def save_and_load(self) -> None:
        """Write the bank and read it."""
        self.bank.save(self.folder / "bank")
        self.bank = self.ib.load_bank(self.folder / "bank")

    def select(self) -> None:
        """Choose items."""
        self.selection = self.ib.select(self.bank, N_ASKED, method="anchor-irt", rng=SEED)
        chosen = self.new.item_indices(self.selection.item_ids)
        self.answers = self.new.take(items=chosen)

    def estimate_gp_irt(self) -> None:
        """Estimate scores by gp-IRT."""
        self._estimate("gp-irt", "model-based")

    def estimate_default(self) -> None:
        """Estimate scores as by default, with the folds that a bank makes once."""
        self._estimate("auto", "calibrated")

    def estimate_again(self) -> None:
        """Do the same again, as the second file of answers would."""
        self._estimate("auto", "calibrated")

    def session(self) -> None:
        """Ask one model item by item."""
        spec = self.ib.SessionSpec(budget=self.ib.Budget(n_items=N_ASKED), interval="model-based")
        session = self.ib.AdaptiveSession(self.ib.prepare_sessions(self.bank, spec))
        place = {item: index for index, item in enumerate(self.new.item_ids)}
        while items := session.ask():
            session.tell(items[0], float(self.new.responses[0, place[items[0]]]))

    def _estimate(self, method: str, interval: str) -> None:
        self.ib.estimate(self.bank, self.answers, selection=self.selection, method=method, interval=interval)


def simulated(n_models: int) -> np.ndarray:
    """Draw responses (n_models, N_ITEMS) to the same items."""
    items, models = np.random.default_rng(SEED), np.random.default_rng((SEED, n_models))
    slope, difficulty = items.lognormal(0.0, 0.5, N_ITEMS), items.normal(size=N_ITEMS)
    logits = slope * (models.normal(size=(n_models, 1)) - difficulty)
    return (models.random(logits.shape) < 1.0 / (1.0 + np.exp(-logits))).astype(float)


def main() -> None:
    """Make the calls one after the other, and print what each took."""
    warnings.simplefilter("ignore")
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        calls = Calls(Path(folder))
        made: list[Callable[[], Any]] = [getattr(calls, name) for name in vars(Calls) if not name.startswith("_")]
        for call in made:
            started = time.process_time()
            try:
                call()
            except AttributeError:
                continue
            seconds[call.__name__.replace("_", " ")] = time.process_time() - started
    print(json.dumps({"place": calls.ib.__file__, "seconds": seconds}))


if __name__ == "__main__":
    main()
