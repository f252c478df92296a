import dataclasses
import re

import polars as pl
import pytest

from itembank.bank.bank_files import load_bank, save_bank
from itembank.banks import whole_bank
from itembank.errors import DataError
from itembank.files.hub import HubName
from itembank_living import publish_tiny, retire
from itembank_living.publishing.hub import PushSpec, stage
from itembank_living.publishing.publishable import check_no_questions, without_columns
from tests.bank.banks import make_bank

BANK = make_bank()


def with_column(name, value):
    items = BANK.responses.items.with_columns(pl.Series(name, [value] * BANK.n_items))
    return dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, items=items))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prompt", "2+2="),
        ("doc.question", "x"),
        ("choices", ["a", "b"]),
        ("correct", 3),
        ("gold_answer", "B"),
        ("remark", "A train leaves the station at noon and another one follows it at two."),
        ("row", {"anything": "nested"}),
    ],
)
def test_questions_and_answers_are_refused_and_named(name, value):
    bank = with_column(name, value)
    with pytest.raises(DataError, match=rf"no questions and no answers, and columns '{name}'"):
        check_no_questions(bank)
    check_no_questions(bank, (name,))
    check_no_questions(without_columns(bank, (name,)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_options", 4), ("content_hash", "f" * 64), ("metric", "exact_match"), ("lengths", [1, 2]), ("url", "x" * 200)],
)
def test_what_else_is_known_of_items_may_go(name, value):
    check_no_questions(with_column(name, value))


def test_questions_are_found_in_the_place_of_ids_and_among_items_kept_aside():
    asking = "What is the capital of the country whose number is " + pl.col("item_id") + "?"
    items = BANK.responses.items.with_columns(item_id=asking)
    bank = dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, items=items))
    with pytest.raises(DataError, match=r"'item_id'.* Import the results with other names"):  # it cannot be dropped
        check_no_questions(bank)
    bank = retire(with_column("prompt", "2+2="), BANK.item_ids[:1], reason="wrong key")
    with pytest.raises(DataError, match="columns 'prompt'"):
        check_no_questions(bank)
    slim = whole_bank(without_columns(bank, ("prompt",)))
    assert ("prompt" in slim.responses.items.columns, slim.n_items) == (False, BANK.n_items)


def test_a_bank_without_columns_is_the_same_bank():
    slim = without_columns(BANK, ("n_options",))
    assert ("n_options" in slim.responses.items.columns, slim.bank_id) == (False, BANK.bank_id)
    for name in ("nothing", "scenario"):
        with pytest.raises(DataError, match=name):
            without_columns(BANK, (name,))
    with pytest.raises(DataError, match="'promt'"):
        check_no_questions(BANK, ("promt",))


pytestmark = pytest.mark.usefixtures("few_folds")
SECRET = "Zx9SECRET"  # noqa: S105 (made up)


def test_links_and_ids_with_secrets_are_refused(tmp_path):
    publish_tiny(make_bank(n_models=12), tmp_path / "tiny", 9)
    (tmp_path / "secret.csv").write_text(SECRET)
    (tmp_path / "tiny" / "selected.csv").unlink()
    (tmp_path / "tiny" / "selected.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(DataError, match=r"must be no links, got 'selected\.csv'"):
        stage(load_bank(tmp_path / "tiny"), tmp_path / "staged", HubName("me/tiny"), PushSpec())
    bank = make_bank(n_models=12)
    models = bank.responses.models.with_columns(model_id="/home/alice/" + pl.col("model_id"))
    asked = dataclasses.replace(bank, responses=bank.responses.with_tables(models=models))
    with pytest.raises(DataError, match=r"12 values of column 'model_id' do\. Read the logs again"):
        stage(asked, tmp_path / "staged", HubName("me/bank"), PushSpec())


def test_only_columns_of_models_that_are_needed_are_pushed(tmp_path):
    bank = make_bank(n_models=12)
    models = bank.responses.models.with_columns(
        *(pl.lit("2024-01-01").alias(name) for name in ("run_date", "release_date")),
        *(pl.lit(1).alias(name) for name in ("n_parameters", "epochs", "score.arena")),
        *(pl.lit(f"token={SECRET}").alias(name) for name in ("model_args", "note")),
        api_key=pl.lit(SECRET),
        family=pl.lit("a"),
        lm_eval_version=pl.lit("0.4"),
    )
    asked = dataclasses.replace(bank, responses=bank.responses.with_tables(models=models))
    save_bank(asked, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    name = HubName("me/bank")
    done = stage(loaded, tmp_path / "staged", name, PushSpec(drop_columns=("family",), include_columns=("epochs",)))
    assert set(done.responses.models.columns) == {
        *("model_id", "size", "run_date", "release_date", "n_parameters", "epochs", "score.arena", "lm_eval_version")
    }
    assert done.bank_id == bank.bank_id
    everything = b"".join(path.read_bytes() for path in (tmp_path / "staged").rglob("*") if path.is_file())
    assert SECRET.encode() not in everything
    card = (tmp_path / "staged" / "README.md").read_text()
    told = re.search(r"Left out: (.*)\.$", card, re.MULTILINE)[1].replace("\\", "")
    assert set(told.split(", ")) == {"family", "model_args", "note", "api_key"}
    for column in ("model_args", "note"):
        with pytest.raises(DataError, match=rf"no secrets.*'{column}'"):
            stage(loaded, tmp_path / column, name, PushSpec(include_columns=(column,)))
    with pytest.raises(DataError, match="Did you mean 'epochs'"):
        stage(loaded, tmp_path / "x", name, PushSpec(include_columns=("epoch",)))
