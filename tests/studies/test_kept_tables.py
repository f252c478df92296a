import polars as pl
import pytest

from itembank.errors import DataError
from itembank.studies.kept_tables import is_whole, read_tables, write_table
from tests.attacks.mutating import flip_bit

SEALED = {"sha256": "of a manifest"}
TABLE = pl.DataFrame({"estimate": [0.25, 0.5], "model_id": ["a", "b"]})


def test_what_is_written_is_read_back(tmp_path):
    write_table(TABLE, tmp_path / "t.parquet")
    assert read_tables([tmp_path / "t.parquet"], SEALED)[0].equals(TABLE)


def test_a_flipped_bit_never_changes_a_number(tmp_path, rng):
    write_table(TABLE, tmp_path / "t.parquet")
    content, path = (tmp_path / "t.parquet").read_bytes(), tmp_path / "t.parquet"
    for position in rng.integers(8 * len(content), size=60):
        path.write_bytes(flip_bit(content, int(position)))
        try:
            (table,) = read_tables([path], SEALED)
        except DataError as error:
            assert "not what was written" in str(error)  # noqa: PT017
        else:
            assert table.equals(TABLE)


def test_tables_of_earlier_releases_have_no_digest(tmp_path):
    path = tmp_path / "old.parquet"
    TABLE.write_parquet(path)
    assert is_whole(path, {})
    assert not is_whole(path, SEALED)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="Delete what is damaged"):
        read_tables([path], {})


def test_another_table_in_its_place_is_refused(tmp_path):
    write_table(TABLE, tmp_path / "summary.parquet")
    (tmp_path / "summary.parquet").rename(tmp_path / "estimates.parquet")
    with pytest.raises(DataError, match="not what was written there"):
        read_tables([tmp_path / "estimates.parquet"], SEALED)
