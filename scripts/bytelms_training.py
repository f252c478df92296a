"""Train one model of `bytelms` on one mixture, and evaluate it at every checkpoint."""

import contextlib
import io
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from bytelms_model import CONTEXT, Batch, LanguageModel, Size, choice_log_likelihoods, sampled_counts
from torch.nn import functional as F  # noqa: N812

SHARES = (0.125, 0.25, 0.5, 0.75, 1.0)  # of the run, where checkpoints are evaluated
WARMUP, LAST_RATE = 0.05, 0.02  # share of the run; share of the peak learning rate at the end
N_SAMPLES = 10_000
EMBEDDING_RATE, BETAS = 0.006, (0.9, 0.98)  # AdamW, for the embedding
WEIGHT_DECAY, CLIP = 0.001, 1.0


@dataclass(frozen=True)
class Evaluation:
    """What every checkpoint is asked."""

    multiple_choice: list[Batch]
    generative: list[Batch]
    n_options: int
    validation: torch.Tensor  # (n, CONTEXT + 1)


@dataclass(frozen=True)
class Run:
    """One training run: a mixture, a size and a seed."""

    mixture: str
    size: Size
    seed: int

    @property
    def name(self) -> str:
        """Part of the model ids that all checkpoints of the run share."""
        return f"{self.mixture}/{self.size.label}"

    def file(self, folder: Path, share: float) -> Path:
        """Where a checkpoint's answers are kept."""
        return folder / f"{self.mixture}-{self.size.label}-{round(1000 * share):04}.npz"


def train(run: Run, tokens: np.ndarray, evaluation: Evaluation, *, folder: Path, device: str) -> None:
    """Train from the start; checkpoints whose answers are there already are not evaluated again."""
    started = time.process_time()
    torch.manual_seed(run.seed)
    model = LanguageModel(run.size.width, run.size.n_layers).to(device)
    optimizers = _optimizers(model, run.size.learning_rate)
    peaks = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
    n_steps = run.size.train_tokens // (run.size.batch * CONTEXT)
    stops = {round(share * n_steps): share for share in SHARES}
    losses: list[float] = []
    for step, batch in enumerate(_batches(tokens, n_steps, run.size.batch, device), start=1):
        for optimizer, peak in zip(optimizers, peaks, strict=True):
            optimizer.param_groups[0]["lr"] = peak * _rate(step / n_steps)
        losses.append(_step(model, optimizers, batch, device))
        if step in stops and not run.file(folder, stops[step]).exists():
            record = _record(run, model, step, stops[step], losses)
            record["cpu_seconds"] = time.process_time() - started
            _write(run.file(folder, stops[step]), record, _answers(run, model, evaluation, device))


def _batches(tokens: np.ndarray, n_steps: int, n: int, device: str) -> Iterator[torch.Tensor]:
    """Successive stretches of the text, each read once, (n, CONTEXT + 1); the last token overlaps."""
    for step in range(n_steps):
        first = step * n * CONTEXT
        starts = first + CONTEXT * np.arange(n)
        yield torch.from_numpy(tokens[starts[:, None] + np.arange(CONTEXT + 1)]).to(device)


def _rate(done: float) -> float:
    """Share of the peak learning rate: linear warm-up, then a cosine."""
    if done < WARMUP:
        return done / WARMUP
    return LAST_RATE + (1.0 - LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * (done - WARMUP) / (1.0 - WARMUP)))


def _autocast(device: str) -> contextlib.AbstractContextManager:
    return torch.autocast(device, dtype=torch.bfloat16)


def _loss(model: LanguageModel, batch: torch.Tensor) -> torch.Tensor:
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())


def _optimizers(model: LanguageModel, learning_rate: float) -> tuple[torch.optim.Optimizer, ...]:
    """AdamW for the embedding, Muon for the matrices of the blocks (it needs fewer tokens)."""
    return (
        torch.optim.AdamW([model.embedding.weight], lr=EMBEDDING_RATE, betas=BETAS, weight_decay=0.0),
        torch.optim.Muon(model.blocks.parameters(), lr=learning_rate, weight_decay=WEIGHT_DECAY),
    )


def _step(
    model: LanguageModel, optimizers: tuple[torch.optim.Optimizer, ...], batch: torch.Tensor, device: str
) -> float:
    with _autocast(device):
        loss = _loss(model, batch)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return float(loss.detach())


def _answers(run: Run, model: LanguageModel, evaluation: Evaluation, device: str) -> dict[str, np.ndarray]:
    """Answer everything at the precision of training."""
    rng = np.random.default_rng([run.seed, 1])
    with _autocast(device), torch.inference_mode():
        choices = choice_log_likelihoods(model, evaluation.multiple_choice, evaluation.n_options)
        counts, log_likelihoods = sampled_counts(model, evaluation.generative, N_SAMPLES, rng)
        losses = [float(_loss(model, part)) for part in evaluation.validation.split(16)]
    return {
        "choices": choices.astype(np.float32),
        "counts": counts.astype(np.int32),
        "answers": log_likelihoods.astype(np.float32),
        "validation": np.array(np.mean(losses) / math.log(2.0)),
    }


def _record(run: Run, model: LanguageModel, step: int, share: float, losses: list[float]) -> dict[str, object]:
    train_tokens = step * run.size.batch * CONTEXT
    return {
        **asdict(run.size),
        "mixture": run.mixture,
        "seed": run.seed,
        "params": model.n_parameters,
        "params_non_embedding": model.n_parameters - model.n_embedding,
        "step": step,
        "share_of_run": share,
        "train_tokens": train_tokens,
        "flops": 6.0 * model.n_parameters * train_tokens,
        "train_bits_per_byte": float(np.mean(losses[-100:])) / math.log(2.0),
        "torch": torch.__version__,
    }


def _write(path: Path, record: dict[str, object], answers: dict[str, np.ndarray]) -> None:
    """Write all of a file or nothing of it."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, record=np.array(json.dumps(record)), **answers)
    partial = path.with_suffix(".partial")
    partial.write_bytes(buffer.getvalue())
    os.replace(partial, path)  # noqa: PTH105
