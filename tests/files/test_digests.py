import hashlib

import numpy as np
import pytest
from safetensors.numpy import save_file

from itembank.files.digests import BLANK, MARK, N_DIGITS, is_sealed, seal, seal_holds


def sealed(path):
    save_file({"numbers": np.arange(5.0)}, path, {"made": f"by a test {BLANK}"})
    seal(path)
    return path.read_bytes()


def test_the_digest_is_that_of_the_file_with_zeros_in_its_place(tmp_path):
    content = sealed(tmp_path / "file")
    place = content.index(MARK) + len(MARK)
    zeroed = content[:place] + b"0" * N_DIGITS + content[place + N_DIGITS :]
    assert content[place : place + N_DIGITS].decode() == hashlib.sha256(zeroed).hexdigest()
    assert seal_holds(tmp_path / "file")


def test_a_changed_byte_is_found_wherever_it_is(tmp_path):
    path = tmp_path / "file"
    content = sealed(path)
    for place in range(0, len(content), 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert not seal_holds(path), place


@pytest.mark.parametrize("content", [b"", b"short", b"PAR1" + b"\xff" * 20, b"\xff" * 40, b"PAR1PAR1"])
def test_a_file_without_a_digest_has_none(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert not is_sealed(path)
    assert not seal_holds(path)
    with pytest.raises(ValueError, match="no place"):
        seal(path)
