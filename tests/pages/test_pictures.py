"""Charts as files, what they are made of, and colours that all can tell apart (Machado and others, 2009)."""

import base64
import math
import re
import struct
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

from itembank.errors import MissingDependencyError, ParameterError
from itembank.pages import pictures, theme
from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import (
    OF_OBJECTS,
    equals,
    marks,
    menu,
    nominal,
    number,
    panels,
    picture,
    shade,
    span,
    tips,
    when,
)
from itembank.pages.pictures import SHARPNESS, WIDTH
from itembank.pages.theme import COLOURS
from tests.pages.reading import holds

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


def test_no_picture_is_written_by_another_ending_or_without_the_library(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match=r"must end in one of 'png', 'svg', 'pdf', got 'figure\.bmp'"):
        drawn().save(tmp_path / "figure.bmp")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingDependencyError, match=r"charts need .*pip install vl-convert-python$"):
        drawn().save(tmp_path / "f.png")


def test_a_picture_is_as_wide_as_documents_show_it_and_has_title_note_and_menus(tmp_path):
    picture = drawn().save(tmp_path / "figure.png").read_bytes()
    width, _ = struct.unpack(">II", picture[16:24])
    assert width == pytest.approx(SHARPNESS * WIDTH, rel=0.05)
    assert len(picture) < 50_000
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


def test_control_characters_and_markup_of_names_are_shown_and_never_drawn(tmp_path):
    picture = drawn("\x1b[31mred\x00", title="\x1btwo\n" + 5000 * "x ").save(tmp_path / "f.svg")
    text = picture.read_text(encoding="utf-8")
    assert ("\x1b" in text, "\x00" in text) == (False, False)
    assert "\\x1b[31mred\\x00" in text
    shown = drawn(title="<b>bold</b>")._repr_html_()
    holds(shown, "data:image/svg+xml;base64,", "&lt;b&gt;bold")
    assert "<script" not in shown


