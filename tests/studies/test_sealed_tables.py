import polars as pl
import pytest

from itembank.errors import DataError
from itembank.studies.sealed_tables import is_whole, read_tables, write_table
from tests.attacks.mutating import flip_bit

TABLE = pl.DataFrame({"estimate": [0.25, 0.5], "model_id": ["a", "b"]})


def test_what_is_written_is_read_back(tmp_path):
    write_table(TABLE, tmp_path / "t.parquet")
    assert read_tables([tmp_path / "t.parquet"])[0].equals(TABLE)


def test_a_flipped_bit_never_changes_a_number(tmp_path, rng):
    write_table(TABLE, tmp_path / "t.parquet")
    content, path = (tmp_path / "t.parquet").read_bytes(), tmp_path / "t.parquet"
    for position in rng.integers(8 * len(content), size=60):
        path.write_bytes(flip_bit(content, int(position)))
        try:
            (table,) = read_tables([path])
        except DataError as error:
            assert "not what was written" in str(error)  # noqa: PT017
        else:
            assert table.equals(TABLE)


def test_a_table_without_a_digest_is_refused(tmp_path):
    path = tmp_path / "other.parquet"
    TABLE.write_parquet(path)
    assert not is_whole(path)
    with pytest.raises(DataError, match="Delete what is damaged"):
        read_tables([path])


def test_another_table_in_its_place_is_refused(tmp_path):
    write_table(TABLE, tmp_path / "summary.parquet")
    (tmp_path / "summary.parquet").rename(tmp_path / "estimates.parquet")
    with pytest.raises(DataError, match="not what was written there"):
        read_tables([tmp_path / "estimates.parquet"])
