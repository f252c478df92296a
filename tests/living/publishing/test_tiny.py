import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_files import load_bank, save_bank
from itembank.errors import BankError, DataError
from itembank_living import TinySpec, publish_tiny
from tests.bank.banks import make_bank

pytestmark = pytest.mark.usefixtures("few_folds")
FILES = {
    *("README.md", "accuracy.png", "arrays.safetensors", "bank.json", "items.parquet", "models.parquet"),
    *("parameters.csv", "responses.parquet", "selected.csv", "selection.json"),
}


@pytest.fixture(scope="module")
def whole(few_folds, tmp_path_factory):
    """A bank in two dimensions, on disk."""
    folder = tmp_path_factory.mktemp("whole") / "bank"
    save_bank(make_bank(n_models=24, n_items=36, n_dims=2, seed=3), folder)
    return folder


@pytest.fixture(scope="module")
def tiny(whole, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "tiny bank"
    publish_tiny(whole, folder, 12, spec=TinySpec(name="tiny<b>", license="mit"))
    return folder


@pytest.fixture(scope="module")
def answers(tiny, tmp_path_factory):
    """Answers of one model to the published items."""
    path = tmp_path_factory.mktemp("answers") / "new.csv"
    items = pl.read_csv(tiny / "selected.csv")["item_id"]
    right = np.random.default_rng(4).integers(0, 2, items.len())
    pl.DataFrame({"model_id": "new", "item_id": items, "response": right}).write_csv(path)
    return path


def test_the_folder_holds_what_it_says(tiny):
    assert {path.name for path in tiny.iterdir()} == FILES
    text = (tiny / "README.md").read_text()
    (subset,) = load_bank(tiny).subsets
    for words in (
        *("# tiny&#60;b&#62;", "license: mit", "config_name: selected"),
        *("selected.csv", "parameters.csv", "selection.json", "accuracy.png"),
        "\nitembank estimate 'tiny bank' results.csv\n",
        "calibrated intervals for other items than the 12",
        "from its answers to 12 of them",
        "by the method `stacked`",  # which is not what answers to drawn items are estimated by
        f"and are about ±{100.0 * subset.measured['half_width']:.1f} points",
    ):
        assert words in text
    assert "run lm-eval" not in text  # no logs of it made the bank


def test_one_line_gives_the_estimates_of_the_whole_bank(whole, tiny, answers):
    selection = ib.Selection.load(tiny / "selection.json")
    found = ib.estimate(tiny, answers).scores
    expected = ib.estimate(whole, answers, selection=selection).scores  # its bank is the tiny one, of the same score
    for name in ("value", "standard_error", "low", "high"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=0.0, atol=1e-7)


def test_the_tables_hold_the_items_and_their_parameters(tiny):
    bank, selection = load_bank(tiny), ib.Selection.load(tiny / "selection.json")
    selected, every = pl.read_csv(tiny / "selected.csv"), pl.read_csv(tiny / "parameters.csv")
    assert every["item_id"].to_list() == bank.item_ids
    np.testing.assert_array_equal(every["loading_2"], bank.parameters.loadings[:, 1])
    text = (tiny / "README.md").read_text()  # what weights are of is not cut away
    for table, column, said in (
        (every, "weight", "in the scenario's score"),
        (selected, "selection_weight", "for means of scenarios |"),
    ):
        np.testing.assert_allclose(table.group_by("scenario").agg(pl.col(column).sum())[column], 1.0)
        assert said in text.replace("&#39;", "'")
    weights = dict(zip(selection.item_ids, selection.weights, strict=True))
    assert dict(zip(selected["item_id"], selected["selection_weight"], strict=True)) == pytest.approx(weights)
    known = ib.banks.start(tiny / "parameters.csv", parameters=True)  # the door for parameters that others fitted
    np.testing.assert_allclose(known.targets.weights, bank.targets.weights)
    np.testing.assert_allclose(known.parameters.loadings, bank.parameters.loadings)


def test_the_command_publishes_given_items_and_replaces_when_asked(run, whole, tmp_path):
    ib.select(whole, 9, method="random", rng=0).save(tmp_path / "nine.json")
    words = ("publish-tiny", whole, "--selection", tmp_path / "nine.json", "-o", tmp_path / "tiny", "--format", "json")
    outcome = run.ok(*words)
    assert outcome.json["rows"][0]["items"] == 9
    assert run(*words).code == 1
    run.ok(*words, "--force")
    assert run(*words, "-n", 5).code == 2


def test_what_would_give_questions_away_or_stands_there_is_refused(run, tmp_path, whole):
    bank = make_bank(n_models=12)
    bank.responses.items.insert_column(0, pl.Series("prompt", ["2 + 2 ="] * bank.n_items))
    with pytest.raises(DataError, match="'prompt'"):
        publish_tiny(bank, tmp_path / "tiny", 9)
    assert not (tmp_path / "tiny").exists()
    nine, spec = ib.select(bank, 9, method="random", rng=0), TinySpec(drop_columns=("prompt",))
    publish_tiny(bank, tmp_path / "tiny", 9, selection=nine, spec=spec)
    assert b"2 + 2" not in (tmp_path / "tiny" / "items.parquet").read_bytes()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    with pytest.raises(BankError, match="is not a bank"):
        publish_tiny(whole, tmp_path / "notes", 9, overwrite=True)
