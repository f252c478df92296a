"""One adapter a tool: responses (n_models, n_items) with NaN missing to ability and predicted probability.

Run as a program it fits one tool in a process of its own: ``python -m benchmarks.rivals TOOL IN.npz OUT.npz``.
Nothing here imports itembank except its own adapter, so that rivals may live in another environment.
"""

import importlib.util
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

Fitted = tuple[np.ndarray, np.ndarray]


def fit_itembank(responses: np.ndarray, n_dims: int) -> Fitted:
    """Calibrate by itembank's default method, with standard errors."""
    from itembank.calibration.calibrate import calibrate  # noqa: PLC0415
    from itembank.calibration.specs import Variational  # noqa: PLC0415
    from itembank.data.responses import ResponseMatrix  # noqa: PLC0415
    from itembank.irt.bernoulli import probability  # noqa: PLC0415

    matrix = ResponseMatrix.create(responses)
    spec = Variational() if n_dims == 1 else Variational("mirt", n_dims=n_dims)
    found = calibrate(matrix, spec)
    if not (found.converged and np.isfinite(found.standard_errors).all()):
        raise RuntimeError(f"itembank: {found.message}")
    return found.abilities, probability(found.parameters, found.abilities)


def fit_itembank_mml(responses: np.ndarray, n_dims: int) -> Fitted:
    """Calibrate by itembank's marginal maximum likelihood."""
    from itembank.calibration.calibrate import calibrate  # noqa: PLC0415
    from itembank.calibration.specs import MarginalML  # noqa: PLC0415
    from itembank.data.responses import ResponseMatrix  # noqa: PLC0415
    from itembank.irt.bernoulli import probability  # noqa: PLC0415

    found = calibrate(ResponseMatrix.create(responses), MarginalML("2pl" if n_dims == 1 else "mirt", n_dims=n_dims))
    return found.abilities, probability(found.parameters, found.abilities)


def fit_pypi_mirt(responses: np.ndarray, n_dims: int) -> Fitted:
    """PyPI `mirt` (Rust), 2PL by EM, without standard errors; abilities by EAP."""
    import mirt  # noqa: PLC0415

    coded = np.where(np.isnan(responses), -1, responses).astype(int)
    result = mirt.fit_mirt(coded, model="2PL", n_factors=n_dims, compute_standard_errors=False)
    theta = np.asarray(mirt.fscores(result, coded, method="EAP").theta).reshape(len(responses), -1)
    return theta, np.asarray(result.model.probability(theta))


def fit_py_irt(responses: np.ndarray, n_dims: int) -> Fitted:
    """py-irt, its hierarchical 2PL by stochastic variational inference, 2,000 epochs as it comes."""
    if n_dims > 1:
        raise NotImplementedError("py-irt as published has one dimension with slopes")
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


def fit_torch_measure(responses: np.ndarray, n_dims: int) -> Fitted:
    """torch_measure, 2PL by its default maximum likelihood, 1,000 epochs as it comes."""
    if n_dims > 1:
        raise NotImplementedError("torch_measure's 2PL has one dimension")
    import torch  # noqa: PLC0415
    from torch_measure.models import TwoPL  # noqa: PLC0415

    torch.manual_seed(0)
    model = TwoPL(*responses.shape)
    model.fit(torch.tensor(responses, dtype=torch.float32), verbose=False)
    theta = model.ability.detach().numpy()
    slope, difficulty = model.discrimination.detach().numpy(), model.difficulty.detach().numpy()
    return theta[:, None], _sigmoid(slope * (theta[:, None] - difficulty))


TOOLS: dict[str, tuple[str, Callable[[np.ndarray, int], Fitted]]] = {
    "itembank": ("itembank", fit_itembank),
    "itembank mml": ("itembank", fit_itembank_mml),
    "PyPI mirt": ("mirt", fit_pypi_mirt),
    "py-irt": ("py_irt", fit_py_irt),
    "torch_measure": ("torch_measure", fit_torch_measure),
}


def _py_irt_line(row: np.ndarray, number: int) -> str:
    answers = {f"i{i}": int(row[i]) for i in np.flatnonzero(~np.isnan(row))}
    return json.dumps({"subject_id": f"m{number}", "responses": answers}) + "\n"


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-logits))


def main() -> None:
    """Fit one tool; print what it cost as a line of JSON."""
    tool, source, target = sys.argv[1:]
    module, fit = TOOLS[tool]
    if importlib.util.find_spec(module) is None:
        print(json.dumps({"skipped": "not installed"}))
        return
    with np.load(source) as problem:
        responses, n_dims = problem["responses"], int(problem["n_dims"])
    started, wall = time.process_time(), time.perf_counter()
    try:
        theta, chances = fit(responses, n_dims)
    except NotImplementedError as reason:
        print(json.dumps({"skipped": str(reason)}))
        return
    cost = {"cpu_seconds": time.process_time() - started, "wall_seconds": time.perf_counter() - wall}
    np.savez(target, theta=theta, chances=chances.astype(np.float32))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    print(json.dumps({**cost, "peak_megabytes": peak}))


if __name__ == "__main__":
    main()
