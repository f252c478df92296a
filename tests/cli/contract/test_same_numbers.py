"""Terminal, JSON, CSV, console, notebook and pages give the same numbers and tell the same notes."""

import csv
import io
import json
from html import unescape

import numpy as np
import pytest

import itembank as ib
import itembank_living
import itembank_studies
from itembank.pages.blocks import Caution
from itembank.pages.estimates_page import estimates_page
from tests.calibration.test_dimensions import simulated

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*answer like another one"),
    pytest.mark.usefixtures("few_folds", "without_library"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path, everyone = tmp_path_factory.mktemp("doors"), simulated(41, 150, 2, seed=4)
    ib.write_responses(everyone.take(models=np.arange(40)), path / "past.parquet")
    ib.write_responses(everyone.take(models=np.array([40])), path / "new.parquet")
    return path


@pytest.fixture(scope="module")
def bank(folder):
    return ib.calibrate(folder / "past.parquet")


@pytest.fixture
def calibrated(run, folder):
    if not (folder / "bank").exists():
        run.ok("calibrate", folder / "past.parquet", "-o", folder / "bank")
    return folder / "bank"


def rows(run, *arguments, name="rows"):
    done = run(*arguments, "--format", "json")
    assert done.code in {0, 3}, done.err
    return done.json[name]


def test_banks(bank, calibrated):
    assert bank.calibration.n_dims > 1  # not the one dimension of a spec's default
    assert ib.load_bank(calibrated).bank_id == bank.bank_id
    np.testing.assert_array_equal(ib.load_bank(calibrated).parameters.loadings, bank.parameters.loadings)


def test_banks_of_two_models(run, tmp_path):
    """The command began a bank of two models' counts, and the verb fitted an item model."""
    counts = ib.ResponseMatrix.create(np.array([[0.5, 0.75, 0.0], [1.0, 0.25, 0.5]]), n_trials=np.full((2, 3), 4))
    ib.write_responses(counts, tmp_path / "past.parquet")
    run.ok("calibrate", tmp_path / "past.parquet", "-o", tmp_path / "bank")
    with pytest.raises(ib.errors.DataError, match=r"few: ib\.banks\.start\(responses\.items, responses\)"):
        ib.calibrate(counts)
    assert ib.banks.start(counts.items, counts).bank_id == ib.load_bank(tmp_path / "bank").bank_id


@pytest.mark.parametrize("method", ["auto", "random", "anchor-irt"])
def test_selections(run, bank, calibrated, method):
    done = run.json("select", calibrated, "-n", 20, "--method", method)
    assert done["items"] == ib.select(bank, 20, method=method).to_dict()["items"]


def test_estimates_plans_and_checks(run, folder, bank, calibrated):
    ib.select(bank, 20).save(folder / "selection.json")
    arguments = (folder / "new.parquet", "--selection", folder / "selection.json")
    made = ib.estimate(bank, folder / "new.parquet", selection=folder / "selection.json")
    assert rows(run, "estimate", calibrated, *arguments) == made.rows()
    assert rows(run, "plan", calibrated, "--half-width", 0.1, name="sizes") == ib.plan(bank, half_width=0.1).rows()
    checked = ib.diagnostics.check_bank(bank, folder / "new.parquet").rows()
    assert rows(run, "check", calibrated, folder / "new.parquet", "--only", "accuracy", name="scores") == checked


def test_sessions(run, tmp_path, bank, calibrated):
    run.ok("session", "start", calibrated, "-o", tmp_path / "a.jsonl", "--model-id", "new")
    asked = rows(run, "session", "ask", tmp_path / "a.jsonl", "-n", 9, name="items")
    with ib.start_session(tmp_path / "b.jsonl", bank, model_id="new") as session:
        assert [row["item_id"] for row in asked] == list(session.ask(9))


def test_sessions_of_a_bank_that_was_published_with_its_items(run, tmp_path, bank):
    chosen = ib.select(bank, 12)
    published = itembank_living.without_responses(bank, selections=[chosen])
    published.save(tmp_path / "bank")
    command = ("session", "start", tmp_path / "bank", "-o", tmp_path / "a.jsonl", "--model-id", "new")
    assert "Only items that the bank was published with" in run(*command).err
    asked = rows(run, "session", "ask", tmp_path / "a.jsonl", "-n", 30, name="items")
    with ib.start_session(tmp_path / "b.jsonl", published, model_id="new") as session:
        items = session.ask(30)
    assert sorted(items) == sorted(row["item_id"] for row in asked) == sorted(chosen.item_ids)


def test_banks_with_items_retired_and_small_subsets(run, tmp_path, bank, calibrated):
    command = ("bank", "retire", calibrated, bank.item_ids[3], "--reason", "wrong key", "-o", tmp_path / "bank")
    run.ok(*command)
    retired = itembank_living.retire(bank, [bank.item_ids[3]], reason="wrong key")
    assert ib.load_bank(tmp_path / "bank").bank_id == retired.bank_id
    run.ok("publish-tiny", calibrated, "-n", 20, "-o", tmp_path / "a")
    itembank_living.publish_tiny(bank, tmp_path / "b", 20)
    first, second = (ib.load_bank(tmp_path / name) for name in "ab")
    assert (first.bank_id, first.items_to_run.item_ids) == (second.bank_id, second.items_to_run.item_ids)


def test_simulations(run, tmp_path):
    shape = ("--n-models", 5, "--n-items", 40, "--n-tasks", 2)
    run.ok("simulate", "-o", tmp_path / "made.parquet", *shape)
    made = itembank_studies.simulate(itembank_studies.SimulationSpec(n_models=5, n_items=40, n_tasks=2)).responses
    np.testing.assert_array_equal(ib.read_responses(tmp_path / "made.parquet").responses, made.responses)


@pytest.fixture(scope="module")
def noted(tmp_path_factory):
    """A bank, and models that are better than all past ones, unlike them, and one of them; and few past models."""
    path, made = tmp_path_factory.mktemp("notes"), simulated(30, 90, 1)
    names = ["old", *made.model_ids[1:]]
    everyone = ib.ResponseMatrix.create(made.responses, item_ids=made.item_ids, model_ids=names)
    ib.calibrate(everyone, ib.calibrations.Variational()).save(path / "bank")
    ib.calibrate(everyone.take(models=np.arange(6)), ib.calibrations.Variational()).save(path / "few")
    easy_first = np.argsort(-everyone.responses.mean(axis=0), kind="stable")
    upside_down = np.zeros(90)
    upside_down[easy_first[45:]] = 1.0
    answers = np.stack([np.ones(90), upside_down, everyone.responses[0]])
    new = ib.ResponseMatrix.create(answers, item_ids=everyone.item_ids, model_ids=["best", "odd", "old"])
    ib.write_responses(new.take(items=np.arange(0, 90, 2)), path / "new.parquet")
    return path


def seen(page):
    return unescape(page).replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("bank", "kind", "model", "words"),
    [
        ("bank", "better", "best", "better than all 30 past models, and the interval holds for models like these. If"),
        ("bank", "unlike", "odd", "answered unlike nearly all of the 30 past models"),
        ("bank", "past-model", "old", "among the past models of this bank"),
        ("few", "few-models", "best", "The bank has 6 past models, too few to calibrate intervals"),
        ("bank", "warning", "odd", "1 of 46 items are not in bank"),
    ],
)
def test_each_kind_of_note_is_told_at_every_door(run, noted, bank, kind, model, words, recwarn):
    new = noted / "new.parquet"
    if kind == "warning":
        known = ib.read_responses(new)
        answers = np.column_stack([known.responses, np.ones(3)])
        more = ib.ResponseMatrix.create(answers, item_ids=[*known.item_ids, "x"], model_ids=known.model_ids)
        new = noted / "more.parquet"
        ib.write_responses(more, new)
    found = ib.estimate(noted / bank, ib.read_responses(new), ignore_unknown=True)
    (note,) = [one for one in found.notes if one.kind == kind]
    assert words in note.text
    alone, whole = note.alone, str(note)
    assert all(alone in row["note"] for row in found.rows() if row["model_id"] == model)
    others = [row for row in found.rows() if row["model_id"] not in (note.models or found.model_ids)]
    assert not any(alone in row["note"] for row in others)
    assert whole in " ".join(repr(found).split())
    assert whole in seen(found._repr_html_())
    assert any(one.text.startswith(whole) for one in ib.show(found).lead if isinstance(one, Caution))
    command = ("estimate", noted / bank, new, "--ignore-unknown")
    printed = run(*command, "--format", "json")
    assert printed.json["rows"] == json.loads(json.dumps(found.rows()))
    assert whole in printed.err
    table = list(csv.DictReader(io.StringIO(run(*command, "--format", "csv").out)))
    assert [row["note"] for row in table] == [row["note"] for row in found.rows()]
    run.ok(*command, "--report", noted / "page.html")
    assert whole in seen((noted / "page.html").read_text(encoding="utf-8"))


def test_notes_do_not_turn_on_other_models_and_the_page_says_who_is_better(noted):
    bank, new = ib.load_bank(noted / "bank"), ib.read_responses(noted / "new.parquet")
    page = estimates_page(bank, new, ib.estimate(bank, new))
    blocks = [block for section in page.sections for block in section.blocks]
    columns = next(one.data.columns for one in blocks if "best past model" in getattr(one, "caption", ""))
    assert columns["why"][0] == "best"
    assert columns["probability"][0] >= 0.5
    bank, new = ib.load_bank(noted / "bank"), ib.read_responses(noted / "new.parquet")
    together = {row["model_id"]: row for row in ib.estimate(bank, new).rows()}
    for number, name in enumerate(new.model_ids):
        (alone,) = ib.estimate(bank, new.take(models=np.array([number]))).rows()
        assert alone["note"] == together[name]["note"]
    found = ib.estimate(noted / "bank", noted / "new.parquet")
    assert (found.targets[-1], [row["target"] for row in found.rows()]) == ("overall", ["overall"] * 3)
    assert {row["overall_is"] for row in found.rows()} == {"micro"}
