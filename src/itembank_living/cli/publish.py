"""Commands that publish, and how they say what is published and what is not."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import itembank_living as living
from itembank.cli import options
from itembank.cli.options import refuse_unused
from itembank.cli.render import is_quiet, note, working
from itembank.cli.signatures import argument, option, verb
from itembank.errors import shell_word, visible
from itembank.files.hub import quieten
from itembank.tables import plural, points_of

License: TypeAlias = Annotated[
    str, option("License, as the Hub has it: cc-by-4.0.", "--license", metavar="NAME", default="")
]
IncludeColumns: TypeAlias = Annotated[
    tuple[str, ...],
    option(
        "Publish this column of items although it looks like questions or answers, or this column of models although "
        "nothing needs it. Repeatable.",
        "--include-column",
        metavar="NAME",
    ),
]
DropColumns: TypeAlias = Annotated[
    tuple[str, ...], option("A column of items or models to leave out. Repeatable.", "--drop-column", metavar="NAME")
]
MOST_LISTED = 40


def note_files(files: Mapping[str, int]) -> None:
    """List the files that are published, with their sizes."""
    note(f"Published: {plural(len(files), 'file')}, {sum(files.values()):,} bytes.")
    for name, size in list(files.items())[:MOST_LISTED]:
        note(f"  {size:>12,}  {visible(name)}")
    if len(files) > MOST_LISTED:
        note(f"  and {len(files) - MOST_LISTED} more")


def note_columns(went: Sequence[str], left_out: Sequence[str]) -> None:
    """List the columns of models that are published and those of any table that are not."""
    if went:
        note(f"Columns of models that are published: {visible(', '.join(went))}.")
    if left_out:
        note(f"Columns that are not published: {visible(', '.join(left_out))}.")


@verb("publish-tiny")
def publish_tiny_command(
    *,
    bank: options.Bank,
    n_items: Annotated[int, option("How many items to choose.", "-n", "--n-items", type=options.COUNT)] = 100,
    selection: Annotated[Path | None, option("Publish these items.  [default: choose them]", type=options.FILE)],
    output: Annotated[Path, option("Folder to publish.", "-o", "--output", type=options.FOLDER)],
    license_name: License,
    include_columns: IncludeColumns,
    drop_columns: DropColumns,
    force: Annotated[bool, "Replace what was published there before."],
    out: options.Out,
) -> None:
    """Publish a small subset of a benchmark: items, weights and parameters, without past models' responses.

    The folder is a bank for itembank estimate, with the intervals of the whole bank. It also has the items as a table,
    a figure of its precision, and a README. Needs pip install vl-convert-python.

      itembank publish-tiny bank -n 100 -o tiny
      itembank estimate tiny new-model.csv
      itembank push tiny hf:me/tiny
    """
    from itembank_living.publishing.cards import drawn_half_width
    from itembank_living.publishing.publishable import file_sizes

    refuse_unused(("n_items", selection is None, "items that are chosen here, not with --selection FILE"))
    spec = living.TinySpec("", license_name, include_columns, drop_columns)
    with working("publish-tiny") as report:
        tiny = living.publish_tiny(
            bank, output, n_items, selection=selection, spec=spec, overwrite=force, progress=report
        )
    cross_validated = tiny.cross_validated
    row = {
        "bank": tiny.bank.bank_id,
        "items": tiny.selection.n_items,
        "n_total": tiny.bank.n_items,
        "mean_error": float("nan") if cross_validated is None else cross_validated.error,
        "half_width": float("nan") if cross_validated is None else cross_validated.half_width,
        "coverage": float("nan") if cross_validated is None else cross_validated.coverage,
    }
    title = f"{output} has {tiny.selection.n_items} of {tiny.bank.n_items} items; errors are cross-validated"
    out.rows([row], "publish-tiny", title=title)
    of_draw = drawn_half_width(tiny.bank)
    if of_draw is not None and cross_validated is not None:
        note(
            f"Errors are of the method stacked. Estimates rest on the draw instead: about ±{points_of(of_draw)} points."
        )
    note_files(file_sizes(output))
    note_columns((), tiny.left_out)
    note(f"Next: itembank estimate {shell_word(output)} new-model.csv")


@verb("push")
def push_command(
    *,
    bank: options.Bank,
    place: Annotated[str, argument(metavar="HF:OWNER/NAME")],
    private: Annotated[bool, "Make the repository private, if it is new."],
    no_responses: Annotated[bool, "Leave out past models and their responses. The card says what needs them."],
    license_name: License,
    include_columns: IncludeColumns,
    drop_columns: DropColumns,
    out: options.Out,
) -> None:
    """Push a bank to the Hugging Face Hub, with a card that says what is in it and how precise it is.

    Those who may read it can then give hf:owner/name to every command in place of a bank. Needs pip install
    huggingface_hub and hf auth login. Columns of models that nothing needs are not published unless --include-column
    names them.

      itembank push bank hf:me/bank --license cc-by-4.0
      itembank push bank hf:me/bank --private --no-responses
    """
    if is_quiet():
        quieten()
    spec = living.PushSpec(private, not no_responses, license_name, include_columns, drop_columns)
    with working("push") as report:
        done = living.push(bank, place, spec, progress=report)
    row = {"bank": done.bank_id, "name": done.name, "files": len(done.files)}
    out.rows([row], "push", title=f"Pushed {bank}")
    note_files(done.files)
    note_columns(done.columns, done.left_out)
    note(f"Look at it: {done.address}")


@verb("pull")
def pull_command(
    *,
    place: Annotated[str, argument(metavar="HF:OWNER/NAME[@REVISION]")],
    output: Annotated[Path, option("Folder of the bank.", "-o", "--output", type=options.FOLDER)],
    force: Annotated[bool, "Replace the bank that is there."],
) -> None:
    """Copy a bank of the Hugging Face Hub into a folder, after its files were checked.

    Every command also takes hf:owner/name in place of a bank: it is downloaded once, and then found without a
    connection. A revision is a branch, a tag or a commit. Needs pip install huggingface_hub.

      itembank pull hf:me/bank -o bank
      itembank pull hf:me/bank@v1.0 -o bank
    """
    if is_quiet():
        quieten()
    bank = living.pull_bank(place, output, overwrite=force)
    size = f"{plural(bank.n_models, 'past model')} and {plural(bank.n_items, 'item')}"
    note(f"Pulled {visible(str(bank.cache.source))}, bank {bank.bank_id} of {size}, into {output}.")
    note(f"Next: itembank info {shell_word(output)}")
