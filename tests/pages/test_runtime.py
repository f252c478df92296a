"""The script that draws charts: kept in the cache, and taken from there only as it was made."""

from importlib.metadata import version

import pytest

from itembank.pages import pictures

EVIL = "document.title = 'not ours'"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, nothing remembered by this process, and a script that is quickly made."""
    vl_convert = pytest.importorskip("vl_convert")
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path))
    monkeypatch.setattr(pictures, "chart_script", pictures.chart_script.__wrapped__)
    bundled = vl_convert.javascript_bundle
    made = []

    def bundle(snippet):
        made.append(snippet)
        return bundled(snippet)

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return tmp_path / "pages" / f"vega-{version('vl-convert-python')}.js.gz", made


def test_a_script_that_another_put_into_the_cache_reaches_no_page(cache):
    path, made = cache
    path.parent.mkdir()
    path.write_bytes(pictures.packed(EVIL))
    script = pictures.chart_script()
    assert EVIL not in script
    assert "vegaEmbed" in script
    assert pictures.chart_script() == script  # what was made has taken its place
    assert len(made) == 1
    assert path.read_bytes() == pictures.packed(script)


@pytest.mark.parametrize("content", [b"", b"no gzip", pictures.packed(EVIL)[:-9]])
def test_what_is_damaged_is_made_again(cache, content):
    path, made = cache
    path.parent.mkdir()
    path.write_bytes(content)
    assert pictures._kept(path, pictures.LAST) is None
    assert made == []


def test_nothing_is_kept_where_it_is_not_known_what_is_made(cache, monkeypatch):
    path, made = cache
    monkeypatch.setattr(pictures, "DIGESTS", {})
    pictures.chart_script()
    assert (len(made), path.exists()) == (1, False)