EVIL = "document.title = 'not ours'"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, nothing remembered by this process, and a script that is quickly made."""
    vl_convert = pytest.importorskip("vl_convert")
    monkeypatch.setenv("ITEMBANK_CACHE", str(tmp_path))
    monkeypatch.setattr(pictures, "chart_script", pictures.chart_script.__wrapped__)
    bundled, made = vl_convert.javascript_bundle, []

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
    assert (EVIL in script, "vegaEmbed" in script) == (False, True)
    assert pictures.chart_script() == script  # what was made has taken its place
    assert (len(made), path.read_bytes()) == (1, pictures.packed(script))


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


def test_channels_and_looks_of_a_mark():
    x, y = number("size", "Items", log=True), number("error", "Points", ".1f", domain=(0, 1), tickCount=3)
    color = shade("method", {"ours": "@main", "chance": "@muted"})
    made = marks("rule", x, span(y, "low", "high"), where=("datum.k > 1", equals("held", True)), color=color, size=9)
    assert made["mark"] == {"type": "rule", "size": 9}
    assert made["transform"] == [{"filter": "datum.k > 1"}, {"filter": {"field": "held", "equal": True}}]
    encoding = made["encoding"]
    assert encoding["x"] == {**x, "scale": {"type": "log"}}
    assert (encoding["y"]["field"], encoding["y2"]) == ("low", {"field": "high"})
    assert encoding["y"]["axis"] == {"title": "Points", "format": ".1f", "tickCount": 3}
    assert encoding["color"]["scale"] == {"domain": ["ours", "chance"], "range": ["@main", "@muted"]}
    assert "to" not in encoding["y"]
    told = tips(model="Model", score=("Score", ".1%"))
    made = marks("point", tip=told, color=when("datum.a > 0", "@main", "@other"), stroke="@ink")
    by_test = {"condition": {"test": "datum.a > 0", "value": "@main"}, "value": "@other"}
    assert made["encoding"] == {"color": by_test, "tooltip": told}
    assert made["mark"] == {"type": "point", "stroke": "@ink"}


def test_one_name_stands_alone_and_several_in_panels():
    layer = marks("bar", number("n"), nominal("task", "place"))
    params = menu("model", ["a", "b"], "b")
    several = panels("split", "place", layer, n=3, height=100, params=params)
    assert (several["facet"]["sort"], several["spec"]["layer"]) == ({"field": "place", "op": "min"}, [layer])
    assert [panels("split", "place", layer, n=n)["columns"] for n in (0, 2, 5)] == [3, 2, 3]
    alone = panels("split", "place", layer, n=1, alone=200, params=params)
    assert (alone["height"], alone["layer"], alone["params"]) == (200, [layer], several["params"])
    assert "bind" not in menu("model", ["a"], "a")[0]


def test_long_names_are_written_in_two_lines_that_keep_what_tells_them_apart():
    names = ["executable_multiple_function", "executable_parallel_function", "executable_parallel_multiple_function"]
    names += ["short", f"{'x' * 50}/{'y' * 50}_end"]
    data = Data("d", {"name": names, "n": [1.0] * len(names)})
    for limit, wanted in (
        (240, ["executable_multiple_function", "executable_parallel_multiple_", "function", "x" * 34, "short"]),
        (126, ["executable_", "multiple_function", "parallel_function", "…ultiple_function", "short"]),
    ):
        bars = marks("bar", number("n"), nominal("name", labelLimit=limit))
        address = Chart("T", picture(bars, height=200), (data,), "Bars.").svg_address()
        svg = base64.b64decode(address.partition(",")[2]).decode()
        lines = re.findall(r">([^<>]+)</(?:text|tspan)>", svg)
        assert set(wanted) <= set(lines), lines
        assert any(line.endswith("_end") and line.startswith("…") for line in lines)


VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_CONES = np.array([
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
])  # fmt: skip
TO_OKLAB = np.array([
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
])  # fmt: skip
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def linear(colour):
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def least_distance(colours, vision):
    seen = np.clip(np.array([linear(one) for one in colours]) @ np.array(VISIONS[vision]).T, 0.0, 1.0)
    places = np.cbrt(seen @ TO_CONES.T) @ TO_OKLAB.T
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return distances[np.triu_indices(len(colours), 1)].min()


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_categories_are_as_far_apart_as_okabe_and_ito_with_every_colour_vision(mode):
    colours = [getattr(tone, mode) for tone in theme.CATEGORIES]
    worst = min(least_distance(OKABE_ITO, vision) for vision in VISIONS)
    assert min(least_distance(colours, vision) for vision in VISIONS) > 0.95 * worst


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_marks_and_text_stand_out_from_the_background(mode):
    back = getattr(theme.COLOURS["paper"], mode)
    assert min(contrast(getattr(tone, mode), back) for tone in theme.CATEGORIES) >= 3.0
    assert contrast(getattr(theme.COLOURS["ink"], mode), back) >= 7.0
    assert contrast(getattr(theme.COLOURS["muted"], mode), back) >= 4.5
    panel = getattr(theme.COLOURS["panel"], mode)
    for verdict in ("good", "bad", "warn"):
        assert contrast(getattr(theme.COLOURS[verdict], mode), panel) >= 4.5


def test_numbers_are_written_as_people_say_them():
    points = [theme.points(value) for value in (0.0137, -0.0002, math.nan)]
    assert [*points, theme.points(0.02, is_signed=True)] == ["1.4 points", "0.0 points", "unknown", "+2.0 points"]
    shares = [theme.percent(0.7386), theme.percent(0.5, 0), theme.level_words(0.95), theme.level_words(0.999)]
    assert shares == ["73.9 %", "50 %", "95 %", "99.9 %"]
    intervals = [theme.share_interval_words(0.93, 0.97), theme.share_interval_words(0.95, 0.95)]
    assert [theme.interval_words(0.739, 0.803), *intervals] == ["73.9 to 80.3", "93 % to 97 %", "95 %"]
    money = [theme.money(3.2, "USD"), theme.money(12345.4, "tokens"), theme.money(0.004567, "USD")]
    assert money == ["3.20 USD", "12,345 tokens", "0.00457 USD"]
    assert (theme.count(14042), theme.money(7.0, "items")) == ("14,042", "7 items")


def test_the_theme_loads_nothing_heavy_and_shortens_names():
    assert theme.shortened("meta-llama/Llama-3.1-405B-Instruct-Turbo", 15) == "meta-ll…t-Turbo"
    assert theme.shortened("arc", 15) == "arc"
    program = "import sys, itembank.pages.theme; print({'numpy', 'polars'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
