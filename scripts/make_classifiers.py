"""Make the built-in data set `classifiers`: real responses of scikit-learn classifiers to test items.

Every classifier (family x hyperparameters x training share) answers every item of four scenarios:
digits (clean, and disturbed by noise, rotation or occlusion), breast cancer, wine and iris. An item is
answered by a classifier that was trained on the other folds only, so no item was ever seen in training.

    .venv/bin/python scripts/make_classifiers.py

The responses follow from the fixed seeds (with the versions in constraints.txt); the costs are CPU
seconds of the machine it ran on, so they come out a little different each time.
"""

import os

if __name__ == "__main__":  # before numpy loads: one core, and sums in one order
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from classifier_families import Classifier, Training, classifiers
from scipy import ndimage
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

SEED = 20190119
N_FOLDS = 3
N_CLEAN, N_DISTURBED = 500, 700  # items of digits: undisturbed, and of each of three disturbances
FEWEST_PER_CLASS = 3  # training examples a class keeps however small the training share
PROBABILITY_STEPS = 1000  # probabilities are kept as whole thousandths
FOLDER = Path(__file__).resolve().parent.parent / "src" / "itembank" / "readers" / "builtin_files"


# ---- items ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DataSet:
    """One scenario: the examples classifiers learn from, and the items made of them."""

    name: str
    features: np.ndarray  # (n_examples, n_features)
    classes: np.ndarray  # (n_examples,)
    fold: np.ndarray  # (n_examples,)
    item_features: np.ndarray  # (n_items, n_features)
    item_example: np.ndarray  # (n_items,) which example an item is made of
    items: pl.DataFrame
    is_image: bool = False

    @property
    def unit(self) -> float:
        """Pixels run from 0 to 16; this makes their spread about one, like that of standardised features."""
        return 6.0 if self.is_image else 1.0


def tabular(name: str, load: Callable[[], Any]) -> DataSet:
    content = load()
    features, classes = content.data, content.target
    example = np.arange(len(classes))
    names = [str(content.target_names[k]) for k in classes]
    items = item_table(name, [None] * len(classes), example, names, np.zeros(len(classes)))
    return DataSet(name, features, classes, folds(features, classes), features, example, items)


def digits(rng: np.random.Generator) -> DataSet:
    """Every image is used once, and those of the first two subscenarios some a second time, disturbed."""
    content = datasets.load_digits()
    features, classes = content.data, content.target
    once = rng.permutation(len(classes))
    n_first_two = N_CLEAN + N_DISTURBED
    n_again = N_CLEAN + 3 * N_DISTURBED - len(once)
    example = np.concatenate([once, rng.permutation(once[:n_first_two])[:n_again]])
    kinds = np.repeat(["clean", "noise", "rotation", "occlusion"], [N_CLEAN] + [N_DISTURBED] * 3)
    changed = [disturb(features[i].reshape(8, 8), kind, rng) for i, kind in zip(example, kinds, strict=True)]
    item_features = np.array([image.ravel() for image, _ in changed])
    strength = np.array([size for _, size in changed])
    items = item_table("digits", kinds.tolist(), example, [str(k) for k in classes[example]], strength)
    return DataSet("digits", features, classes, folds(features, classes), item_features, example, items, is_image=True)


