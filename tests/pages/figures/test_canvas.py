import sys

import pytest
from PIL import Image

from itembank.errors import MissingDependencyError, ParameterError
from itembank.pages.figures.canvas import new_figure, panels, put_foot, put_message, put_title, save_figure

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


def test_without_matplotlib_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "itembank.pages.figures.notebook_figures", raising=False)
    with pytest.raises(MissingDependencyError, match=r"pip install matplotlib$"):
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
    axes = figure.add_subplot()
    put_title(axes, "\x1b[31mred\x00\nsecond line")
    axes.set_yticks([0.0, 1.0], ["\x1bzero", "one $x$"], parse_math=False)
    text = save_figure(figure, tmp_path / "f.svg").read_text(encoding="utf-8")
    assert "\x1b" not in text
    assert "\x00" not in text
    assert figure.axes[0].get_title(loc="left") == "\\x1b[31mred\\x00\nsecond line"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["\\x1bzero", "one $x$"]


def test_line_breaks_of_tick_labels_stay_breaks_and_control_characters_are_escaped(tmp_path):
    figure = new_figure(3.0, 2.0)
    axes = figure.add_subplot()
    axes.set_yticks([0.0, 1.0], ["random\nsampling", "\x1btwo\nlines"])
    for _ in range(2):  # what was written is written again alike
        save_figure(figure, tmp_path / "f.png")
        assert [label.get_text() for label in axes.get_yticklabels()] == ["random\nsampling", "\\x1btwo\nlines"]


def test_a_notebook_shows_a_figure_as_large_as_in_print(tmp_path):
    figure = new_figure(3.0, 2.0)
    panels(figure, 1, 1)[0].plot([0, 1], [0, 1])
    picture, size = figure._repr_png_()
    assert picture == save_figure(figure, tmp_path / "f.png").read_bytes()
    assert size == {"width": 288, "height": 192}


def test_a_png_file_has_a_palette_and_is_small(tmp_path):
    figure = new_figure(7.2, 4.0)
    axes = panels(figure, 1, 1)[0]
    axes.plot(range(50), range(50), "o-")
    path = save_figure(figure, tmp_path / "figure.png")
    with Image.open(path) as image:
        assert image.mode == "P"
        assert image.size == (1080, 600)
    assert path.stat().st_size < 30_000


def test_message_note_and_legend_never_lie_over_the_panels_or_each_other():
    figure = new_figure(5.0, 4.0)
    axes = panels(figure, 2, 2)
    handles = [axes[0].plot([0, 1], [0, k])[0] for k in range(5)]
    put_message(figure, "a message of many words that takes more than one line of the figure " * 2)
    put_foot(figure, "a note that says what bands are " * 5, handles, [f"$name {k}$" for k in range(5)])
    figure.draw_without_rendering()
    note, legend, panel = (
        one.get_window_extent() for one in (figure.texts[-1], figure.legends[0], axes[0].xaxis.get_ticklabels()[0])
    )
    title = figure._suptitle.get_window_extent()
    assert note.y0 >= 0.0
    assert note.y1 <= legend.y0 + 1.0
    assert legend.y1 <= panel.y0 + 1.0
    assert axes[0].get_window_extent().y1 < title.y0
    assert max(title.x1, note.x1, legend.x1) <= figure.bbox.x1


def test_names_of_any_length_leave_room_for_the_panels():
    figure = new_figure(7.2, 4.0)
    axes = panels(figure, 1, 1)[0]
    (line,) = axes.plot([0, 1], [0, 1])
    name = "x" * 5000
    put_message(figure, name)
    put_title(axes, name)
    put_foot(figure, "", [line], [name])
    figure.draw_without_rendering()
    assert axes.get_window_extent().height > 0.3 * figure.bbox.height
    assert axes.get_window_extent().width > 0.5 * figure.bbox.width
