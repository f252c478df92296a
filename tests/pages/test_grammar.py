import base64
import re

from itembank.pages.blocks import Chart, Data
from itembank.pages.grammar import equals, marks, menu, nominal, number, panels, picture, shade, span, tips, when


def test_a_mark_draws_channels_and_has_looks_of_its_own():
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


def test_a_colour_by_a_test_is_a_channel_and_one_by_name_a_look():
    told = tips(model="Model", score=("Score", ".1%"))
    made = marks("point", tip=told, color=when("datum.a > 0", "@main", "@other"), stroke="@ink")
    assert made["encoding"] == {
        "color": {"condition": {"test": "datum.a > 0", "value": "@main"}, "value": "@other"},
        "tooltip": told,
    }
    assert made["mark"] == {"type": "point", "stroke": "@ink"}


def test_one_name_stands_alone_and_several_in_panels():
    layer = marks("bar", number("n"), nominal("task", "place"))
    params = menu("model", ["a", "b"], "b")
    several = panels("split", "place", layer, n=3, height=100, params=params)
    assert several["facet"]["sort"] == {"field": "place", "op": "min"}
    assert several["spec"]["layer"] == [layer]
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
