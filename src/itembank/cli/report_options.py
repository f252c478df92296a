"""Options for a figure and for a page of a result, and how these are written."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from itembank.cli.command import Decorator
from itembank.cli.render import note

if TYPE_CHECKING:
    from itembank.pages.blocks import Chart
    from itembank.pages.render import Page

Function = TypeVar("Function", bound=Callable[..., Any])


def figure_option(what: str = "it", *, required: bool = False) -> Decorator:
    """Make `--figure`; a name that no figure can have is refused before any work."""
    return click.option(
        "--figure",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_checked_figure,
        required=required,
        metavar="FILE",
        help=f"{'Draw' if required else 'Also draw'} {what}: a PNG, SVG or PDF file.",
    )


def _checked_figure(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and not ctx.resilient_parsing:
        from itembank.pages.pictures import check_drawing_library, check_picture_destination  # noqa: PLC0415

        check_picture_destination(path)
        check_drawing_library()
    return path


def write_figure(chart: "Chart", path: Path) -> None:
    """Write a chart as a picture, and say where it is."""
    note(f"Figure: {chart.save(path)}")


def report_option(function: Function) -> Function:
    """Add `--report`; a name that no page can have is refused before any work."""
    return click.option(
        "--report",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=checked_report_path,
        metavar="FILE",
        help="Also write a page to look at and to send: one HTML file.",
    )(function)


def checked_report_path(ctx: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse what no page could be written to."""
    if path is not None and not ctx.resilient_parsing:
        from itembank.pages.pictures import check_libraries  # noqa: PLC0415
        from itembank.pages.render import check_page_destination  # noqa: PLC0415

        check_page_destination(path)
        check_libraries()
    return path


def write_report(page: "Page", path: Path) -> None:
    """Write a page and say where it is."""
    note(f"Report: {page.save(path)}")


def note_report(path: Path | None) -> None:
    """Say how to see a result as a page, where no page was asked for."""
    if path is None:
        note("To see this as a page: --report FILE.html")


def report_result(path: Path | None, output_format: str, page: "Callable[[str], Page]") -> None:
    """Write the page of a result where one was asked for; else say below a table how to see it.

    `page` makes the page from the command as it was typed.
    """
    if path is not None:
        write_report(page(typed_command()), path)
    elif output_format == "table":
        note_report(path)


def typed_command() -> str:
    """Return the command as it was typed, for the page that it writes."""
    return shlex.join(["itembank", *sys.argv[1:]])
