import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix
from itembank_scaling.compute import TrainingCompute, read_model_table, training_compute
from itembank_scaling.inputs import read_choice_scores, read_losses
from tests.readers.logs import read_lm_eval, sample, write_run


def table(**columns):
    """A table of models a, b, c, ... with these columns."""
    n_models = len(next(iter(columns.values())))
    return pl.DataFrame({"model_id": list("abcdefgh"[:n_models]), **columns}, strict=False)


def test_compute_is_stated_or_six_operations_a_parameter_and_token_which_may_end_in_a_letter():
    found = training_compute(table(params=[70e6, 1.4e9], train_tokens=[3e11, 3e11]))
    assert found.flops.tolist() == [1.26e20, 2.52e21]
    assert found.recipe is None
    assert found.recipes == ("all",)
    assert found.in_recipe("all").all()
    found = training_compute(table(flops=[1.3e20, None], params=[70e6, 1.4e9], train_tokens=[3e11, 3e11]))
    assert found.flops.tolist() == [1.3e20, 2.52e21]
    found = training_compute(table(params=["70M", "1.4b"], train_tokens=["300B", "15T"]))
    assert found.params.tolist() == [70e6, 1.4e9]
    assert found.train_tokens.tolist() == [3e11, 15e12]
    with pytest.raises(DataError, match="params must be a number"):
        training_compute(table(params=["70M", "large"], train_tokens=["300B", "15T"]))
    models = table(params=["70M", "70M"], train_tokens=[0, 3e11])
    with pytest.warns(DataWarning, match="left out: 'a'"):
        assert training_compute(models, drop_unknown=True).model_ids == ("b",)
    models = table(flops=[1e20, None, 0.0, 2e20], recipe=["x", "y", "y", "x"], params=[1e9, 1e9, 1e9, 2e9])
    with pytest.warns(DataWarning, match="2 of 4 models of unknown or no training compute are left out: 'b', 'c'"):
        found = training_compute(models, drop_unknown=True)
    assert found.model_ids == ("a", "d")
    assert found.recipe == ("x", "x")
    assert found.flops.tolist() == [1e20, 2e20]
    with pytest.raises(DataError, match="at least one model"):
        training_compute(table(flops=[0.0]), drop_unknown=True)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        *(
            ({"flops": ["3e20", text]}, r"flops must be a number of floating-point operations.*1 model: 'b' = ")
            for text in ("3e20 FLOP/s", "2.1 EFLOP", "1,000", "many", "1e20 1e21")
        ),
        ({"flops": [1e20, 0.2]}, "got 1 of 2 models: 'b' = 0.2"),
        ({"flops": [0.1, 36.0]}, "got 2 of 2 models: 'a' = 0.1"),
        ({"params": [70, 700]}, "params must be a finite number of at least 1,000, got 2 of 2 models: 'a' = 70"),
        ({"params": [0, 1e9]}, "params must be a finite number of at least 1,000, got 1 of 2 models: 'a' = 0"),
        ({"train_tokens": [300, 3e11]}, "train_tokens must be a finite number of at least 1,000.*'a' = 300"),
    ],
)
def test_other_words_and_units_are_refused(columns, message):
    sizes = {} if "flops" in columns else {"params": ["70M", "1B"], "train_tokens": ["300B", "300B"]}
    with pytest.raises(DataError, match=message):
        training_compute(table(**{**sizes, **columns}))


def test_tables_that_cannot_tell_of_compute_say_why():
    with pytest.raises(DataError, match=r"must have a column flops, .* it has 'model_id', 'train_tokens', 'gflops'"):
        training_compute(table(train_tokens=[1e9], gflops=[3.0]))
    with pytest.raises(DataError, match=r"must have a column flops, or params .* got train_tokens without params; it"):
        training_compute(table(train_tokens=[1e10, 2e10], parameters=[1e9, 2e9]))
    with pytest.raises(DataError) as error:
        training_compute(table(flops=["3e20", "2 TFLOP/s"]))
    assert "got neither" not in str(error.value)
    with pytest.raises(DataError, match=r"got neither for 1 of 5 models: 'b'") as error:
        training_compute(table(flops=[1e20, None, 0.0, -1e20, float("inf")]))
    assert "above zero, got 3 of 5 models: 'c' = 0, 'd' = -1e+20, 'e' = inf" in str(error.value)
    with pytest.raises(DataError, match="is_final must be true or false, got something else for 1 model: 'b' = None"):
        training_compute(table(flops=[1e20, 2e20], is_final=["true", None]))


