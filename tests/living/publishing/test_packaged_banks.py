"""The banks that come with the package."""

import json
import shutil
import zipfile

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_places import PACKAGED
from itembank.bank.bank_records import record_digest
from itembank.estimation.estimator_specs import PIRT
from itembank.pages.estimates_page import estimates_page
from itembank_living import list_ready
from scripts.make_ready_banks import BANKS, swe_bench_verified

NOTICE = (PACKAGED.parents[2] / "NOTICE").read_text(encoding="utf-8")
MOST_BYTES = 100_000


@pytest.fixture(autouse=True)
def only_the_packages(monkeypatch, tmp_path):
    monkeypatch.setenv("ITEMBANK_BANKS", str(tmp_path / "none"))


@pytest.mark.parametrize("name", BANKS)
def test_each_is_small_and_open_and_says_where_it_comes_from(name, tmp_path):
    with zipfile.ZipFile(tmp_path / "bank.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((PACKAGED / name).iterdir()):
            archive.write(path, path.name)
    assert (tmp_path / "bank.zip").stat().st_size < MOST_BYTES
    origin = ib.info(f"bank:{name}").facts
    listed = next(row for row in list_ready() if row["name"] == f"bank:{name}")  # which reads and checks the recipe
    about = ("title", "licence", "source", "revision", "harnesses", "notes")
    assert {word: origin[word] for word in about} == {word: listed[word] for word in about}
    assert origin["licence"] in {"MIT", "Apache-2.0"}
    assert all(origin[word] in NOTICE for word in ("source", "revision"))
    bank = ib.load_bank(f"bank:{name}")
    assert (bank.n_models, bank.newest is None) == (0, False)
    columns = set(bank.responses.items.columns)  # no text, nothing of a model
    assert columns - {"task"} == {"item_id", "scenario", "subscenario"}


@pytest.mark.parametrize(
    ("name", "known", "best"),
    [("swebench-verified", "20231010_rag_swellama7b", 0.792), ("mmlu-pro", "gpt-4o-2024-05-13", 0.858)],
)
def test_each_knows_its_past_models_again_and_their_public_scores(name, known, best):
    bank = ib.load_bank(f"bank:{name}")
    past = bank.past_models
    assert len(past.names) == past.scores.size == bank.n_calibration_models
    assert past.known([known, f"org/{known.upper()}", "my-new-model"]) == (known, f"org/{known.upper()}")
    assert past.ends[1] == pytest.approx(best, abs=5e-4)
    assert known in past.told  # names and scores are public
    shown = repr(bank)
    assert f"{bank.n_calibration_models} past models x {bank.n_total:,} items" in shown
    assert ib.info(bank).facts["title"] in shown


def test_a_page_of_a_ready_bank_shows_the_model_among_past_ones_by_name():
    bank = ib.load_bank("bank:swebench-verified")
    chosen = ib.select(bank, 60)
    answers = responses_to(chosen.item_ids)
    page = estimates_page(bank, answers, ib.estimate(bank, answers))
    (chart,) = (one for one in page.charts if "of past models" in one.title)
    assert (len(chart.data[0]), [column.name for column in chart.table.columns]) == (100, ["model", "score"])
    assert chart.data[0].columns["model"][-1] == "20251205_sonar-foundation-agent_claude-opus-4-5"


@pytest.mark.parametrize("name", BANKS)
def test_each_gives_intervals_from_its_items_of_the_width_that_info_says(name):
    bank = ib.load_bank(f"bank:{name}")
    for size in (30, 60, 100, 200):
        chosen = ib.select(bank, size)
        table = pl.DataFrame({"model_id": "new", "item_id": chosen.item_ids, "response": np.arange(size) % 2})
        found = ib.estimate(bank, ib.read_responses(table.with_columns(scenario=pl.lit(chosen.scenarios[0]))))
        # some of MMLU-Pro's questions were rewritten and are not run: no draw speaks for them
        kinds = {"swebench-verified": ("design-based", "design"), "mmlu-pro": ("stacked", "calibrated")}
        assert (found.method, found.interval_kind) == kinds[name]
        assert found.n_total[-1] == bank.n_total == {"swebench-verified": 500, "mmlu-pro": 12_032}[name]
        assert 0.2 < found.scores.low[0, -1] < found.value[0, -1] < found.scores.high[0, -1] < 0.9
    for one in bank.subsets:
        width = f"about ±{100.0 * one.measured['half_width']:.1f} points"
        assert width in ib.select(bank, one.selection.n_items).explanation


FACTORS = [f"Factor(n_factors='auto', discrepancy={one})" for one in ("'auto'", "0.1")]
IN_EARLIER_BANKS = ["PIRT()", "GPIRT(anchor_variance_factor=4.0, unmeasured_bias=0.05)", "Weighted()", *FACTORS]


def test_a_bank_that_names_its_methods_as_python_did_serves_as_before_and_so_does_a_renamed_class(
    tmp_path, monkeypatch
):
    folder = tmp_path / "earlier"
    shutil.copytree(PACKAGED / "mmlu-pro", folder)
    record = json.loads((folder / "bank.json").read_text(encoding="utf-8"))
    for subset in record["published"]["subsets"]:
        subset["methods"] = IN_EARLIER_BANKS
    record["record_sha256"] = record_digest(record)
    (folder / "bank.json").write_text(json.dumps(record), encoding="utf-8")
    bank = ib.load_bank("bank:mmlu-pro")
    answers = responses_to(bank.own_selections[0].item_ids)
    now, then = (ib.estimate(one, answers) for one in (bank, ib.load_bank(folder)))
    monkeypatch.setattr(PIRT, "__repr__", lambda _: "Renamed()")
    renamed = ib.estimate(ib.load_bank("bank:mmlu-pro"), answers)
    assert then.rows() == now.rows() == renamed.rows()
    assert [one.interval_kind for one in (now, then, renamed)] == ["calibrated"] * 3


def responses_to(items, *, models=("new",)):
    rows = [
        (f"model-{name}", item, (place + number) % 2)
        for number, name in enumerate(models)
        for place, item in enumerate(items)
    ]
    return ib.read_responses(pl.DataFrame(rows, schema=["model_id", "item_id", "response"], orient="row"))


def test_answers_to_all_items_are_used_and_to_others_with_the_item_models_interval():
    bank = ib.load_bank("bank:swebench-verified")
    found = ib.estimate(bank, responses_to(bank.item_ids))
    assert found.n_items[0, -1] == 500
    assert [found.value[0, -1], found.scores.low[0, -1], found.scores.high[0, -1]] == pytest.approx([0.5] * 3)
    chosen = [item for item in bank.item_ids if item not in ib.select(bank, 200).item_ids][:50]
    found = ib.estimate(bank, responses_to(chosen))
    assert (found.n_items[0, -1], found.interval_kind) == (50, "model-based")


def test_further_answers_are_left_out_and_named():
    bank = ib.load_bank("bank:mmlu-pro")
    others = [item for item in bank.item_ids if item not in ib.select(bank, 100).item_ids][:5]
    answers = responses_to([*ib.select(bank, 100).item_ids, *others], models=("a", "b"))
    found = ib.estimate(bank, answers)
    assert found.n_items[0, -1] == 100
    assert found.notes[0].text.startswith("answered 105 of 12,032 items, 100 of which count here.")
    with pytest.warns(ib.errors.DataWarning, match="5 of 105 items are not among the 100"):
        ib.compare(bank, answers)


def test_models_that_ran_different_sets_are_not_estimated_together():
    bank = ib.load_bank("bank:swebench-verified")
    few, many = (pl.DataFrame({"item_id": ib.select(bank, n).item_ids, "response": n / 100}) for n in (30, 100))
    table = pl.concat([few.with_columns(model_id=pl.lit("a")), many.with_columns(model_id=pl.lit("b"))])
    with pytest.raises(ib.errors.DataError, match="'100 items', '30 items'"):
        ib.estimate(bank, ib.read_responses(table))
    with pytest.warns(ib.errors.ModelWarning, match=r"30 .* have no response by 1 of 2 models"):
        found = ib.estimate(bank, ib.read_responses(table), selection=ib.select(bank, 30))
    assert found.n_items[0, -1] == 30


@pytest.mark.parametrize("place", ["bank:new", "hf:me/new"])
def test_a_bank_is_not_written_to_a_name(place, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ib.errors.ParameterError, match="must be written to a folder"):
        ib.load_bank("bank:mmlu-pro").save(place)


def test_swe_bench_verified_is_what_its_results_make(shared_dir):
    responses, _ = swe_bench_verified(shared_dir / "data" / "swebench_verified")
    with pytest.warns(ib.errors.DataWarning, match="2 of 100 models answer like another one"):
        whole = ib.calibrate(responses)
    packaged = ib.load_bank("bank:swebench-verified")
    chosen = ib.select(packaged, 60)
    some = responses.take(items=responses.item_indices(list(chosen.item_ids)))
    expected, found = ib.estimate(whole, some, selection=chosen), ib.estimate(packaged, some)
    np.testing.assert_allclose(packaged.past_models.scores, np.sort(whole.past_scores[:, -1])[::-1], atol=1e-7)
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(found.scores, name), getattr(expected.scores, name), rtol=0.0, atol=1e-4)
