"""The banks that come with the package."""

import zipfile

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_places import PACKAGED
from itembank.publishing.recipes import origin_of
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
    origin = origin_of(PACKAGED / name)
    assert origin["licence"] in {"MIT", "Apache-2.0"}
    assert all(origin[word] in NOTICE for word in ("source", "revision"))
    bank = ib.load_bank(f"bank:{name}")
    assert (bank.n_models, bank.newest is None) == (0, False)
    columns = set(bank.responses.items.columns)  # no text, nothing of a model
    assert columns - {"task"} == {"item_id", "scenario", "subscenario"}


@pytest.mark.parametrize("name", BANKS)
def test_each_gives_calibrated_intervals_from_its_items(name):
    bank = ib.load_bank(f"bank:{name}")
    for size in (30, 60, 100, 200):
        chosen = ib.select(bank, size)
        right = np.arange(size) % 2
        table = pl.DataFrame({"model_id": "new", "item_id": chosen.item_ids, "response": right})
        found = ib.estimate(bank, ib.responses_from_frame(table.with_columns(scenario=pl.lit(chosen.scenarios[0]))))
        assert (found.method, found.interval_kind) == ("stacked", "calibrated")
        assert found.n_total[-1] == bank.n_total > bank.n_items - 1
        assert 0.2 < found.scores.low[0, -1] < found.value[0, -1] < found.scores.high[0, -1] < 0.9


def test_swe_bench_verified_is_what_its_results_make(shared_dir):
    responses, _ = swe_bench_verified(shared_dir / "data" / "swebench_verified")
    with pytest.warns(ib.errors.DataWarning, match="2 of 100 models answer like another one"):
        whole = ib.build_bank(responses)
    packaged = ib.load_bank("bank:swebench-verified")
    chosen = ib.select(packaged, 60)
    some = responses.take(items=responses.item_indices(list(chosen.item_ids)))
    expected, found = ib.estimate(whole, some, selection=chosen), ib.estimate(packaged, some)
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(getattr(found.scores, name), getattr(expected.scores, name), rtol=0.0, atol=1e-4)
