import json
from dataclasses import replace

import polars as pl
import pytest

from itembank.errors import ConvergenceWarning, DataError, DataWarning, ParameterError
from itembank.files.documents import with_digest
from itembank_studies import comparison_study
from itembank_studies.comparison_study import COLUMNS
from itembank_studies.results import StudyResult
from itembank_studies.run import run_study
from itembank_studies.split_specs import Ahead, KFold, RandomShare
from itembank_studies.study_specs import CalibrationChoice, CostBudget, DataSpec
from tests.studies.simulated import make_responses, make_spec, numbers

RESPONSES = make_responses()
SPEC = make_spec(splits=(RandomShare(0.25), KFold(2)), n_items=(6,))


pytestmark = pytest.mark.usefixtures("few_folds")


@pytest.fixture(scope="module")
def finished(few_folds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "study"
    return folder, run_study(SPEC, folder, responses=RESPONSES)


def test_a_study_is_what_its_folder_says_and_is_not_run_again(finished, monkeypatch):
    folder, result = finished
    loaded = StudyResult.load(folder)
    assert loaded.estimates.equals(result.estimates, null_equal=True)
    assert loaded.summary.equals(result.summary, null_equal=True)
    assert loaded.manifest == result.manifest
    assert tuple(result.estimates.columns) == COLUMNS
    assert result.estimates.select("split", "repeat", "fold").unique().height == 2 * (1 + 2)
    assert (result.manifest.kind, result.manifest.n_folds, result.manifest.seed) == ("comparison", 6, 3)
    assert (result.level, result.budget_unit) == (0.95, "")
    folder, result = finished
    monkeypatch.setattr(comparison_study, "run_fold", None)
    assert run_study(SPEC, folder, responses=RESPONSES).estimates.equals(result.estimates, null_equal=True)


def test_the_numbers_do_not_depend_on_the_number_of_processes(all_folds, tmp_path):
    spec = make_spec(splits=SPEC.splits[1:], selectors=("random",), n_items=SPEC.n_items, repeats=1)
    alone, parallel = (
        run_study(spec, tmp_path / f"study-{n_jobs}", responses=RESPONSES, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    assert numbers(parallel.estimates).equals(numbers(alone.estimates))


def test_another_seed_gives_other_numbers(finished, tmp_path):
    result = finished[1]
    other = run_study(make_spec(n_items=SPEC.n_items, repeats=1, seed=4), tmp_path / "study", responses=RESPONSES)
    first = result.estimates.filter(split=other.estimates["split"][0], repeat=0)
    assert other.estimates.height == first.height
    assert not other.estimates["estimate"].equals(first["estimate"])


def test_folders_of_other_data_or_versions_are_refused_and_what_is_no_study_is_left_alone(finished, tmp_path):
    folder, _ = finished
    costs = {"output_tokens": RESPONSES.costs["output_tokens"] + 1.0}
    for other in (make_responses(seed=1), replace(RESPONSES, costs=costs)):
        with pytest.raises(DataError, match="the responses, costs, dates or groups changed"):
            run_study(SPEC, folder, responses=other)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["versions"]["numpy"] = "1.0"
    (tmp_path / "manifest.json").write_text(json.dumps(with_digest(manifest)))
    with pytest.raises(DataError, match=r"begun with other versions.*'numpy 1\.0 -> "):
        run_study(SPEC, tmp_path, responses=RESPONSES)
    folder, _ = finished
    with pytest.raises(DataError, match="is a study already"):
        run_study(SPEC, folder, responses=RESPONSES, resume=False)
    (tmp_path / "manifest.json").unlink()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="is not a study"):
        run_study(SPEC, tmp_path, responses=RESPONSES)
    with pytest.raises(DataError, match=r"has no manifest\.json"):
        StudyResult.load(tmp_path)
    for text, said in (("{}", "schema_version of a study must be 1"), ("{", "cannot be read as a study's manifest")):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(DataError, match=said):
            StudyResult.load(tmp_path)


def test_nothing_is_written_when_the_study_cannot_be(tmp_path):
    with pytest.raises(DataError, match="column 'day'"):
        run_study(make_spec(splits=(Ahead("day"),)), tmp_path / "study", responses=RESPONSES)
    with pytest.raises(DataError, match="cost 'cost_usd'"):
        budget = CostBudget("cost_usd", (1.0,))
        run_study(make_spec(n_items=(), budget=budget), tmp_path / "study", responses=RESPONSES)
    with pytest.raises(ParameterError, match=r"from 2 \(one for each scenario\) to 60 \(all\), got '1', '61'"):
        run_study(make_spec(n_items=(1, 30, 61)), tmp_path / "study", responses=RESPONSES)
    with pytest.raises(ParameterError, match="n_jobs must be -1"):
        run_study(SPEC, tmp_path / "study", responses=RESPONSES, n_jobs=0)
    with pytest.raises(ParameterError, match="names no data"):
        run_study(SPEC, tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_the_data_a_study_names_are_read(tmp_path):
    ids = {"model_id": [name for name in RESPONSES.model_ids for _ in range(60)], "item_id": RESPONSES.item_ids * 40}
    pl.DataFrame({**ids, "response": RESPONSES.responses.ravel()}).write_csv(tmp_path / "r.csv")
    spec = make_spec(data=DataSpec(responses=("r.csv",), folder=tmp_path), repeats=1, n_items=(6,))
    assert run_study(spec, tmp_path / "study").estimates["model_id"].n_unique() == 10


def test_hostile_names_of_splits_stay_in_the_folder_and_what_fails_or_stops_early_is_told(tmp_path, monkeypatch):
    spec = make_spec(splits=(RandomShare(0.25, name="../../away"),), repeats=1, n_items=(6,))
    result = run_study(spec, tmp_path / "inner" / "study", responses=RESPONSES)
    assert set(result.estimates["split"]) == {"../../away"}
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
    spec = make_spec(calibration=CalibrationChoice(n_dims=1, options={"max_iterations": 2}), repeats=1, n_items=(6,))
    with pytest.warns(ConvergenceWarning, match="1 of 1 calibrations did not converge"):
        result = run_study(spec, tmp_path / "study", responses=RESPONSES)
    assert not result.estimates["converged"].any()

    def needy(*_, **__):
        raise DataError("it needs a hundred models")

    monkeypatch.setattr("itembank_studies.comparison_study.estimate", needy)
    with pytest.warns(DataWarning, match="are missing.*weighted: it needs a hundred models; gp-irt: it needs"):
        result = run_study(make_spec(repeats=1), tmp_path / "needy", responses=RESPONSES)
    assert result.summary["n_estimates"].to_list() == [0] * result.summary.height
