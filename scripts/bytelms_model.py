"""The language models of `bytelms`: decoder-only transformers over 96 characters, and their log-likelihoods."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

VOCABULARY = "\n" + "".join(chr(code) for code in range(32, 127))
CONTEXT = 128
_CODES = np.zeros(128, dtype=np.int64)
_CODES[[ord(character) for character in VOCABULARY]] = np.arange(len(VOCABULARY))


def encode(text: str) -> np.ndarray:
    """Tokens of a text, one a byte."""
    return _CODES[np.frombuffer(text.encode("ascii"), dtype=np.uint8)]


@dataclass(frozen=True)
class Size:
    """A size of model: label, width, layers, peak learning rate, stretches of text a step, training tokens."""

    label: str
    width: int
    n_layers: int
    learning_rate: float
    batch: int
    train_tokens: int


class Block(nn.Module):
    """Attention with rotary positions, then a perceptron; each reads normalised and adds to the stream."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head_width = min(32, max(16, width // 2))
        self.mix = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], hidden: Tensor) -> Tensor:
        """Return the stream after this block, (n, length, width); `hidden` is very negative where nothing is seen."""
        n, length, width = x.shape
        heads = self.mix(F.rms_norm(x, (width,))).view(n, length, 3, -1, self.head_width)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind()
        # Written out: on CPUs the fused attention's backward pass took more than half of all time.
        scores = _turned(query, turn) @ _turned(key, turn).transpose(-1, -2)
        seen = torch.softmax(scores * self.head_width**-0.5 + hidden, dim=-1).to(value.dtype) @ value
        x = x + self.out(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (width,)))).square())


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate pairs of channels by an angle that grows with the position."""
    cosine, sine = turn
    left, right = x.chunk(2, dim=-1)
    return torch.cat([left * cosine - right * sine, left * sine + right * cosine], dim=-1).to(x.dtype)


class LanguageModel(nn.Module):
    """A transformer whose embedding is also its output layer."""

    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(len(VOCABULARY), width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(n_layers))
        n_pairs = self.blocks[0].head_width // 2
        frequencies = 1.0 / 1000.0 ** (torch.arange(n_pairs) / n_pairs)
        self.register_buffer("frequencies", frequencies, persistent=False)
        self._start(n_layers)

    def _start(self, n_layers: int) -> None:
        nn.init.normal_(self.embedding.weight, std=0.1)
        for block in self.blocks:
            for layer in (block.mix, block.up):
                nn.init.normal_(layer.weight, std=self.width**-0.5)
            for layer in (block.out, block.down):
                nn.init.normal_(layer.weight, std=0.5 * (layer.in_features * n_layers) ** -0.5)

    @property
    def n_parameters(self) -> int:
        """All parameters; the embedding counts once though it is used twice."""
        return sum(one.numel() for one in self.parameters())

    @property
    def n_embedding(self) -> int:
        """Parameters of the embedding."""
        return self.embedding.weight.numel()

    def forward(self, tokens: Tensor, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """Return logits of the next token, (n, length, n_vocabulary)."""
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)[None]
        angles = positions[:, None, :, None] * self.frequencies
        if mask is None:
            mask = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool, device=tokens.device).tril()
        x = self.embedding(tokens) * self.width**0.5
        precision = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        turn = (angles.cos().to(precision), angles.sin().to(precision))
        hidden = torch.zeros(mask.shape, device=x.device, dtype=precision).masked_fill(~mask, -1e4)
        for block in self.blocks:
            x = block(x, turn, hidden)
        return F.rms_norm(x, (self.width,)) @ self.embedding.weight.T


# ---- log-likelihoods ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Items of similar length, each a prompt followed by all its choices; a choice sees the prompt and itself."""

    tokens: Tensor  # (n, length)
    positions: Tensor  # (n, length): as if each choice stood directly after the prompt
    mask: Tensor  # (n, 1, length, length): True where a token may look
    parent: Tensor  # (n, length): the place whose logits predict this token
    choice: Tensor  # (n, length): which choice a token belongs to, -1 for prompt and padding
    rows: np.ndarray  # (n,) which items these are