def disturb(image: np.ndarray, kind: str, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return the disturbed image and how strongly: noise sd, degrees, or share of the image covered."""
    if kind == "noise":
        size = rng.uniform(1.0, 7.0)
        return np.clip(image + rng.normal(0.0, size, image.shape), 0.0, 16.0), size
    if kind == "rotation":
        angle = rng.uniform(5.0, 45.0)
        turned = ndimage.rotate(image, rng.choice([-1.0, 1.0]) * angle, reshape=False, order=1)
        return np.clip(turned, 0.0, 16.0), angle
    if kind == "occlusion":
        side = int(rng.integers(2, 6))
        row, column = rng.integers(0, 9 - side, size=2)
        covered = image.copy()
        covered[row : row + side, column : column + side] = rng.choice([0.0, 16.0])
        return covered, side * side / 64.0
    return image, 0.0


def folds(features: np.ndarray, classes: np.ndarray) -> np.ndarray:
    fold = np.empty(len(classes), dtype=np.int64)
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED)
    for number, (_, test) in enumerate(splitter.split(features, classes)):
        fold[test] = number
    return fold


def item_table(
    scenario: str, subscenarios: list[str | None], example: np.ndarray, names: list[str], strength: np.ndarray
) -> pl.DataFrame:
    ids = [
        "/".join([scenario, *([kind] if kind else []), str(number)])
        for kind, number in zip(subscenarios, example, strict=True)
    ]
    return pl.DataFrame(
        {
            "item_id": ids,
            "scenario": [scenario] * len(ids),
            "subscenario": pl.Series(subscenarios, dtype=pl.String),
            "true_class": names,
            "n_options": pl.Series([len(set(names))] * len(ids), dtype=pl.Int64),
            "example": example,
            "disturbance": np.round(strength, 3),
        }
    )


# ---- training and answering ------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """What one classifier did on one data set."""

    correct: np.ndarray  # (n_items,)
    probability: np.ndarray  # (n_items,) of the right class
    training_seconds: float
    prediction_seconds: float  # per item
    n_training: int


def answer(classifier: Classifier, data: DataSet) -> Answers:
    """Cross-predict: each fold's items by a classifier trained on the other folds."""
    correct = np.zeros(len(data.item_example), dtype=bool)
    probability = np.zeros(len(data.item_example))
    training, prediction, n_training = 0.0, 0.0, 0
    for number in range(N_FOLDS):
        seed = zlib.crc32(f"{classifier.model_id}|{data.name}|{number}".encode()) % 2**31
        rng = np.random.default_rng([SEED, seed])
        features, classes = training_data(classifier, data, number, rng)
        columns = chosen_features(classifier, data, rng)
        here = np.flatnonzero(data.fold[data.item_example] == number)
        estimator = classifier.build(Training(len(classes), data.is_image, seed))
        training += seconds(lambda e=estimator, x=features / data.unit, y=classes, c=columns: e.fit(x[:, c], y))
        asked, truth = data.item_features[here][:, columns] / data.unit, data.classes[data.item_example[here]]
        prediction += min(seconds(lambda e=estimator, x=asked: e.predict(x)) for _ in range(3))
        correct[here] = estimator.predict(asked) == truth
        probability[here] = class_probabilities(estimator, asked)[np.arange(len(here)), truth]
        n_training += len(classes)
    return Answers(correct, probability, training / N_FOLDS, prediction / len(correct), n_training // N_FOLDS)


def training_data(
    classifier: Classifier, data: DataSet, number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Take the share of each class outside the fold, then change it as the classifier says."""
    rows = []
    for k in np.unique(data.classes):
        members = rng.permutation(np.flatnonzero((data.fold != number) & (data.classes == k)))
        rows.append(members[: max(FEWEST_PER_CLASS, round(classifier.share * len(members)))])
    chosen = np.concatenate(rows)
    features, classes = data.features[chosen], data.classes[chosen]
    wrong = rng.random(len(classes)) < classifier.changes.get("mislabelled", 0.0)
    n_classes = len(np.unique(data.classes))
    classes = np.where(wrong, (classes + rng.integers(1, n_classes, len(classes))) % n_classes, classes)
    kind = classifier.changes.get("augment")
    if kind is None or not (data.is_image or kind == "noise"):
        return features, classes
    if data.is_image:
        changed = np.array([disturb(row.reshape(8, 8), kind, rng)[0].ravel() for row in features])
    else:
        changed = features + 0.5 * features.std(axis=0) * rng.normal(size=features.shape)
    return np.concatenate([features, changed]), np.concatenate([classes, classes])


def chosen_features(classifier: Classifier, data: DataSet, rng: np.random.Generator) -> np.ndarray:
    n_features = data.features.shape[1]
    n_kept = max(1, round(classifier.changes.get("features", 1.0) * n_features))
    return np.sort(rng.permutation(n_features)[:n_kept])


def class_probabilities(estimator: Any, features: np.ndarray) -> np.ndarray:
    """Predicted probabilities, or the softmax of the decision values of classifiers that have none."""
    if hasattr(estimator, "predict_proba"):
        result = np.nan_to_num(estimator.predict_proba(features), nan=0.0)
    else:
        decision = estimator.decision_function(features)
        if decision.ndim == 1:
            decision = np.column_stack([-0.5 * decision, 0.5 * decision])
        powers = np.exp(decision - decision.max(axis=1, keepdims=True))
        result = powers / powers.sum(axis=1, keepdims=True)
    return np.clip(result, 0.0, 1.0)


def seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


# ---- files and summary -----------------------------------------------------------------------------


def write(items: pl.DataFrame, models: pl.DataFrame, correct: np.ndarray, probability: np.ndarray) -> None:
    """Write items, models, and one column of answers a model, rows in the order of the items."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    ids = models["model_id"].to_list()
    steps = np.round(probability * PROBABILITY_STEPS).astype(np.uint16)
    tables = {
        "items": items,
        "models": models,
        "correct": pl.DataFrame(dict(zip(ids, correct, strict=True))),
        "probability": pl.DataFrame(dict(zip(ids, steps, strict=True))),
    }
    for name, table in tables.items():
        path = FOLDER / f"classifiers_{name}.parquet"
        table.write_parquet(path, compression="zstd", compression_level=22, statistics=False)
        print(f"{path.name}: {table.height} x {table.width}, {path.stat().st_size:,} bytes")


def model_table(models: list[Classifier], sets: list[DataSet], answers: list[list[Answers]]) -> pl.DataFrame:
    columns: dict[str, Any] = {
        "model_id": [model.model_id for model in models],
        "family": [model.family for model in models],
        "hyperparameters": [model.hyperparameters for model in models],
        "training_share": [model.share for model in models],
    }
    for j, data in enumerate(sets):
        columns[f"{data.name}_n_training"] = [row[j].n_training for row in answers]
        columns[f"{data.name}_training_seconds"] = [rounded(row[j].training_seconds) for row in answers]
        columns[f"{data.name}_prediction_seconds"] = [rounded(row[j].prediction_seconds) for row in answers]
    return pl.DataFrame(columns)


def rounded(value: float) -> float:
    return float(f"{value:.2g}")


def summary(items: pl.DataFrame, correct: np.ndarray, probability: np.ndarray) -> None:
    """Print what shows whether the data are of use."""
    values = correct.astype(float)
    groups = (items["scenario"] + "/" + items["subscenario"].fill_null("")).to_numpy()
    scores = values.mean(axis=1)
    print(f"{len(values)} models x {values.shape[1]} items; score 5/25/50/75/95 %:", end=" ")
    print(np.round(np.percentile(scores, [5, 25, 50, 75, 95]), 3))
    rest = scores[:, None] * values.shape[1] - values
    centred, others = values - values.mean(0), rest - rest.mean(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = (centred * others).sum(0) / np.sqrt((centred**2).sum(0) * (others**2).sum(0))
    for group in dict.fromkeys(groups):
        here = groups == group
        part = values[:, here].mean(axis=1)
        difficulty = values[:, here].mean(axis=0)
        print(
            f"  {group:20s} {here.sum():5d} items; model scores sd {part.std():.3f}, 10-90 %"
            f" {np.percentile(part, 10):.2f}-{np.percentile(part, 90):.2f}; item means 10-90 %"
            f" {np.percentile(difficulty, 10):.2f}-{np.percentile(difficulty, 90):.2f};"
            f" right by none {np.sum(difficulty == 0)}, by all {np.sum(difficulty == 1)};"
            f" item-rest r median {np.nanmedian(total[here]):.2f}, negative {np.nanmean(total[here] < 0):.3f};"
            f" mean probability {probability[:, here].mean():.3f}"
        )
    kept = values[:, (values.std(0) > 0)]
    standard = (kept - kept.mean(0)) / kept.std(0)
    spectrum = np.linalg.eigvalsh(standard @ standard.T / standard.shape[1])[::-1]
    print("  share of variance of the leading components:", np.round(spectrum[:8] / spectrum.sum(), 3))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the built-in data set 'classifiers'.")
    parser.add_argument("--every", type=int, default=1, help="Try every N-th classifier, write nothing.")
    every = parser.parse_args().every
    warnings.simplefilter("ignore")  # classifiers stopped early on purpose say so, hundreds of times
    start = time.process_time()
    sets = [
        digits(np.random.default_rng(SEED)),
        tabular("breast_cancer", datasets.load_breast_cancer),
        tabular("wine", datasets.load_wine),
        tabular("iris", datasets.load_iris),
    ]
    models = classifiers()[::every]
    answers = []
    for number, model in enumerate(models, start=1):
        began = time.process_time()
        answers.append([answer(model, data) for data in sets])
        scores = " ".join(f"{part.correct.mean():.3f}" for part in answers[-1])
        spent = time.process_time() - began
        print(f"{number}/{len(models)} {spent:5.1f} s  {scores}  {model.model_id}", flush=True)
    correct = np.array([np.concatenate([part.correct for part in row]) for row in answers])
    probability = np.array([np.concatenate([part.probability for part in row]) for row in answers])
    items = pl.concat([data.items for data in sets])
    summary(items, correct, probability)
    if every == 1:
        write(items, model_table(models, sets, answers), correct, probability)
    print(f"{time.process_time() - start:.0f} CPU seconds")


if __name__ == "__main__":
    main()
