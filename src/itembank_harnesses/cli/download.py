"""`itembank download`."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.import_results import Items, SpecFile, write_read
from itembank.cli.options import file_choices, refuse_unused
from itembank.cli.render import Printer, note, working
from itembank.cli.signatures import argument, option, verb
from itembank.readers.reading_specs import ReadingSpec
from itembank.tabular import picked
from itembank_harnesses.public.sources import GIGABYTE
from itembank_harnesses.public.stores import SOURCES, public_source


@verb("download")
def download_command(
    *,
    name: Annotated[str | None, argument()],
    output: Annotated[Path | None, options.output("the response file (its name must end in .parquet)")],
    folder: Annotated[
        Path | None,
        option(
            "Read the store's files in this folder, and fetch nothing.", "--from", metavar="DIR", type=options.FOLDER
        ),
    ],
    models_wanted: Annotated[
        tuple[str, ...], option("Model to fetch, if each has its own repository. Repeatable.", "--model", metavar="ID")
    ],
    only: Annotated[
        tuple[str, ...], option("Fetch only files whose names match. Repeatable.", "--file", metavar="PATTERN")
    ],
    items: Items,
    spec_file: SpecFile,
    out: options.Out,
) -> None:
    """Fetch a public store of results, and turn it into a response file: SWE-bench, Open LLM Leaderboard, BFCL, ...

      itembank download
      itembank download alpaca-eval -o responses.parquet
      itembank download open-llm-leaderboard-v2 --model org/a --model org/b -o responses.parquet
      itembank download swebench-verified --from verified/ --items verified.csv -o responses.parquet

    Without a NAME it lists the stores. Mind the licence of a store: some allow no commercial use. An interrupted
    download continues. What was read is compared with the published scores; models whose score differs are named. For
    other ways of reading use itembank import on the folder of the files.
    """
    if name is None:
        _list_sources(out)
        return
    from itembank_harnesses.public.fetch import fetch_public

    if output is None:
        raise click.UsageError("Say where the response file goes: -o FILE.parquet.")
    public_source(name)
    if folder is not None:
        fetched = "results that are fetched, not with --from"
        refuse_unused((("models_wanted", "only"), False, fetched))
    else:
        with working("download") as report:
            folder = fetch_public(name, models=models_wanted, only=only, progress=report)
    write_read(partial(_read_public, name, folder, spec_file, items=items), output, out)


def _list_sources(out: Printer) -> None:
    rows = [
        {
            **picked(one, "name", "holds", "n_models", "n_items", "licence"),
            "checked_against": one.checked,
            "can_download": one.download is not None,
            "version": None if one.download is None else one.download.version,
            "most_gigabytes": None if one.download is None else one.download.most_bytes // GIGABYTE,
            "address": one.address,
        }
        for one in SOURCES.values()
    ]
    if not out.is_table:
        out.rows(rows, "sources")
        return
    for row in rows:
        row["can_download"] = "yes" if row["can_download"] else "no, get it by hand"
    n_fetched = sum(one.download is not None for one in SOURCES.values())
    title = f"{len(rows)} public stores of results; {n_fetched} can be downloaded"
    where = ("version", "most_gigabytes", "address")
    columns = [name for name in rows[0] if name not in where]
    out.rows(rows, "sources", title=title, columns=columns)
    out.rows(rows, "sources", title="Where they are", columns=("name", *where))
    note(
        "A download takes the newest commit of the branch. Its size is not known before; above most_gigabytes it is "
        "refused."
    )


def _read_public(name: str, folder: Path, spec_file: Path | None, **known: Any) -> "ib.ResponseMatrix":
    """Read, and say how the scores compare with the published ones."""
    from itembank_harnesses.public.read_public import read_public

    chosen = {**public_source(name).choices, **file_choices(spec_file, ReadingSpec)}
    found = read_public(name, folder, spec=ReadingSpec(**chosen), **known)
    check = found.check
    if check is not None and check.n_compared:
        note(
            f"Published scores: {check.n_compared} compared, {len(check.differing)} differ; largest difference "
            f"{check.largest:.2g}."
        )
    elif check is not None:
        note("The folder has no published scores to compare with.")
    return found.responses
