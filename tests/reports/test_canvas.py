import sys

import pytest

from itembank.errors import MissingDependencyError, ParameterError
from itembank.reports.canvas import new_figure, panels, put_title, save_figure

SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("kind", sorted(SIGNATURES))
def test_a_figure_is_written_in_the_format_of_its_name(tmp_path, kind):
    path = save_figure(new_figure(2.0, 2.0), tmp_path / "sub" / f"figure.{kind}")
    assert path.read_bytes().startswith(SIGNATURES[kind])
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_another_ending_is_refused_and_nothing_written(tmp_path):
    with pytest.raises(ParameterError, match=r"must end in one of 'png', 'svg', 'pdf', got 'figure\.bmp'"):
        save_figure(new_figure(2.0, 2.0), tmp_path / "figure.bmp")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'itembank\[plot\]'"):
        new_figure(2.0, 2.0)


def test_drawing_leaves_pyplot_and_its_state_alone():
    loaded_before = "matplotlib.pyplot" in sys.modules
    new_figure(2.0, 2.0)
    assert ("matplotlib.pyplot" in sys.modules) == loaded_before


@pytest.mark.parametrize("name", ["$\\frac{1}$", "cost in $ and more $", "a_b^c \\{", "数学"])
def test_names_from_strangers_are_shown_as_they_are(tmp_path, name):
    figure = new_figure(2.0, 2.0)
    axes = panels(figure, 1, 1)[0]
    put_title(axes, name)
    assert save_figure(figure, tmp_path / "figure.png").stat().st_size > 0
    assert axes.get_title(loc="left") == name


def test_panels_stand_in_rows_and_share_their_scales():
    axes = panels(new_figure(6.0, 4.0), 5, 3)
    assert len(axes) == 5
    axes[0].set_ylim(-2.0, 7.0)
    assert all(one.get_ylim() == (-2.0, 7.0) for one in axes)


def test_control_characters_of_names_are_shown_and_never_drawn(tmp_path):
    figure = new_figure(2.0, 2.0)
    put_title(figure.add_subplot(), "\x1b[31mred\x00\nsecond line")
    text = save_figure(figure, tmp_path / "f.svg").read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert "\x00" not in text
    assert figure.axes[0].get_title(loc="left") == "\\x1b[31mred\\x00\nsecond line"
