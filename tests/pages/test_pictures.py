"""Charts as files: PNG, SVG and PDF with title and note, in the width that documents show."""

import re
import struct
import sys
from importlib.metadata import version

import pytest

from itembank.errors import MissingDependencyError, ParameterError
from itembank.pages import pictures
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import OF_OBJECTS, marks, nominal, number, panels, picture
from itembank.pages.pictures import SHARPNESS, WIDTH
from itembank.pages.theme import COLOURS

SIGNATURES = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}


def drawn(name="a panel", title="Ten points", **choices):
    parts = marks("point", number("x", name), number("y", "Height"))
    data = Data(
        "points", {"x": list(range(10)), "y": [k**2 for k in range(10)], "panel": [name] * 10, "place": [0] * 10}
    )
    spec = choices.pop("spec", None) or picture(parts, height=200, **choices)
    return Chart(title, spec, (data,), "Ten points.", note="Each is a square.")


@pytest.mark.parametrize("kind", sorted(SIGNATURES))
def test_a_picture_is_written_in_the_format_of_its_name(tmp_path, kind):
    path = drawn().save(tmp_path / "sub" / f"figure.{kind}")
    assert path.read_bytes().startswith(SIGNATURES[kind])
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_another_ending_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(ParameterError, match=r"must end in one of 'png', 'svg', 'pdf', got 'figure\.bmp'"):
        drawn().save(tmp_path / "figure.bmp")
    assert list(tmp_path.iterdir()) == []


def test_a_picture_is_as_wide_as_documents_show_it_and_small(tmp_path):
    picture = drawn().save(tmp_path / "figure.png").read_bytes()
    width, _ = struct.unpack(">II", picture[16:24])
    assert width == pytest.approx(SHARPNESS * WIDTH, rel=0.05)
    assert len(picture) < 50_000


def test_title_note_and_what_a_menu_stands_at_are_in_the_picture(tmp_path):
    params = [{"name": "model", "value": "gpt", "bind": {"input": "select", "options": ["gpt", "other"]}}]
    text = drawn(params=params).save(tmp_path / "f.svg").read_text(encoding="utf-8")
    assert COLOURS["main"].light.lower() in text.lower()
    for words in ("Ten points", "Model: gpt. Each is a square.", "Height"):
        assert words in text


@pytest.mark.parametrize("name", sorted(OF_OBJECTS))
def test_names_in_a_given_order_may_be_those_of_every_object(tmp_path, name):
    """Vega-Lite drew nothing."""
    data = Data("points", {"x": [1, 2], "name": ["other", name]})
    spec = picture(marks("point", number("x"), nominal("name", [name, "other"])), height=60)
    text = Chart("Two", spec, (data,), "Two.").save(tmp_path / "f.svg").read_text(encoding="utf-8")
    assert 0 < text.index(f">{name}<") < text.index(">other<")


@pytest.mark.parametrize("name", ["$\\frac{1}$", "a_b^c \\{", "数学", "'+alert(1)+'"])
def test_names_from_strangers_are_shown_as_they_are(tmp_path, name):
    spec = panels("panel", "place", marks("point", number("x", name), number("y")), most=1)
    for one in (drawn(name), drawn(name, title=name, spec=spec)):
        text = one.save(tmp_path / "f.svg").read_text(encoding="utf-8")
        assert name.replace("'", "&apos;") in text or name in text


def test_titles_of_panels_are_as_long_as_their_panels_are_wide(tmp_path):
    names = ["grade school mathematics, word problems of 2021", "x" * 300]
    data = Data("points", {"panel": names, "place": [0, 1], "x": [1, 2], "y": [1, 2]})
    spec = panels("panel", "place", marks("point", number("x"), number("y")), n=2)
    text = Chart("Two", spec, (data,), "Two.").save(tmp_path / "f.svg").read_text(encoding="utf-8")
    assert f">{names[0]}<" in text
    assert 40 < len(re.findall(r">(x+)…<", text)[0]) < 80


def test_control_characters_of_names_are_shown_and_never_drawn(tmp_path):
    text = (
        drawn("\x1b[31mred\x00", title="\x1btwo\n" + 5000 * "x ").save(tmp_path / "f.svg").read_text(encoding="utf-8")
    )
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "\\x1b[31mred\\x00" in text


def test_a_notebook_shows_the_picture_and_escapes_names():
    shown = drawn(title="<b>bold</b>")._repr_html_()
    assert "data:image/svg+xml;base64," in shown
    assert "&lt;b&gt;bold" in shown
    assert "<script" not in shown


def test_what_is_not_installed_is_named_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError, match=r"charts need .*pip install vl-convert-python$"):
        drawn().save(tmp_path / "f.png")


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
