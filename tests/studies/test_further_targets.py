"""Mean win rates and external scores as targets of a study."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, ParameterError
from itembank.responses.targets import mean_win_rate
from itembank.studies.comparison_study import fold_estimates, prepare_fold
from itembank.studies.splits import make_folds
from itembank.studies.study_files import load_study
from tests.studies.simulated import make_responses, make_spec

pytestmark = pytest.mark.usefixtures("few_folds")

WITH_SCORES = make_responses()  # whose model table has a column `accuracy`
CHOICES = {"selectors": ("random",), "estimators": ("p-irt",), "n_items": (12,), "interval": "calibrated"}
SPEC = make_spec(**CHOICES, targets=("mean_win_rate", "accuracy"))
FOLD_OF_TARGETS = make_folds(SPEC.splits[0], WITH_SCORES.models, 1, 3)[0]


def table_of(responses):
    return fold_estimates(SPEC, prepare_fold(SPEC, responses, FOLD_OF_TARGETS), FOLD_OF_TARGETS)


@pytest.fixture(scope="module")
def table_of_targets(few_folds):
    return table_of(WITH_SCORES)


def test_further_targets_have_rows_with_their_own_truth(table):
    assert table["target"].unique(maintain_order=True).to_list() == [
        "part-0", "part-1", "overall", "mean_win_rate", "accuracy",
    ]  # fmt: skip
    np.testing.assert_allclose(
        table.filter(target="accuracy")["truth"].to_numpy(),
        WITH_SCORES.models["accuracy"].to_numpy()[FOLD_OF_TARGETS.test],
    )
    scores = np.column_stack([WITH_SCORES.responses[:, part::2].mean(axis=1) for part in range(2)])
    np.testing.assert_allclose(
        table.filter(target="mean_win_rate")["truth"].to_numpy(),
        mean_win_rate(scores[FOLD_OF_TARGETS.test], scores[FOLD_OF_TARGETS.train]),
    )
    assert (table["low"] <= table["estimate"]).all()
    assert (table["estimate"] <= table["high"]).all()


def test_external_scores_of_tested_models_are_not_seen(table):
    assert prepare_fold(SPEC, WITH_SCORES, FOLD_OF_TARGETS).bank.responses.models.columns == [
        "model_id",
        "score.accuracy",
    ]
    accuracy = WITH_SCORES.models["accuracy"].to_numpy().copy()
    accuracy[FOLD_OF_TARGETS.test] = 1.0 - accuracy[FOLD_OF_TARGETS.test]
    other = table_of(replace(WITH_SCORES, models=WITH_SCORES.models.with_columns(accuracy=pl.Series(accuracy))))
    for name in ("estimate", "low", "high"):
        np.testing.assert_array_equal(other[name].to_numpy(), table[name].to_numpy())


def test_targets_are_checked_and_kept(tmp_path):
    assert SPEC.to_dict()["targets"] == ("mean_win_rate", "accuracy")
    assert "targets" not in make_spec().to_dict()  # so that folders made before go on
    with pytest.raises(ParameterError, match="have calibrated intervals alone"):
        make_spec(interval="model-based", targets=("mean_win_rate",))
    with pytest.raises(DataError, match="must have the columns model_id and 'speed'"):
        prepare_fold(make_spec(**CHOICES, targets=("speed",)), WITH_SCORES, FOLD_OF_TARGETS)
    (tmp_path / "study.toml").write_text(
        'name = "mine"\ntargets = ["accuracy"]\nselectors = ["random"]\nestimators = ["p-irt"]\nn_items = [9]\n'
        '[data]\nbuiltin = "classifiers"\n[[splits]]\nkind = "random"\n'
    )
    assert load_study(tmp_path / "study.toml").targets == ("accuracy",)
