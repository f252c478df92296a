"""One adapter a tool: responses (n_models, n_items) with NaN missing to ability and predicted probability.

Abilities are (n_models, n_dims), probabilities (n_models, n_items), of all cells. Every tool runs with the choices that
it comes with, and its probability is that at the estimated ability.
"""

import csv
import json
import shutil
import signal
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

Fitted = tuple[np.ndarray, np.ndarray]
R_SCRIPT = Path(__file__).with_name("fit_mirt.R")


def fit_itembank(responses: np.ndarray, n_dims: int) -> Fitted:
    """Calibrate by itembank's default method, with standard errors."""
    from itembank.calibration.calibration_specs import Variational  # noqa: PLC0415
    from itembank.calibration.fit_item_model import fit_item_model  # noqa: PLC0415
    from itembank.irt.bernoulli import probability  # noqa: PLC0415
    from itembank.responses.responses import ResponseMatrix  # noqa: PLC0415

    matrix = ResponseMatrix.create(responses)
    spec = Variational() if n_dims == 1 else Variational("mirt", n_dims=n_dims)
    found = fit_item_model(matrix, spec)
    if not (found.converged and np.isfinite(found.standard_errors).all()):
        raise RuntimeError(f"itembank: {found.message}")
    return found.abilities, probability(found.parameters, found.abilities)


def fit_itembank_mml(responses: np.ndarray, n_dims: int) -> Fitted:  # noqa: ARG001 (one dimension)
    """Calibrate by itembank's marginal maximum likelihood."""
    from itembank.calibration.calibration_specs import MarginalML  # noqa: PLC0415
    from itembank.calibration.fit_item_model import fit_item_model  # noqa: PLC0415
    from itembank.irt.bernoulli import probability  # noqa: PLC0415
    from itembank.responses.responses import ResponseMatrix  # noqa: PLC0415

    found = fit_item_model(ResponseMatrix.create(responses), MarginalML())
    return found.abilities, probability(found.parameters, found.abilities)


def fit_pypi_mirt(responses: np.ndarray, n_dims: int) -> Fitted:
    """PyPI `mirt` (Rust), 2PL by EM, without standard errors; abilities by EAP."""
    import mirt  # noqa: PLC0415

    coded = np.where(np.isnan(responses), -1, responses).astype(int)
    result = mirt.fit_mirt(coded, model="2PL", n_factors=n_dims, compute_standard_errors=False)
    theta = np.asarray(mirt.fscores(result, coded, method="EAP").theta).reshape(len(responses), -1)
    return theta, np.asarray(result.model.probability(theta))


def fit_py_irt(responses: np.ndarray, n_dims: int) -> Fitted:  # noqa: ARG001 (one dimension)
    """py-irt, its hierarchical 2PL by stochastic variational inference, 2,000 epochs as it comes."""
    from py_irt.config import IrtConfig  # noqa: PLC0415
    from py_irt.training import IrtModelTrainer  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "responses.jsonl"
        path.write_text("".join(_py_irt_line(row, number) for number, row in enumerate(responses)), encoding="utf-8")
        trainer = IrtModelTrainer(data_path=path, config=IrtConfig(model_type="2pl", epochs=2000), verbose=False)
        trainer.train(device="cpu")
    best = trainer.best_params
    models = np.argsort([int(best["subject_ids"][k][1:]) for k in range(len(responses))])
    items = np.argsort([int(best["item_ids"][k][1:]) for k in range(responses.shape[1])])
    theta = np.asarray(best["ability"])[models]
    slope, difficulty = np.asarray(best["disc"])[items], np.asarray(best["diff"])[items]
    return theta[:, None], _sigmoid(slope * (theta[:, None] - difficulty))


def fit_theta_irt(responses: np.ndarray, n_dims: int) -> Fitted:  # noqa: ARG001 (one dimension)
    """theta-irt (JAX), 2PL by EM; abilities by EAP."""
    import theta  # noqa: PLC0415

    model = theta.fit(responses, "2PL")
    ability = np.asarray(model.score(responses)[0])
    return ability[:, None], np.asarray(model.prob(ability))


