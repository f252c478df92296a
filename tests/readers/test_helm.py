"""Run folders of HELM; a real run tells its own averages."""

import json

import numpy as np
import pytest

from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from tests.readers.reading import put, read, refuses, warns

HELM = ReadingSpec(format="helm")


def entry(instance, *, trial=0, perturbation=None, split="test", **values):
    stats = [{"name": {"name": name, "split": split}, "count": 1, "mean": value} for name, value in values.items()]
    perturbed = {} if perturbation is None else {"perturbation": {"name": perturbation}}
    return {"instance_id": instance, "train_trial_index": trial, "stats": stats, **perturbed}


def write_run(folder, name, entries, *, model="org/a", questions=None, spec=True):
    place = folder / "runs" / "v1" / name.replace("/", "_")
    place.mkdir(parents=True)
    put(place / "per_instance_stats.json", entries)
    if spec:
        put(place / "run_spec.json", {"name": name, "adapter_spec": {"model": model}})
    if questions:
        instances = [{"id": key, "input": {"text": text}, "references": []} for key, text in questions.items()]
        put(
            place / "scenario_state.json",
            {"request_states": [{"instance": one, "train_trial_index": 0} for one in instances]},
        )
    return place


@pytest.mark.parametrize("metric", ["exact_match", "prefix_exact_match", "quasi_exact_match@5"])
def test_means_of_a_real_run_are_those_that_helm_reports(shared_dir, metric):
    folder = shared_dir / "logs" / "helm"
    matrix = read_responses(folder, metric=metric)
    (stats,) = folder.rglob("stats.json")
    reported = {one["name"]["name"]: one.get("mean") for one in json.loads(stats.read_text())}
    assert matrix.responses.mean() == pytest.approx(reported[metric], abs=1e-12)
    assert matrix.costs["input_tokens"].mean() == pytest.approx(reported["num_prompt_tokens"], abs=1e-9)
    assert matrix.costs["output_tokens"].mean() == pytest.approx(reported["num_output_tokens"], abs=1e-9)
    assert matrix.costs["seconds"].mean() == pytest.approx(reported["inference_runtime"], abs=1e-9)
    assert matrix.model_ids == ["anthropic/claude-3-haiku-20240307"]
    assert matrix.items["scenario"].unique().to_list() == ["bbq"]
    assert matrix.items["content_hash"].n_unique() == matrix.n_items == 50


def test_runs_of_models_meet_on_items_and_damaged_ones_may_be_left_out(tmp_path):
    for model in ("org/a", "org/b"):
        name = f"mmlu:subject=law,method=joint,model={model.replace('/', '_')}"
        right = float(model == "org/a")
        write_run(tmp_path, name, [entry("id1", exact_match=right), entry("id2", exact_match=1.0)], model=model)
    matrix = read(tmp_path)
    assert matrix.item_ids == ["mmlu:subject=law,method=joint/id1", "mmlu:subject=law,method=joint/id2"]
    assert dict(zip(matrix.model_ids, matrix.responses.tolist(), strict=True)) == {"org/a": [1, 1], "org/b": [0, 1]}
    assert matrix.items["subscenario"].to_list() == ["mmlu:subject=law,method=joint"] * 2
    for model in ("a", "b"):
        place = write_run(tmp_path / "b", f"x:model={model}", [entry("i", exact_match=1.0)], model=model)
    (place / "run_spec.json").write_text('{"name": ')
    refuses(r"run_spec.json: .* cannot be read(.|\n)*skip_unusable=True", read, tmp_path / "b")
    assert warns(r"left out: .*run_spec\.json", read, tmp_path / "b", skip_unusable=True).model_ids == ["a"]


def test_perturbed_instances_and_other_splits_are_left_out(tmp_path):
    entries = [
        entry("id1", exact_match=1.0),
        entry("id1", exact_match=0.0, perturbation="typos"),
        entry("id1", exact_match=0.0, trial=1),
        entry("id2", exact_match=1.0),
    ]
    write_run(tmp_path, "boolq:model=m", entries)
    warns("1 answer to perturbed", refuses, "repeated attempts .several seeds.", read_responses, tmp_path, spec=HELM)
    matrix = warns("perturbed", read, tmp_path, format="helm", repeats="count")
    assert (matrix.responses.tolist(), matrix.n_trials.tolist()) == ([[0.5, 1.0]], [[2, 1]])
    write_run(tmp_path / "b", "x:model=m", [entry("i1", exact_match=1.0), entry("i2", exact_match=0.0, split="valid")])
    assert warns("1 answer of the split 'valid'", read, tmp_path / "b").item_ids == ["x/i1"]
    write_run(tmp_path / "c", "y:model=m", [entry("i2", exact_match=0.0, split="valid")])
    assert read(tmp_path / "c").item_ids == ["y/i2"]


def test_what_a_run_does_not_tell_or_tells_otherwise(tmp_path):
    write_run(tmp_path, "boolq:model=m", [entry("id1", exact_match=None), entry("id2", exact_match=1.0)])
    matrix = warns("lost answers count as missing", read, tmp_path, format="helm")
    np.testing.assert_array_equal(matrix.responses, [[np.nan, 1.0]])
    for model, text in (("a", "old"), ("b", "new")):
        write_run(
            tmp_path / "b", f"x:model={model}", [entry("id1", exact_match=1.0)], model=model, questions={"id1": text}
        )
    refuses(r"same content \(question and reference\).*'x/id1' for 'a' and 'b'", read, tmp_path / "b")
    write_run(tmp_path / "c", "boolq:model=m", [{"id": 1}])
    refuses("every object must have an instance_id", read_responses, tmp_path / "c", spec=HELM)
    place = write_run(tmp_path / "d", "boolq:model=org_m,k=1", [entry("id1", exact_match=1.0)], spec=False)
    matrix = read(place / "per_instance_stats.json")
    assert (matrix.model_ids, matrix.item_ids) == (["org_m"], ["boolq:k=1/id1"])
    nameless = write_run(tmp_path / "d", "boolq", [entry("id1", exact_match=1.0)], spec=False)
    refuses(r"the model is unknown: there is no run_spec.json", read_responses, nameless, spec=HELM)