def batches(prompts: list[str], choices: list[tuple[str, ...]], *, size: int, device: str) -> list[Batch]:
    """Pack items into batches of about equal length, to be reused for every checkpoint."""
    packed = [_packed(prompt, options) for prompt, options in zip(prompts, choices, strict=True)]
    order = np.argsort([len(one[0]) for one in packed], kind="stable")
    return [
        _padded([packed[row] for row in rows], rows, device) for rows in np.split(order, range(size, len(order), size))
    ]


def _packed(prompt: str, options: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    start = encode("\n" + prompt)
    tokens, positions = [start], [np.arange(len(start))]
    parent, choice = [np.arange(len(start)) - 1], [np.full(len(start), -1)]
    at = len(start)
    for number, option in enumerate(options):
        codes = encode(option)
        tokens.append(codes)
        positions.append(len(start) + np.arange(len(codes)))
        parent.append(np.concatenate([[len(start) - 1], at + np.arange(len(codes) - 1)]))
        choice.append(np.full(len(codes), number))
        at += len(codes)
    return tuple(np.concatenate(one) for one in (tokens, positions, parent, choice))


def _padded(packed: list[tuple[np.ndarray, ...]], rows: np.ndarray, device: str) -> Batch:
    length = max(len(one[0]) for one in packed)
    columns = [
        torch.tensor(
            np.stack([np.pad(one[part], (0, length - len(one[part])), constant_values=fill) for one in packed])
        )
        for part, fill in ((0, 0), (1, 0), (2, 0), (3, -1))
    ]
    tokens, positions, parent, choice = (column.to(device) for column in columns)
    place = torch.arange(length, device=device)
    mask = (place[:, None] >= place) & ((choice[:, None, :] == -1) | (choice[:, None, :] == choice[:, :, None]))
    return Batch(tokens, positions, mask[:, None], parent.clamp(min=0), choice, rows)


@torch.inference_mode()
def token_log_likelihoods(model: LanguageModel, batch: Batch) -> np.ndarray:
    """Log-probability of each token given what it may see, (n, length) in nats."""
    logits = model(batch.tokens, batch.positions, batch.mask).float().log_softmax(-1)
    before = logits.gather(1, batch.parent[..., None].expand(-1, -1, logits.shape[-1]))
    return before.gather(-1, batch.tokens[..., None])[..., 0].double().cpu().numpy()


def choice_log_likelihoods(model: LanguageModel, packed: list[Batch], n_options: int) -> np.ndarray:
    """Log-likelihood of each choice after its prompt, (n_items, n_options) in nats; NaN where there is none."""
    n_items = sum(len(batch.rows) for batch in packed)
    result = np.full((n_items, n_options), np.nan)
    for batch in packed:
        terms, choice = token_log_likelihoods(model, batch), batch.choice.cpu().numpy()
        for number in range(n_options):
            mine = choice == number
            result[batch.rows, number] = np.where(mine.any(axis=1), (terms * mine).sum(axis=1), np.nan)
    return result


def sampled_counts(
    model: LanguageModel, packed: list[Batch], n_samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Answer each item `n_samples` times at temperature 1; return right answers and log-likelihoods, (n_items,).

    Samples are drawn token by token. One that has left the right answer cannot come back to it and is not
    continued, so those that are left all stand at the same place and their next tokens are drawn together.
    """
    n_items = sum(len(batch.rows) for batch in packed)
    counts, totals = np.zeros(n_items, dtype=np.int64), np.zeros(n_items)
    for batch in packed:
        terms, is_answer = token_log_likelihoods(model, batch), batch.choice.cpu().numpy() == 0
        alive = np.full(len(batch.rows), n_samples)
        for place in range(terms.shape[1]):
            chance = np.where(is_answer[:, place], np.exp(np.minimum(terms[:, place], 0.0)), 1.0)
            alive = rng.binomial(alive, chance)
        counts[batch.rows], totals[batch.rows] = alive, (terms * is_answer).sum(axis=1)
    return counts, totals
