"""`itembank import public`: public stores of per-item results, by name."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.import_results import finish_import, import_options, import_spec
from itembank.cli.options import refuse_unused
from itembank.cli.reading_options import GENERAL_OPTIONS, OPTIONS_OF
from itembank.cli.render import note, print_rows
from itembank.cli.spec_options import typed

if TYPE_CHECKING:
    from itembank.readers.public.published import PublishedCheck


@click.command("public", short_help="Read, and fetch, public stores by name.")
@import_options(
    click.option("--list", "is_list", is_flag=True, help="List the sources, and stop."),
    click.option(
        "--from",
        "folder",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Folder of the source's files; with --download, where to put them.  [default: the user's cache]",
    ),
    click.option("--download", is_flag=True, help="Fetch the files first; an interrupted download goes on."),
    click.option(
        "--model",
        "models_wanted",
        multiple=True,
        metavar="ID",
        help="Model to fetch, where each has its own repository.",
    ),
    click.option("--only", multiple=True, metavar="PATTERN", help="Fetch only files whose names match. Repeatable."),
    OPTIONS_OF["metric"],
    OPTIONS_OF["errors"],
    arguments=click.argument("name", required=False),
    values=GENERAL_OPTIONS,
    needs_output=False,
)
def command(**given: Any) -> None:
    """Read a public store of results: SWE-bench, Open LLM Leaderboard, AlpacaEval, BFCL, ...

    \b
      itembank import public --list
      itembank import public bfcl --from BFCL-Result/2024-08-11 -o responses.parquet
      itembank import public swebench-verified --download --items verified.csv -o responses.parquet
      itembank import public open-llm-leaderboard-v2 --download --model org/a --model org/b -o responses.parquet

    What was read is compared with the scores that the source states; models whose score differs are named. Mind the
    licence of a source (--list): some allow no commercial use.
    """  # noqa: D301
    own = {name: given["reading"].pop(name) for name in ("is_list", "folder", "download", "models_wanted", "only")}
    if own["is_list"]:
        _list_sources(given["output_format"])
        return
    folder = _folder(given, own)
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


def _folder(given: dict[str, Any], own: dict[str, Any]) -> Path:
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
    if not own["download"]:
        refuse_unused(("models_wanted", False, "--download"), ("only", False, "--download"))
        if own["folder"] is None:
            raise click.UsageError("needs --from DIR (the source's files), or --download.")
        return Path(own["folder"])
    with warnings_as_notes(), progress("download") as report:
        return fetch_public(
            given["name"], own["folder"], models=own["models_wanted"], only=own["only"], progress=report
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
    found = read_public(given["name"], folder, spec=import_spec("auto", **chosen), **known)
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
