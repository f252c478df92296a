import dataclasses

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.errors import ParameterError
from itembank_living.publishing.cards import CANARY, CardOptions, card, escaped, table
from itembank_living.publishing.without_responses import CrossValidatedScores, cross_validated_scores, without_responses
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")
OPTIONS = CardOptions("bank", "hf:me/bank", "cc-by-4.0")
SCORES = CrossValidatedScores(
    30, np.array([0.5, 0.6]), np.array([0.52, 0.56]), np.array([0.45, 0.5]), np.array([0.6, 0.58])
)


def test_the_card_says_what_the_bank_holds_and_claims_no_accuracy_of_few_models():
    text = card(make_bank(), OPTIONS, [SCORES])
    front, _, body = text.removeprefix("---\n").partition("---\n")
    assert "license: cc-by-4.0\ntags:\n- itembank\nconfigs:\n- config_name: items\n  data_files: items.parquet" in front
    assert "data_files: models.parquet" in front
    for words in ("30 items in 3 scenarios", "12 models", "itembank estimate hf:me/bank", CANARY, "| math | 10 |"):
        assert words in body
    assert "| 30 | 2 | 3.0 points | 50 % |" in body
    assert "What does not work" not in body
    assert "too few past models for cross-validation, so nobody knows" in card(make_bank(), OPTIONS, [])


def test_dates_and_prompts_are_told_where_they_are_known():
    bank = make_bank()
    dates = pl.Series([f"2024-{k + 1:02}-01" for k in range(12)])
    models, items = bank.responses.models.with_columns(date=dates), bank.responses.items
    items = items.with_columns(task=pl.lit("gsm8k"), metric=pl.lit("exact_match"))
    responses = dataclasses.replace(bank.responses, models=models, items=items)
    text = card(dataclasses.replace(bank, responses=responses), OPTIONS, [])
    assert "12 models of 2024-01-01 to 2024-12-01." in text
    assert "| task | metric |\n| --- | --- |\n| gsm8k | exact\\_match |" in text


def test_a_bank_without_responses_says_what_does_not_work():
    bank = make_bank(n_models=24, n_items=36, n_dims=1)
    text = card(without_responses(bank, selections=[ib.select(bank, 12, method="random", rng=0)]), OPTIONS, [])
    assert "models.parquet" not in text
    assert "results of 24 models" in text
    assert "calibrated intervals for other items than the 12 of `selection.json`" in text


def test_names_of_strangers_are_no_markup():
    bank, names = make_bank(), ("<img src=x>", "a|b", "[c](http://d)")
    items = bank.responses.items.with_columns(pl.col("scenario").replace_strict(["math", "code", "law"], names))
    responses, targets = (
        dataclasses.replace(bank.responses, items=items),
        dataclasses.replace(bank.targets, scenarios=names),
    )
    strange = dataclasses.replace(bank, responses=responses, targets=targets)
    text = card(strange, CardOptions('x"\n---\n# <b>', "hf:me/bank"), [])
    assert not any(markup in text for markup in ("<img", "http://d"))
    assert "<b>" not in text.partition("---\n\n")[2]
    assert text.count("\n---\n") == 1


@pytest.mark.parametrize("license_name", ["cc by", "mit\ntags: [x]", "MIT!"])
def test_a_license_is_an_identifier(license_name):
    with pytest.raises(ParameterError, match="license must be an identifier"):
        CardOptions("bank", "hf:me/bank", license_name)


def test_held_out_scores_are_those_of_models_the_bank_has_not_seen():
    bank = make_bank(n_models=24, n_items=36, n_dims=1, seed=3)
    found = cross_validated_scores(bank, ib.select(bank, 12, method="v-optimal"))
    np.testing.assert_allclose(found.true, bank.targets.with_overall(bank.scenario_scores)[:, -1])
    assert found.n_items == 12
    assert 0.0 < found.error < 0.2
    assert found.coverage > 0.7
    few = make_bank(n_models=8)
    assert cross_validated_scores(few, ib.select(few, 6, method="random", rng=0)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain-id_1.5", "plain-id\\_1.5"),
        ("a|b", "a\\|b"),
        ("[x](y)", "\\[x\\]\\(y\\)"),
        ("<script>", "&#60;script&#62;"),
        ("&lt;", "&#38;lt;"),
        ("@everyone", "&#64;everyone"),
        ("https://evil.example", "https&#58;&#47;&#47;evil.example"),
        ("www.evil.example", "www&#46;evil.example"),
        ("one\n# two", "one \\# two"),
        ("esc\x1b[31m", "esc\\\\x1b\\[31m"),
        ("`rm`", "\\`rm\\`"),
        ("x" * 1000, "x" * 79 + "…"),
    ],
)
def test_nothing_is_markup(text, expected):
    assert escaped(text) == expected


def test_numbers_stand_as_they_are_and_no_cell_ends_the_row():
    lines = ["| a|b | n |", "| --- | --- |", "| x \\|y | 12,345 |"]
    assert table(("a|b", "n"), [("x\n|y", 12345)]).splitlines() == lines