@pytest.mark.parametrize(
    ("factors", "named"), [([1.0, 1.0, 1e-3], "'c'"), ([1e-18, 1e-18, 1e-18], "'a'"), ([1.1, 0.9, 1e4], "'c'")]
)
def test_compute_in_another_unit_than_parameters_and_tokens_say_is_refused(factors, named):
    params, tokens = [1e9, 2e9, 3e9], [1e11, 1e11, 1e11]
    flops = [6 * n * d * factor for n, d, factor in zip(params, tokens, factors, strict=True)]
    with pytest.raises(DataError, match=rf"near 6 x params x train_tokens.*powers of ten away: {named}"):
        training_compute(table(flops=flops, params=params, train_tokens=tokens))


def test_the_largest_checkpoint_of_each_recipe_and_size_is_final_unless_a_column_says_which():
    tokens, mixture = [1e9, 2e9, 1e10, 5e9, 1e9], ["x", "x", "x", "x", "y"]
    models = table(params=[1e8, 1e8, 1e9, 1e9, 1e8], train_tokens=tokens, mixture=mixture)
    assert training_compute(models).is_final.tolist() == [False, True, True, False, True]
    assert training_compute(table(flops=[1e20, 2e20])).is_final.tolist() == [True, True]
    for values in ([True, False], ["true", "False"], [1, 0], ["1", "0"]):
        models = table(flops=[1e20, 2e20], params=[1e9, 1e9], is_final=values)
        assert training_compute(models).is_final.tolist() == [True, False]


def test_recipes_come_from_the_first_column_or_the_one_named_and_models_in_the_order_asked_for():
    models = table(flops=[1e20, 2e20], family=["f", "g"], mixture=["m", "m"], origin=["o", None])
    found = training_compute(models)
    assert found.recipes == ("m",)
    assert training_compute(models, recipe_column="family").in_recipe("g").tolist() == [False, True]
    with pytest.raises(DataError, match="origin must say how every model was trained, got nothing for 1: 'b'"):
        training_compute(models, recipe_column="origin")
    with pytest.raises(DataError, match="recipe column 'color' must be in the table"):
        training_compute(models, recipe_column="color")
    models = table(flops=[1e20, 2e20, 3e20])
    assert training_compute(models, ["c", "a"]).flops.tolist() == [3e20, 1e20]
    with pytest.raises(DataError, match="1 of 2 are not: 'z'"):
        training_compute(models, ["a", "z"])
    found = training_compute(table(flops=[1e20, 2e20, 3e20], params=[1e9, 2e9, 3e9], recipe=["x", "y", "x"]))
    taken = found.take(np.array([2, 0]))
    assert isinstance(taken, TrainingCompute)
    assert (taken.model_ids, taken.recipe) == (("c", "a"), ("x", "x"))
    assert taken.params.tolist() == [3e9, 1e9]
    assert np.isnan(taken.train_tokens).all()


def test_whole_numbers_do_not_overflow_and_real_tables_and_other_ways_of_counting_agree(tmp_path, shared_dir):
    """6 x 12e9 parameters x 3e11 tokens is beyond 64 bits; ways of counting differ by less than a factor of thirty."""
    path = tmp_path / "models.csv"
    path.write_text("model_id,params,train_tokens\n007,12000000000,300000000000\n")
    found = training_compute(read_model_table(path))
    assert found.model_ids == ("007",)
    assert found.flops.tolist() == [2.16e22]
    models = read_model_table(shared_dir / "data" / "llmonkeys_pythia" / "models.csv")
    stated = training_compute(models)
    assert training_compute(models.drop("flops")).flops == pytest.approx(stated.flops, rel=1e-12)
    final = [name for name, is_final in zip(stated.model_ids, stated.is_final, strict=True) if is_final]
    assert [name.endswith("_300B") for name in final] == [True] * 9  # sizes, each with its last checkpoint
    models = table(flops=[6e20 * 1.8, 6e20 / 30, 6e20 * 0.7], params=[1e9] * 3, train_tokens=[1e11] * 3)
    assert training_compute(models).n_models == 3


