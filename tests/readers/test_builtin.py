"""The built-in data: what the issue promises of it, and that files and script belong together."""

import importlib
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from itembank.errors import DataError, ParameterError
from itembank.readers.builtin import IN_CHECKOUT_ONLY, from_differences, load_builtin, read_builtin_numbers
from itembank.responses.responses import ResponseMatrix
from tests.scripts.bytelms import load

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = REPOSITORY / "src" / "itembank" / "readers" / "builtin_files"


@pytest.fixture(scope="module")
def correct() -> ResponseMatrix:
    return load_builtin("classifiers")


@pytest.fixture(scope="module")
def probability() -> ResponseMatrix:
    return load_builtin("classifiers", response="probability")


def test_responses_are_complete_and_binary(correct):
    assert correct.is_complete
    assert correct.is_binary


def test_no_two_models_answer_alike(correct):
    assert len(np.unique(correct.responses, axis=0)) == correct.n_models


def test_both_responses_are_of_the_same_models_and_items(correct, probability):
    assert correct.models.equals(probability.models)
    assert correct.items.equals(probability.items)


def test_probability_above_one_half_means_correct(correct, probability):
    # Nearest centroid predicts by distance and has its own kind of probability.
    rows = np.flatnonzero(correct.models["family"].to_numpy() != "centroid")
    right, share = correct.responses[rows], probability.responses[rows]
    chance = 1.0 / correct.items["n_options"].to_numpy()
    assert not np.any((share > 0.5005) & (right == 0.0))  # thousandths, and exactly one half is a tie
    assert not np.any((share < chance - 0.0005) & (right == 1.0))


def test_dummy_that_names_the_commonest_class_is_right_on_that_class(correct):
    row = correct.responses[correct.model_indices(["dummy/strategy=prior/share=1"])[0]]
    items = correct.items
    for scenario, commonest in (("breast_cancer", "benign"), ("wine", "class_1")):
        inside = (items["scenario"] == scenario).to_numpy()
        expected = (items["true_class"] == commonest).to_numpy()
        np.testing.assert_array_equal(row[inside], expected[inside])


@pytest.mark.parametrize(
    ("scenario", "load"),
    [
        ("digits", datasets.load_digits),
        ("breast_cancer", datasets.load_breast_cancer),
        ("wine", datasets.load_wine),
        ("iris", datasets.load_iris),
    ],
)
def test_true_classes_are_those_of_scikit_learn(correct, scenario, load):
    content = load()
    items = correct.items.filter(scenario=scenario)
    expected = content.target_names[content.target[items["example"].to_numpy()]]
    assert items["true_class"].to_list() == [str(name) for name in expected]


def test_every_prediction_has_a_cost(correct):
    assert np.all(correct.costs["seconds"] > 0.0)
    inside = (correct.items["scenario"] == "wine").to_numpy()
    expected = correct.models["wine_prediction_seconds"].to_numpy()
    np.testing.assert_array_equal(correct.costs["seconds"][:, inside][:, 0], expected)


def test_data_can_be_calibrated(correct):
    """Abilities are spread, items tell models apart, and more than one dimension is there."""
    scores = correct.responses.mean(axis=1)
    assert np.percentile(scores, 90) - np.percentile(scores, 10) > 0.2
    rest = scores[:, None] - correct.responses / correct.n_items
    varied = correct.responses.std(axis=0) > 0.0
    assert varied.mean() > 0.99
    left, right = correct.responses[:, varied], rest[:, varied]
    left, right = left - left.mean(axis=0), right - right.mean(axis=0)
    item_rest = (left * right).sum(axis=0) / np.sqrt((left**2).sum(axis=0) * (right**2).sum(axis=0))
    assert np.mean(item_rest > 0.0) > 0.85


def test_files_hold_what_the_script_makes(correct, probability, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    script = importlib.import_module("make_classifiers")
    data = script.tabular("wine", datasets.load_wine)
    name = "knn/n_neighbors=5/share=0.3"
    classifier = next(one for one in script.classifiers() if one.model_id == name)
    answers = script.answer(classifier, data)
    inside = (correct.items["scenario"] == "wine").to_numpy()
    row = correct.model_indices([name])[0]
    np.testing.assert_array_equal(correct.responses[row, inside], answers.correct)
    np.testing.assert_allclose(probability.responses[row, inside], answers.probability, atol=0.0005 + 1e-9)


@pytest.mark.parametrize(
    ("name", "response"), [("classifier", "correct"), ("classifiers", "score"), ("bytelms-samples", "probability")]
)
def test_unknown_names_are_refused(name, response):
    with pytest.raises(ParameterError, match="must be one of"):
        load_builtin(name, response=response)


def test_files_that_the_wheel_leaves_out_are_said_to_be(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    with pytest.raises(DataError, match=r"classifiers_models.parquet must be .* the wheel leaves it out"):
        load_builtin("classifiers")
    with pytest.raises(DataError, match=r"bytelms_samples_exact.xz must be"):
        read_builtin_numbers("bytelms", "samples_exact", "<f4", 280)


def test_a_python_without_lzma_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(DataError, match="built without it"):
        load_builtin("bytelms")


def test_the_wheel_leaves_out_what_the_package_says():
    wheel = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = [file.name for file in FILES.iterdir()]
    left_out = {name for name in files if any(fnmatch(name, pattern) for pattern in wheel["exclude"])}
    assert left_out == {name for name in files if name.startswith(IN_CHECKOUT_ONLY)}


def test_numbers_come_back_from_their_bytes(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    (tmp_path / "builtin_files").mkdir()
    log_likelihoods = rng.integers(-3000, 3000, (6, 7)).astype(np.int16)
    choices = ["no", "b", "yes", "b", "no", "a", "no"]
    packing, exact = load("bytelms_packing"), rng.normal(size=(6, 4))
    kept = {"choices": (packing.as_differences(log_likelihoods, 3, choices), "<i2"), "exact": (exact, "<f4")}
    for part, (numbers, dtype) in kept.items():
        (tmp_path / "builtin_files" / f"toy_{part}.xz").write_bytes(packing.packed_numbers(numbers, dtype))
    read = read_builtin_numbers("toy", "choices", "<i2", 3)
    np.testing.assert_array_equal(from_differences(read, 3, choices), log_likelihoods)
    np.testing.assert_array_equal(read_builtin_numbers("toy", "exact", "<f4", 6), exact.astype("<f4"))
