"""The engine, by a kind of study that the library does not have."""

from dataclasses import replace
from functools import partial

import polars as pl
import pytest

from itembank.errors import DataError, DataWarning
from itembank.responses.responses import ResponseMatrix
from itembank_studies import engine
from tests.attacks.mutating import flip_bit

TABLE = pl.DataFrame({"estimate": [0.25, 0.5], "model_id": ["a", "b"]})


def test_a_flipped_bit_changes_no_number_and_a_table_without_its_digest_or_in_another_place_is_refused(tmp_path, rng):
    engine.write_table(TABLE, tmp_path / "t.parquet")
    content, path = (tmp_path / "t.parquet").read_bytes(), tmp_path / "t.parquet"
    for position in rng.integers(8 * len(content), size=60):
        path.write_bytes(flip_bit(content, int(position)))
        try:
            (table,) = engine.read_tables([path])
        except DataError as error:
            assert "not what was written" in str(error)  # noqa: PT017
        else:
            assert table.equals(TABLE)
    other = tmp_path / "other.parquet"
    TABLE.write_parquet(other)
    assert not engine.is_whole(other)
    with pytest.raises(DataError, match="Delete what is damaged"):
        engine.read_tables([other])
    engine.write_table(TABLE, tmp_path / "summary.parquet")
    (tmp_path / "summary.parquet").rename(tmp_path / "estimates.parquet")
    with pytest.raises(DataError, match="not what was written there"):
        engine.read_tables([tmp_path / "estimates.parquet"])


RESPONSES = ResponseMatrix.create([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
SQUARES = engine.StudyKind("squares", "numbers", ("square",), ("sum",), "SquaresResult")
POWERS = engine.StudyKind("powers", "numbers", ("square", "cube"), ("sum",), "PowersResult")


def powers(number):
    return {"square": pl.DataFrame({"value": [number**2]}), "cube": pl.DataFrame({"value": [number**3]})}


def add_up(kind, folder):
    return {"sum": pl.DataFrame({name: kind.scan(folder, name).collect().sum()["value"] for name in kind.unit_tables})}


def make_study(kind, run=powers, *, seed=0, numbers=(2, 3, 5)):
    manifest = engine.StudyManifest.of(
        kind.name, {"seed": seed}, RESPONSES, division=[bytes(numbers)], seed=seed, n_folds=len(numbers)
    )
    return engine.Study(kind, manifest, dict(enumerate(numbers)), run, partial(add_up, kind))


def run_all(study, folder, *, n_jobs=1, resume=True):
    said = []
    engine.run_in_folder(study, folder, n_jobs=n_jobs, progress=lambda *step: said.append(step), resume=resume)
    return said


@pytest.mark.parametrize("kind", [SQUARES, POWERS], ids=lambda kind: kind.name)
def test_any_kind_of_study_runs_is_read_back_and_what_is_damaged_run_again(kind, tmp_path):
    said = run_all(make_study(kind), tmp_path / "study")
    assert said[0] == ("0 of 3 numbers", 0.0)
    assert said[1][0].startswith("1 of 3 numbers, about ")
    assert said[-1] == ("putting results together", 1.0)
    manifest, (table,) = kind.load(tmp_path / "study")
    assert (manifest.kind, manifest.n_folds, manifest.n_models, manifest.n_items) == (kind.name, 3, 2, 3)
    assert table["square"].to_list() == [4 + 9 + 25]
    assert table.columns == list(kind.unit_tables)
    (*_, last) = sorted((tmp_path / "study" / "parts").rglob("*.parquet"))
    last.write_bytes(last.read_bytes()[:-1])
    with pytest.warns(DataWarning, match="1 part of the study is damaged and run again: .*00002"):
        run_all(make_study(kind), tmp_path / "study")
    assert kind.is_whole_part(kind.part(tmp_path / "study", 2))


def test_a_stopped_study_runs_what_is_left_in_the_order_of_its_units(tmp_path):
    ran = []

    def stopped(number):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(number)
        return powers(number)

    study = replace(make_study(POWERS, stopped), units={2: 5, 0: 2, 1: 3})
    with pytest.raises(KeyboardInterrupt):
        run_all(study, tmp_path / "study")
    assert ran == [5, 2]
    with pytest.raises(DataError, match="is not finished: 2 of 3 numbers are done"):
        POWERS.load(tmp_path / "study")
    said = run_all(make_study(POWERS), tmp_path / "study")
    assert said[0] == ("2 of 3 numbers", 2 / 3)
    (table,) = POWERS.load(tmp_path / "study")[1]
    assert table["cube"].to_list() == [8 + 27 + 125]


@pytest.mark.parametrize("kind", [SQUARES, POWERS], ids=lambda kind: kind.name)
def test_half_a_unit_is_never_left(kind, tmp_path, monkeypatch):
    honest, written = pl.DataFrame.write_parquet, []

    def full(table, path, **options):
        written.append(path)
        if len(written) == 2 * len(kind.unit_tables):  # the last table of the second unit
            raise OSError("no space left on device")
        return honest(table, path, **options)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(OSError, match="no space left"):
        run_all(make_study(kind), tmp_path / "study")
    monkeypatch.undo()
    assert list((tmp_path / "study" / "parts").iterdir()) == [kind.part(tmp_path / "study", 0)]
    assert run_all(make_study(kind), tmp_path / "study")[0] == ("1 of 3 numbers", 1 / 3)


def test_only_the_same_study_goes_on_and_errors_say_where_they_arose(tmp_path):
    run_all(make_study(SQUARES), tmp_path / "study")
    with pytest.raises(DataError, match="is another study: 'seed' of the study file changed"):
        run_all(make_study(SQUARES, seed=1), tmp_path / "study")
    with pytest.raises(DataError, match="the responses, costs, dates or groups changed"):
        run_all(make_study(SQUARES, numbers=(2, 3)), tmp_path / "study")
    with pytest.raises(DataError, match="is a study already"):
        run_all(make_study(SQUARES), tmp_path / "study", resume=False)
    with pytest.raises(DataError, match=r"is a squares study\."):
        POWERS.load(tmp_path / "study")
    with pytest.raises(DataError, match=r"^fold 3: no models$"), engine.errors_at("fold 3"):
        raise DataError("no models")