LOG = Path(__file__).parent.parent / "readers" / "lm_eval_0_4_13"


@pytest.fixture(scope="module")
def scores():
    with pytest.warns(DataWarning, match="2 runs are left out: 'dummy' on 'majority'.*'dummy' on 'programs'"):
        return read_choice_scores(LOG)


def test_bits_per_byte_are_of_the_bytes_of_the_right_option_and_scores_the_responses(scores):
    (path,) = LOG.glob("samples_capitals_*.jsonl")
    found = dict(scores.select("item_id", "bits_per_byte").iter_rows())
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        index = int(row["target"])
        text = row["arguments"][f"gen_args_{index}"]["arg_1"].removeprefix(" ")
        expected = -float(row["resps"][index][0][0]) / math.log(2) / len(text.encode())
        assert found[f"capitals/{row['doc_id']}"] == pytest.approx(expected, rel=1e-12)
    for response, column in (("probability", "choice_probability"), ("accuracy", "choice_accuracy")):
        made = read_lm_eval(LOG, spec=ReadingSpec(tasks=("several_right",), response=response))
        table = scores.filter(pl.col("scenario") == "several_right")
        np.testing.assert_array_equal(table[column].to_numpy(), made.responses[0])


def test_losses_come_from_a_column_called_loss_before_bits_per_byte_and_other_tables_are_refused(scores):
    responses = ResponseMatrix.create(np.ones((1, 1)), model_ids=["dummy"], item_ids=["digits/3"])
    table = scores.with_columns(loss=pl.lit(2.5))
    assert read_losses(table, responses).tolist() == [[2.5]]
    assert read_losses(table, responses, column="bits_per_byte")[0, 0] != 2.5
    alone = scores.filter(pl.col("scenario") == "last_word")
    assert alone["choice_probability"].is_null().all()
    assert alone["bits_per_byte"].is_not_null().all()
    assert alone["n_options"].unique().to_list() == [1]
    with pytest.raises(DataError, match="must have the columns 'nats'"):
        read_losses(scores, responses, column="nats")
    with pytest.raises(DataError, match="one row a model and item, got several for 'dummy on digits/0'"):
        read_losses(pl.concat([scores, scores.filter(pl.col("item_id") == "digits/0")]), responses)
    with pytest.raises(DataError, match="got none of them: it has models 'dummy', the responses 'someone'"):
        read_losses(scores, ResponseMatrix.create(np.ones((1, 1)), model_ids=["someone"]))
    with pytest.raises(DataError, match="scenario must be a number in every row of a table of losses, got 'digits'"):
        read_losses(scores.filter(pl.col("item_id") == "digits/0"), responses, column="scenario")
    with pytest.raises(DataError, match="no task has answer options with log-likelihoods: 'dummy' on 'majority' needs"):
        read_choice_scores(LOG, spec=ReadingSpec(tasks=("majority",)))


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_losses_come_back_in_the_order_of_the_responses(scores, tmp_path, name):
    (scores.write_csv if name.endswith("csv") else scores.write_parquet)(tmp_path / name)
    responses = ResponseMatrix.create(
        np.ones((2, 3)), model_ids=["other", "dummy"], item_ids=["digits/3", "capitals/0", "unknown/1"]
    )
    losses = read_losses(tmp_path / name, responses)
    found = dict(scores.select("item_id", "bits_per_byte").iter_rows())
    assert np.isnan(losses[0]).all()
    np.testing.assert_allclose(losses[1], [found["digits/3"], found["capitals/0"], np.nan], rtol=1e-15)


def test_runs_that_disagree_are_refused_unless_the_last_is_asked_for(tmp_path):
    def run(value, date):
        row = sample(0, acc=1.0) | {"resps": [[[str(value), "True"]]]}
        write_run(tmp_path, "org/a", {"qa": [row]}, date=date)

    run(-1.0, "2025-03-01T10-00-00.000001")
    run(-2.0, "2025-03-02T10-00-00.000001")
    with pytest.raises(DataError, match="different ones for 1 pair: 'org/a on qa/0'"):
        read_choice_scores(tmp_path)
    last = read_choice_scores(tmp_path, spec=ReadingSpec(repeats="last"))
    assert last["log_likelihood"].to_list() == [-2.0]
