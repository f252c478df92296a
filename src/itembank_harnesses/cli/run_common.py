"""What `itembank run` does alike in every harness: which items run, and what is printed in the end."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.estimate import print_estimates
from itembank.cli.gate import OUTPUTS, end_gate, look_teller, print_gate
from itembank.cli.new_results import note_overall, say_notes
from itembank.cli.options import refuse_unused
from itembank.cli.render import Printer, detail, note, print_object, progress
from itembank.cli.session_options import exit_if_imprecise
from itembank.cli.signatures import Choices, Maker, argument, option
from itembank.errors import shell_word, visible
from itembank.sessions.events import Answer, Failed
from itembank.tables import plural

if TYPE_CHECKING:
    from itembank.sessions.asking import Asking

SELECTION = "selection.json"
"""Of the folder of a run: the items that were chosen."""
BATCH = 8
"""Items of a session that are asked for and run at once."""
OWN_SCORE = "The harness's own score is the mean of the items that were run, no estimate of the whole."

Output: TypeAlias = Annotated[
    Path,
    option(
        "Folder of the harness's logs and what the run keeps.",
        "-o",
        "--output",
        metavar="DIR",
        type=options.OTHER_FOLDER,
    ),
]
_WHICH: Choices = {
    "selection": option(
        "Run the items of this selection.  [default: those that the bank was published with, if any]", type=options.FILE
    ),
    "n_chosen": option("Choose this many items and run them.", "-n", "--n-items", type=options.COUNT),
    "adaptive": option("Run a session: the next items depend on the answers so far.", type=bool),
    "gate": option(
        "Run the stages of this gate (itembank gate start) until there is a verdict; exit codes are those of "
        "itembank gate next.",
        metavar="GATE",
        type=options.EXISTING_FOLDER,
    ),
}
"""One way of choosing items."""
Which: TypeAlias = Annotated[Choices, _WHICH]
DryRun: TypeAlias = Annotated[bool, "Compare the items with the bank's and count them; run nothing."]
IgnorePrompts: TypeAlias = Annotated[bool, "Run even if prompts differ from those of the bank's runs."]
Outputs: TypeAlias = Annotated[Choices, {name: one for name, one in OUTPUTS.items() if name != "report"}]
"""Of a gate's verdict; `itembank gate next` makes a page of the answers that a run keeps."""


def arguments(harness: str) -> Maker:
    """Make the argument that takes what comes after two dashes, for the harness's own command."""
    return argument(type=click.UNPROCESSED, metavar=f"-- {harness}_ARGUMENTS...", required=False)


def batch(of: str) -> Maker:
    """Make `--batch` of adaptive runs."""
    return option(f"With --adaptive: {of}.  [default: {BATCH}]", metavar="N", type=options.COUNT)


def check_items(bank: Path, which: Choices, choices: Choices, *, has_batches: bool) -> None:
    """Check that one way of choosing items was given, and no option of another.

    A bank that was published with its items needs none. `has_batches` says whether `--batch` means something.

    Raises `click.UsageError` when it was not.
    """
    n_ways = sum(one is not None and one is not False for one in which.values())
    if n_ways > 1 or (n_ways == 0 and _own_items(bank) is None):
        raise click.UsageError("Say which items to run: one of --selection FILE, -n N, --adaptive, or --gate.")
    refuse_unused(
        *((name, which["adaptive"], "--adaptive") for name in choices if name != "errors"),
        ("batch", has_batches, "--adaptive"),
        (("junit", "github"), which["gate"] is not None, "--gate GATE"),
    )


def _own_items(bank: "Path | ib.Bank") -> "ib.Selection | None":
    """Return the items that a bank was published with."""
    from itembank.bank.arguments import as_bank
    from itembank.estimation.asked import selection_or_published

    return selection_or_published(as_bank(bank), None)


def chosen_items(bank: "ib.Bank", which: Choices, excluded: Sequence[str] = ()) -> "ib.Selection":
    """Load the selection, or choose items, none of those excluded.

    Without a path or a number, these are the items that the bank was published with.
    """
    n_items = which["n_chosen"]
    if which["selection"] is not None:
        return ib.Selection.load(which["selection"])
    own = _own_items(bank) if n_items is None else None
    if own is not None:
        note(f"Running the {own.n_items} items that the bank was published with.")
        return own
    with progress("select") as report:
        selection = ib.select(bank, int(n_items or 0), excluded=excluded, progress=report)
    detail(f"Chosen by {selection.explanation or selection.method}")
    return selection


def gate_of(folder: Path, bank: "ib.Bank", *, ignore_prompts: bool) -> "ib.GatePlan":
    """Load a gate, and check that the bank knows its items."""
    from itembank_harnesses.running import check_gate

    plan = ib.GatePlan.load(folder)
    check_gate(plan, bank, set(bank.responses.item_ids), is_ignored=ignore_prompts)
    return plan


