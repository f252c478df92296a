"""Downloads against a server on this machine: resumed, bounded, checked, and led astray."""

import hashlib

import pytest

from itembank.errors import DataError, IntegrityError, ParameterError
from itembank.readers.public.fetch import ATTEMPTS, check_address, download
from tests.readers.public.loopback import serving

CONTENT = bytes(range(256)) * 5000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MOST = 10_000_000


@pytest.fixture
def web():
    with serving() as one:
        one.files["/a.bin"] = CONTENT
        yield one


def fetch(web, folder, **choices):
    return download(f"{web.address}/a.bin", folder / "a.bin", **{"most_bytes": MOST, "sha256": SHA256, **choices})


def starts(web):
    """Where each request asked to begin."""
    return [headers.get("Range") for _, headers in web.requests]


def test_a_file_arrives_whole_and_leaves_nothing_beside_it(web, tmp_path):
    told = []
    path = fetch(web, tmp_path / "new", progress=lambda message, part: told.append((message, part)))
    assert path.read_bytes() == CONTENT
    assert [one.name for one in path.parent.iterdir()] == ["a.bin"]
    assert told[-1] == ("fetching a.bin (1.3 MB)", 1.0)


def test_a_file_of_this_machine(tmp_path):
    (tmp_path / "b").write_bytes(b"x")
    assert download((tmp_path / "b").as_uri(), tmp_path / "c", most_bytes=9).read_bytes() == b"x"


@pytest.mark.parametrize("has_lengths", [True, False])
def test_a_broken_connection_is_made_again_where_it_ended(has_lengths, web, tmp_path):
    web.has_lengths = has_lengths
    web.breaks = [300_000, 1, 400_000] if has_lengths else []
    assert fetch(web, tmp_path).read_bytes() == CONTENT
    if has_lengths:
        assert starts(web) == [None, "bytes=300000-", "bytes=300001-", "bytes=700001-"]


def test_what_has_arrived_stays_for_the_next_call(web, tmp_path):
    web.breaks = [1000] * ATTEMPTS
    with pytest.raises(DataError, match=r"could not be fetched.*4,000 bytes have arrived and are kept"):
        fetch(web, tmp_path)
    assert not (tmp_path / "a.bin").exists()
    assert fetch(web, tmp_path).read_bytes() == CONTENT
    assert starts(web)[-1] == "bytes=4000-"


def test_a_file_that_changed_in_between_is_fetched_anew(web, tmp_path):
    web.breaks = [1000] * ATTEMPTS
    with pytest.raises(DataError):
        fetch(web, tmp_path)
    web.files["/a.bin"] = CONTENT[::-1]
    assert fetch(web, tmp_path, sha256=None).read_bytes() == CONTENT[::-1]


def test_a_server_without_ranges_gives_the_whole_again(web, tmp_path):
    web.has_ranges, web.breaks = False, [1000]
    assert fetch(web, tmp_path).read_bytes() == CONTENT


def test_a_part_that_is_the_whole_is_taken(web, tmp_path):
    tag = f'"{SHA256[:8]}"'
    (tmp_path / ".a.bin.part").write_bytes(CONTENT)
    (tmp_path / ".a.bin.tag").write_text(tag)
    assert fetch(web, tmp_path).read_bytes() == CONTENT
    assert starts(web) == [f"bytes={len(CONTENT)}-"]


def test_a_part_longer_than_the_file_is_thrown_away(web, tmp_path):
    (tmp_path / ".a.bin.part").write_bytes(CONTENT + b"more")
    (tmp_path / ".a.bin.tag").write_text(f'"{SHA256[:8]}"')
    assert fetch(web, tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_stays(web, tmp_path):
    with pytest.raises(IntegrityError, match=f"SHA-256 {'0' * 64}, got {SHA256}"):
        fetch(web, tmp_path, sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_lengths", [True, False])
def test_a_file_too_large_is_refused(has_lengths, web, tmp_path):
    web.has_lengths = has_lengths
    with pytest.raises(DataError, match="at most 1,000 bytes"):
        fetch(web, tmp_path, most_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_trouble_of_the_server_passes(web, tmp_path):
    web.errors = [503, 429]
    assert fetch(web, tmp_path).read_bytes() == CONTENT


def test_a_file_that_is_not_there_is_asked_for_once(web, tmp_path):
    with pytest.raises(DataError, match="404"):
        download(f"{web.address}/b.bin", tmp_path / "b.bin", most_bytes=MOST)
    assert len(web.requests) == 1


def test_another_place_on_this_machine_may_be_led_to(web, tmp_path):
    web.leads["/a.bin"] = "/b.bin"
    web.files["/b.bin"] = CONTENT
    assert fetch(web, tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("place", ["http://example.invalid/a.bin", "file:///etc/hostname", "ftp://example.invalid/a"])
def test_a_place_that_is_not_https_is_not_followed(place, web, tmp_path):
    web.leads["/a.bin"] = place
    with pytest.raises((ParameterError, DataError), match=r"must begin with https|not allowed"):
        fetch(web, tmp_path)
    assert len(web.requests) == 1
    assert not (tmp_path / "a.bin").exists()


@pytest.mark.parametrize("address", ["http://example.invalid/x", "ftp://x/y", "x", "http://127.0.0.1.example.invalid/"])
def test_addresses_must_be_https(address):
    with pytest.raises(ParameterError, match="https://"):
        check_address(address)


def test_addresses_that_may_be():
    for address in ("https://example.invalid/x", "file:///x", "http://localhost:80/x", "http://[::1]/x"):
        check_address(address)
