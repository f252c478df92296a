"""What runs inside any harness have in common: which items are run, how results are printed, how they end."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.command import SESSION, Decorator, headed, together
from itembank.cli.estimate import print_estimates
from itembank.cli.options import FILE, format_option, refuse_unused, seed_option
from itembank.cli.render import note, print_object, print_rows, progress
from itembank.cli.session_options import session_options
from itembank.cli.session_record import exit_if_imprecise
from itembank.cli.typicality_words import note_flagged

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.bank.selections import Selection
    from itembank.estimation.estimates import ScoreEstimates
    from itembank.sessions.session import AdaptiveSession

SELECTION = "selection.json"
"""Of the folder of a run: the items that were chosen."""


def run_options(*own: Decorator, batch: str) -> Decorator:
    """Make the options of a run, those of one harness among them; `batch` is the help of `--batch`."""
    return together(
        click.option(
            "-o",
            "--output",
            required=True,
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Folder of the harness's logs and of what the run keeps.",
        ),
        click.option(
            "--selection",
            type=FILE,
            help="Run the items of this selection.  [default: those that the bank was published with, if any]",
        ),
        click.option(
            "-n", "--n-items", "n_chosen", type=click.IntRange(min=1), help="Choose so many items and run them."
        ),
        click.option("--adaptive", is_flag=True, help="Run a session: the next items depend on the answers so far."),
        click.option(
            "--batch",
            type=click.IntRange(min=1),
            metavar="N",
            help=batch,
        ),
        click.option(
            "--stages",
            type=click.Choice(["1", "2", "3"]),
            default="1",
            show_default=True,
            help="-n: multistage testing. After the first stage, each next one is chosen from the model's answers.",
        ),
        *own,
        click.option("--dry-run", is_flag=True, help="Compare the items with the bank's and count them; run nothing."),
        click.option("--ignore-prompts", is_flag=True, help="Run also with other prompts than the bank's runs had."),
        headed(SESSION, session_options),
        seed_option,
        format_option,
    )


def check_items(
    bank: Path,
    selection: Path | None,
    n_chosen: int | None,
    *,
    adaptive: bool,
    has_batches: bool,
    choices: Mapping[str, Any],
) -> None:
    """Check that one way of choosing items was given, and no option of another.

    A bank that was published with its items needs none. `has_batches` says whether `--batch` means something.

    Raises
    ------
    click.UsageError
        When it was not.
    """
    n_ways = (selection is not None) + (n_chosen is not None) + adaptive
    if n_ways > 1 or (n_ways == 0 and _own_items(bank) is None):
        raise click.UsageError("Say which items to run: one of --selection FILE, -n N, or --adaptive.")
    refuse_unused(
        *((name, adaptive, "--adaptive") for name in choices if name != "level"),
        ("batch", has_batches, "--adaptive"),
        ("stages", n_chosen is not None, "-n"),
        ("seed", n_chosen is not None or adaptive, "-n or --adaptive"),
    )


def _own_items(bank: "Path | Bank") -> "Selection | None":
    """Return the items that a bank was published with."""
    from itembank.bank.arguments import as_bank  # noqa: PLC0415
    from itembank.estimation.past_errors import selection_or_published  # noqa: PLC0415

    return selection_or_published(as_bank(bank), None)


def chosen_items(
    bank: "Bank", path: Path | None, n_items: int | None, *, seed: int, excluded: Sequence[str] = (), stages: int = 1
) -> "Selection":
    """Load the selection, or choose items or their first stage, none of those excluded.

    Without a path or a number, these are the items that the bank was published with.
    """
    from itembank.bank.selections import Selection  # noqa: PLC0415
    from itembank.planning.select import select  # noqa: PLC0415

    if path is not None:
        return Selection.load(path)
    own = _own_items(bank) if n_items is None else None
    if own is not None:
        note(f"Taken are the {own.n_items} items that the bank was published with.")
        return own
    with progress("select") as report:
        selection = select(bank, int(n_items or 0), excluded=excluded, stages=stages, rng=seed, progress=report)
    note(f"Chosen by {selection.explanation}" if selection.explanation else f"Chosen by {selection.method}.")
    return selection


def keep_selection(selection: "Selection", folder: Path, name: str = SELECTION) -> Path:
    """Write the selection beside the logs."""
    folder.mkdir(parents=True, exist_ok=True)
    selection.save(folder / name)
    return folder / name


@contextmanager
def says_how_to_go_on() -> Iterator[None]:
    """Say after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note("Stopped; the answers that came are kept. The same command goes on from here.")
        raise


def note_earlier(selection: "Selection", path: Path, output: Path) -> None:
    """Say what a run of one later stage leaves out."""
    if selection.earlier is not None:
        note(
            f"Only the {selection.n_items} items of this stage are run. For an estimate from all stages: itembank "
            f"estimate BANK EARLIER_RESULTS {output} --selection {path}"
        )


def print_run(scores: "ScoreEstimates", bank: "Bank", output: Path, output_format: str) -> None:
    """Print the estimates, and say what they are."""
    overall_is = overall_of(bank)
    if output_format == "json":
        print_object({"bank": bank.bank_id, "overall_is": overall_is, "logs": str(output), "scores": scores.rows()})
    else:
        print_estimates(scores, output_format)
    note_flagged(scores, bank.n_compared_models)
    note(_MEANING_OF_OVERALL[overall_is])
    if (output / SELECTION).is_file():
        chosen = shlex.quote(str(output / SELECTION))
        folder = shlex.quote(str(output))
        note(f"To see this as a page: itembank report BANK {folder} --selection {chosen} -o FILE.html")


_MEANING_OF_OVERALL = {
    "micro": "The overall score is micro: every item weighs the same.",
    "macro": "The overall score is macro: the mean of the scenarios' scores.",
    "custom": "The overall score weighs items as the bank's own weights say.",
}


def overall_of(bank: "Bank") -> str:
    """Name the mean that the overall score is."""
    targets = bank.targets
    if targets.within == "custom":
        return "custom"
    is_micro = targets.within == "micro" and (targets.across == "items" or targets.n_scenarios == 1)
    return "micro" if is_micro else "macro"


def end_session(session: "AdaptiveSession") -> None:
    """Say why a session ended, and exit 3 when it has not the precision that was asked for."""
    note(f"Stopped: {session.reason_stopped}." if session.reason_stopped else "No item is left.")
    exit_if_imprecise(session)


def note_untold_prompts(bank: "Bank") -> None:
    """Say which prompts cannot be compared with the bank's."""
    from itembank.harnesses.protocol import untold_prompts  # noqa: PLC0415

    untold = untold_prompts(bank.responses.items)
    if untold:
        note(f"Note: {untold}.")


def print_dry_run(row: Mapping[str, Any], output_format: str) -> None:
    """Print what would be run."""
    print_rows([row], output_format, title="Would be run")
    note("Compared with the bank's items. No model was called.")
