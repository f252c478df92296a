"""Make the built-in data set `bytelms`: small byte-level language models with known training compute.

Every mixture of training text x every size of model is trained once; five checkpoints of each run answer the
multiple-choice items and the items answered by sampling. Files that are there already are not made again, so
the same command goes on where it was stopped; all mixtures of a size are done before the next size.

    python scripts/make_bytelms.py --out FOLDER [--device cuda]

It needs PyTorch (`pip install -e '.[suite]'`) and takes about 40 CPU minutes on one core. The texts and
items follow from the seeds and the version of Python (3.11.7 here); log-likelihoods differ in their last digits
between machines and versions of PyTorch.
"""

import os

if __name__ == "__main__":  # before numpy and torch load
    import sys

    KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "1000000000", "MALLOC_TRIM_THRESHOLD_": "10000000000"}
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ:  # glibc gives large arrays back at once: a quarter of all time
        os.environ.update(KEEP_MEMORY, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606

import argparse
import time
import zlib
from pathlib import Path

import torch
from bytelms_files import write_builtin
from bytelms_model import CONTEXT, Size, batches, encode
from bytelms_sources import Sources, read_sources
from bytelms_tasks import N_OPTIONS, Suite, make_suite
from bytelms_text import Mixture, mixtures, training_text
from bytelms_training import SHARES, Evaluation, Run, train

SEED = 20260106
SIZES = (
    Size("11k", 16, 3, 0.02, 8, 450_000),
    Size("28k", 32, 2, 0.02, 8, 500_000),
    Size("88k", 48, 3, 0.015, 8, 550_000),
    Size("203k", 64, 4, 0.01, 8, 600_000),
    Size("452k", 96, 4, 0.01, 8, 650_000),
    Size("1.2M", 128, 6, 0.01, 8, 850_000),
    Size("2.7M", 192, 6, 0.01, 8, 1_000_000),
)
CHUNK = 750_256  # bytes of text that are drawn and shuffled together
N_VALIDATION = 160  # stretches of text


def main() -> None:
    """Train what is missing, then write the files of the package."""
    arguments = _arguments()
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    sources = read_sources()
    suite = make_suite(sources)
    if not arguments.no_training:
        texts = {mixture.name: make_text(mixture, suite, sources) for mixture in mixtures()}
        _train_all(suite, texts, folder, arguments)
    if arguments.only is None:
        write_builtin(folder, suite, [run for run, _ in _runs(None)], Path(arguments.files))


def make_text(mixture: Mixture, suite: Suite, sources: Sources) -> str:
    """Return the text all sizes of a mixture are trained on; larger ones read more of it."""
    n_bytes = max(size.train_tokens for size in SIZES) + 2 * CONTEXT
    known = {"held_out": suite.held_out, "sources": sources}
    if mixture.repeat_bytes:
        return training_text(mixture, n_bytes=n_bytes, seed=_seed(mixture.name), **known)
    seeds = [_seed(mixture.name), *(_seed(mixture.name, number) for number in range(1, -(-n_bytes // CHUNK)))]
    return "".join(training_text(mixture, n_bytes=CHUNK, seed=seed, **known) for seed in seeds)


def _seed(*names: object) -> int:
    return zlib.crc32(" ".join(str(name) for name in (SEED, *names)).encode())


def _train_all(suite: Suite, texts: dict[str, str], folder: Path, arguments: argparse.Namespace) -> None:
    check_contamination(suite, texts)
    tokens = {name: encode(text) for name, text in texts.items()}
    evaluation = _evaluation(suite, arguments.device)
    for run, mixture in _runs(arguments.only):
        if all(run.file(folder, share).exists() for share in SHARES):
            continue
        started, cpu = time.time(), time.process_time()
        train(run, tokens[mixture.name], evaluation, folder=folder, device=arguments.device)
        print(f"{run.name}: {time.time() - started:.0f} s, {time.process_time() - cpu:.0f} CPU-s", flush=True)


def _evaluation(suite: Suite, device: str) -> Evaluation:
    packed = [
        batches([one.prompt for one in items], [one.choices for one in items], size=64, device=device)
        for items in (suite.multiple_choice, suite.generative)
    ]
    balanced = Mixture("validation")
    text = training_text(
        balanced, n_bytes=N_VALIDATION * CONTEXT + 1, held_out=suite.held_out, sources=read_sources(), seed=SEED
    )
    codes = torch.from_numpy(encode(text)[: N_VALIDATION * CONTEXT + 1])
    validation = codes.unfold(0, CONTEXT + 1, CONTEXT).to(device)
    return Evaluation(packed[0], packed[1], N_OPTIONS, validation)


def _runs(only: str | None) -> list[tuple[Run, Mixture]]:
    """All runs, the smallest sizes first."""
    return [
        (Run(mixture.name, size, _seed(mixture.name, size.label)), mixture)
        for size in SIZES
        for mixture in mixtures()
        if only is None or f"{mixture.name}/{size.label}" in only.split(",")
    ]


def check_contamination(suite: Suite, texts: dict[str, str]) -> None:
    """Stop when a test item with its right answer stands in a training text."""
    found = [
        f"{item.item_id} in {name}"
        for name, text in texts.items()
        for item in suite.multiple_choice + suite.generative
        if _whole(item.prompt, item.choices[item.correct], item.scenario) in text
    ]
    if found:
        raise SystemExit(f"{len(found)} test items stand in the training text: {found[:5]}")


def _whole(prompt: str, answer: str, scenario: str) -> str:
    """Return what would stand in the text: a line's start, or for real text any place."""
    return prompt + answer if scenario in ("code", "prose") else "\n" + prompt + answer


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, help="folder of the checkpoints' answers")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument(
        "--only", help="runs such as balanced/11k,code/28k, to try things out; writes no files of the package"
    )
    parser.add_argument("--files", default=_package_files(), help="folder of the files of the package")
    parser.add_argument("--no-training", action="store_true", help="write the files from what is there")
    return parser.parse_args()


def _package_files() -> str:
    return str(Path(__file__).resolve().parent.parent / "src" / "itembank" / "readers" / "builtin_files")


if __name__ == "__main__":
    main()