def items_to_run(
    bank: "ib.Bank", selection: "ib.Selection | None", spec: "ib.SessionSpec | None", plan: "ib.GatePlan | None"
) -> list[str]:
    """Return the items that are run, or may be asked."""
    if plan is not None:
        return list(plan.order[: plan.sizes[-1]])
    if selection is not None:
        return list(selection.item_ids)
    from itembank.sessions.first_items import excluded_items

    excluded = set() if spec is None else set(excluded_items(bank, spec))
    return [item for item in bank.responses.item_ids if item not in excluded]


def keep_selection(selection: "ib.Selection", folder: Path) -> Path:
    """Write the selection beside the logs."""
    folder.mkdir(parents=True, exist_ok=True)
    selection.save(folder / SELECTION)
    return folder / SELECTION


def note_earlier(selection: "ib.Selection", path: Path, output: Path) -> None:
    """Say what a run of a later stage leaves out."""
    if selection.earlier is not None:
        note(
            f"Only the {selection.n_items} items of this stage are run. For an estimate from all stages: itembank "
            f"estimate BANK EARLIER_RESULTS {shell_word(output)} --selection {shell_word(path)}"
        )


def note_untold_prompts(bank: "ib.Bank") -> None:
    """Say which prompts cannot be compared with the bank's."""
    from itembank.responses.how_read import check_one_answer_each
    from itembank_harnesses.running import untold_prompts

    check_one_answer_each(bank.responses.items, "a run")
    untold = untold_prompts(bank.responses.items)
    if untold:
        note(f"Note: {untold}.")


@contextmanager
def says_how_to_go_on() -> Iterator[None]:
    """Say after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note("Stopped; all answers so far are kept. The same command continues from here.")
        raise


def note_continued(session: "Asking", journal: Path) -> None:
    """Say what an earlier run has answered."""
    if session.n_items:
        note(f"Continuing with the answers in {journal}: {plural(session.n_items, 'item', 'are')} answered.")


@contextmanager
def session_of_run(
    run: Callable[..., None], output: Path, spec: "ib.SessionSpec", bank: "ib.Bank", model_id: str
) -> Iterator["ib.AdaptiveSession"]:
    """Run a session to its end, or continue the one that is kept beside the logs."""
    from itembank_harnesses.lm_eval.run import session_at

    journal = output / "session.jsonl"
    with progress("session") as report, session_at(journal, bank, spec, model_id=model_id, progress=report) as session:
        run(bank, session, journal, after_answer=_say)
        yield session


def run_gate(run: Callable[..., None], output: Path, gate: Path, *, bank: "ib.Bank", **who: Any) -> "ib.Gate":
    """Run the stages of a gate until there is a verdict, or continue those that are kept beside the logs."""
    from itembank.gating.running import open_gate_run

    journal = output / "gate.jsonl"
    with open_gate_run(journal, gate, bank=bank, **who) as stages:
        run(bank, stages, journal, after_answer=look_teller())
        return stages.result


def _say(session: "ib.AdaptiveSession", answer: "Answer") -> None:
    """Say how far a session is when a batch is told."""
    if isinstance(answer, Failed):
        note(f"{visible(answer.item_id)} has no answer: {visible(answer.reason)}.")
    if not session.pending:
        overall = session.estimate().scores.rows()[-1]
        score, low, high = (f"{100.0 * overall[name]:.1f}" for name in ("estimate", "low", "high"))
        note(f"{plural(session.n_items, 'item')}: {overall['target']} {score}, {low} to {high} points")


def print_run(scores: "ib.ScoreEstimates", bank: "ib.Bank", output: Path, out: Printer, match: str) -> None:
    """Print the estimates, and say what they are."""
    if out.is_json:
        facts = {"bank": bank.bank_id, "overall_is": bank.targets.overall_is, "logs": str(output)}
        print_object({**facts, "scores": scores.rows()}, "run")
    else:
        print_estimates(scores, out)
    say_notes(scores.notes)
    note_overall(bank)
    if (output / SELECTION).is_file():
        chosen = shell_word(output / SELECTION)
        folder = shell_word(output)
        rule = "" if match == "auto" else f" --match {shell_word(match)}"
        note(f"To see this as a page: itembank estimate BANK {folder} --selection {chosen}{rule} --report FILE.html")


def end_session(session: "ib.AdaptiveSession") -> None:
    """Say why a session ended, and exit 3 if it has not the precision that was asked for."""
    note(visible(session.conclusion))
    exit_if_imprecise(session)


def end_gate_of_run(verdict: "ib.Gate", outputs: Mapping[str, Any]) -> None:
    """Print the verdict of a gate, and exit with its code."""
    print_gate(verdict, outputs["out"])
    end_gate(verdict, outputs)


def print_dry_run(
    bank: "ib.Bank", counted: Mapping[str, Any], out: Printer, plan: "ib.GatePlan | None" = None, title: str = ""
) -> None:
    """Print what would be run; of a gate also how much of it before the first look."""
    title = title or f"Would run {counted['n_items']:,} items, which are those of the bank; no model was called"
    first = {} if plan is None else {"n_items_first": plan.sizes[0]}
    out.rows([{"bank": bank.bank_id, **first, **counted}], "run-dry", title=title)