def fit_torch_measure_jml(responses: np.ndarray, n_dims: int) -> Fitted:
    """torch_measure by joint maximum likelihood, 2PL, or its factor model with more dimensions.

    The learning rate is that of its function `jml_fit`; that of its method `fit` takes twice as long.
    """
    import torch  # noqa: PLC0415
    from torch_measure.models import LogisticFM  # noqa: PLC0415

    if n_dims == 1:
        return _torch_measure_2pl(responses, method="jml", lr=0.1)
    torch.manual_seed(0)
    model = LogisticFM(*responses.shape, n_factors=n_dims)
    model.fit(torch.tensor(responses, dtype=torch.float32), verbose=False, method="jml", lr=0.1)
    theta, loadings, intercept = (part.detach().numpy() for part in (model.U, model.V, model.Z))
    return theta, _sigmoid(theta @ loadings.T + intercept)


def fit_torch_measure_mle(responses: np.ndarray, n_dims: int) -> Fitted:  # noqa: ARG001 (one dimension)
    """torch_measure, 2PL by its default maximum likelihood, 1,000 epochs as it comes."""
    return _torch_measure_2pl(responses)


def _torch_measure_2pl(responses: np.ndarray, **options: object) -> Fitted:
    import torch  # noqa: PLC0415
    from torch_measure.models import TwoPL  # noqa: PLC0415

    torch.manual_seed(0)
    model = TwoPL(*responses.shape)
    model.fit(torch.tensor(responses, dtype=torch.float32), verbose=False, **options)
    theta, slope, difficulty = (
        part.detach().numpy() for part in (model.ability, model.discrimination, model.difficulty)
    )
    return theta[:, None], _sigmoid(slope * (theta[:, None] - difficulty))


def fit_r_mirt(responses: np.ndarray, n_dims: int) -> Fitted:
    """R's mirt, 2PL by EM (quasi-Monte Carlo EM from three dimensions on), without standard errors; EAP."""
    constant = np.nanmax(responses, axis=0) == np.nanmin(responses, axis=0)  # mirt refuses such items
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "responses.csv").open("w", newline="", encoding="ascii") as file:
            writer = csv.writer(file)
            writer.writerows([["" if np.isnan(y) else int(y) for y in row] for row in responses[:, ~constant]])
        done = subprocess.run([str(shutil.which("Rscript")), str(R_SCRIPT), name, str(n_dims)], check=False)
        if done.returncode == -signal.SIGXCPU:  # the limit holds for this process and for R alike
            signal.raise_signal(signal.SIGXCPU)
        done.check_returncode()
        theta = np.genfromtxt(folder / "theta.csv", delimiter=",").reshape(len(responses), -1)
        if np.isnan(theta).all():
            raise ArithmeticError("finds no abilities, they are all NA")
        items = np.loadtxt(folder / "items.csv", delimiter=",", ndmin=2)
    chances = np.empty(responses.shape)
    chances[:, ~constant] = _sigmoid(theta @ items[:, :n_dims].T + items[:, n_dims])
    right, answered = np.nansum(responses[:, constant], axis=0), (~np.isnan(responses[:, constant])).sum(axis=0)
    chances[:, constant] = (right + 0.5) / (answered + 1.0)
    return theta, chances


@cache
def r_mirt_version() -> str | None:
    """Return the version of R's mirt, None where R or the package is missing."""
    program = shutil.which("Rscript")
    if program is None:
        return None
    asked = [program, "-e", "cat(as.character(packageVersion('mirt')))"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _py_irt_line(row: np.ndarray, number: int) -> str:
    answers = {f"i{i}": int(row[i]) for i in np.flatnonzero(~np.isnan(row))}
    return json.dumps({"subject_id": f"m{number}", "responses": answers}) + "\n"


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-np.clip(logits.astype(np.float64), -700.0, 700.0)))
