"""`itembank download`: public stores of per-item results, by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import Command, gathered
from itembank.cli.import_results import (
    drop_option,
    errors_option,
    finish_import,
    items_option,
    metric_option,
    skip_option,
)
from itembank.cli.options import format_option, models_option, output_option, refuse_unused
from itembank.cli.render import note, print_rows
from itembank.cli.spec_options import typed
from itembank.readers.reading_specs import ReadingSpec

if TYPE_CHECKING:
    from itembank.readers.public.read_public import PublishedCheck


@click.command("download", cls=Command)
@click.argument("name", required=False)
@output_option("the response file (its name must end in .parquet)", required=False)
@click.option("--list", "is_list", is_flag=True, help="List the stores, and stop.")
@click.option(
    "--from",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read the store's files in this folder, and fetch nothing.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where to put what is fetched.  [default: the user's cache]",
)
@click.option(
    "--model",
    "models_wanted",
    multiple=True,
    metavar="ID",
    help="Model to fetch, where each has its own repository.",
)
@click.option("--only", multiple=True, metavar="PATTERN", help="Fetch only files whose names match. Repeatable.")
@models_option
@items_option
@gathered("reading", metric_option, errors_option, skip_option, drop_option)
@format_option
def command(*, is_list: bool, **given: Any) -> None:
    """Fetch a public store of results, and turn it into a response file: SWE-bench, Open LLM Leaderboard, BFCL, ...

    \b
      itembank download --list
      itembank download alpaca-eval -o responses.parquet
      itembank download open-llm-leaderboard-v2 --model org/a --model org/b -o responses.parquet
      itembank download swebench-verified --from verified/ --items verified.csv -o responses.parquet

    An interrupted download goes on. What was read is compared with the scores that the store states; models whose score
    differs are named. Mind the licence of a store (--list): some allow no commercial use. Other choices of reading:
    itembank import on the folder of the files.
    """  # noqa: D301
    if is_list:
        _list_sources(given["output_format"])
        return
    folder = _folder(given)
    finish_import(given, lambda **known: _read(given, folder, known))


def _list_sources(output_format: str) -> None:
    """Print the table of sources."""
    from itembank.readers.public.sources import GIGABYTE, SOURCES  # noqa: PLC0415

    rows = [
        {
            "name": one.name,
            "holds": one.holds,
            "n_models": one.n_models,
            "n_items": one.n_items,
            "licence": one.licence,
            "checked_against": one.checked,
            "can_download": one.download is not None,
            "version": None if one.download is None else one.download.version,
            "most_gigabytes": None if one.download is None else one.download.most_bytes // GIGABYTE,
            "address": one.address,
        }
        for one in SOURCES.values()
    ]
    if output_format != "table":
        print_rows(rows, output_format)
        return
    for row in rows:
        row["can_download"] = "yes" if row["can_download"] else "no, get it by hand"
    where = ("version", "most_gigabytes", "address")
    print_rows(rows, output_format, title="Public sources", columns=[name for name in rows[0] if name not in where])
    print_rows(rows, output_format, title="Where they are", columns=("name", *where))
    note(
        "No commit is pinned: a download takes the newest one of the branch. Sizes are not known before it; "
        "most_gigabytes is where it is refused."
    )


def _folder(given: dict[str, Any]) -> Path:
    """Check the call, fetch what is to be fetched, and return where it is."""
    from itembank.cli.render import progress, warnings_as_notes  # noqa: PLC0415
    from itembank.readers.public.fetch import fetch_public  # noqa: PLC0415
    from itembank.readers.public.sources import public_source  # noqa: PLC0415

    if not given["name"] or given["output"] is None:
        raise click.UsageError("needs a NAME (see --list) and -o/--output.")
    source = public_source(given["name"])
    refuse_unused(
        ("metric", "metric" in source.takes, "sources that have several: " + _that_take("metric")),
        ("errors", "errors" in source.takes, "sources that tell errors: " + _that_take("errors")),
    )
    if given["folder"] is not None:
        fetched = "results that are fetched, not with --from"
        refuse_unused(*((name, False, fetched) for name in ("into", "models_wanted", "only")))
        return Path(given["folder"])
    with warnings_as_notes(), progress("download") as report:
        return fetch_public(
            given["name"], given["into"], models=given["models_wanted"], only=given["only"], progress=report
        )


def _that_take(choice: str) -> str:
    """Names of the sources that an option has a say in."""
    from itembank.readers.public.sources import SOURCES  # noqa: PLC0415

    return ", ".join(name for name, one in SOURCES.items() if choice in one.takes)


def _read(given: dict[str, Any], folder: Path, known: dict[str, Any]) -> Any:
    """Read, and say how the scores compare with the published ones."""
    from itembank.readers.public.read_public import read_public  # noqa: PLC0415
    from itembank.readers.public.sources import public_source  # noqa: PLC0415

    chosen = {**given["reading"], **public_source(given["name"]).choices, **typed(given["reading"])}
    empty: Any = "drop" if chosen.pop("drop_empty") else "error"
    found = read_public(given["name"], folder, spec=ReadingSpec(**chosen, empty=empty), **known)
    if found.check is not None:
        note(_words(found.check))
    return found.responses


def _words(check: "PublishedCheck") -> str:
    """Say in a line what the comparison found."""
    if not check.n_compared:
        return "The folder holds no published scores to compare with."
    return (
        f"Published scores: {check.n_compared} compared, {len(check.differing)} differ; largest difference "
        f"{check.largest:.2g}."
    )
