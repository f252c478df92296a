"""`itembank session`: adaptive testing from a shell, one question at a time, kept in a journal."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

import itembank as ib
from itembank.cli.command import Group
from itembank.cli.options import (
    ANY_PATH,
    COUNT,
    bank_argument,
    bank_option,
    format_option,
    option,
    refuse_unused,
    seed_option,
)
from itembank.cli.render import note, print_ids, print_object, print_rows, progress, warnings_as_notes
from itembank.cli.session_options import (
    WAIT,
    amounts,
    budget_of,
    exit_if_imprecise,
    in_words,
    item_rows,
    journal_argument,
    limit_options,
    loaded_bank,
    next_items,
    note_predicted,
    note_published,
    print_session,
    session_facts,
    session_options,
    session_spec,
    wait_option,
)
from itembank.cli.session_run import run, serve
from itembank.errors import visible
from itembank.sessions.events import Answer


@click.group("session", cls=Group)
def session_command() -> None:
    """Test a model adaptively: the next items depend on its answers so far.

    A session is kept in a journal, a file with every item asked and every answer. itembank session run calls your
    program for one item after the other. Or ask which items to run next, run them with any tool, and tell the answers.
    You can stop at any time and go on later: no answer that was told is lost.

    \b
      itembank session start bank -o run.jsonl --model-id my-model --max-items 50 --half-width 0.03
      itembank session run run.jsonl --command 'python agent.py {item_id}'
      itembank session status run.jsonl

    or, with a loop of your own:

    \b
      while item=$(itembank session ask run.jsonl --format ids) && [ -n "$item" ]; do
        itembank session tell run.jsonl --response "$(my-harness "$item")" -- "$item" || break
      done
    """  # noqa: D301 (click's \b keeps the block's lines)


@session_command.command("start")
@bank_argument
@option("-o --output JOURNAL", "The journal to make; it must not exist.", ANY_PATH, required=True)
@option("--model-id", "Id of the new model.", required=True)
@session_options
@seed_option
def start(*, bank: Path, output: Path, model_id: str, choices: Mapping[str, Any], seed: int) -> None:
    """Start a session: say how items are chosen and when to stop.

    A session stops when it reaches the precision that you asked for (--half-width, --threshold, --better-than), when a
    limit allows no further item (--max-items, --max-cost), or when no item is left.

    \b
      itembank session start bank -o run.jsonl --model-id my-model --max-items 50
      itembank session start bank -o run.jsonl --model-id my-model --cost tokens --max-cost tokens=20000
      itembank session start bank -o run.jsonl --model-id my-model --threshold 0.7 --session session.toml

    Rarer choices come from a TOML file, with the names that they have in Python (docs/sessions.md lists them all):

    \b
      criterion = "d-optimal"
      interval = "model-based"
      [stopping]
      ability_error = 0.3
      [constraints]
      at_least = {math = 3, law = 3}
    """  # noqa: D301
    from itembank.selection.criteria import CRITERIA, uses_chance  # noqa: PLC0415

    spec = session_spec(choices, seed)
    refuse_unused(("cost", not uses_chance(CRITERIA.resolve(spec.criterion)), "a criterion that looks at costs"))
    with warnings_as_notes(), progress("session start") as report:
        loaded = ib.load_bank(bank)
        note_published(loaded, spec)
        with ib.start_session(output, loaded, spec, model_id=model_id, bank_path=bank, progress=report) as session:
            note_predicted(loaded, session)
    note(f"Session of {visible(model_id)} over the {loaded.n_items} items of bank {loaded.bank_id} in {output}.")
    note(f"Next: itembank session run {output} --command 'PROGRAM {{item_id}}'")
    note(f"      or, with a loop of your own: itembank session ask {output}")


@session_command.command("ask")
@journal_argument
@option("-n --n-items", "Items at most.", COUNT, default=1)
@option("--new only_new", "Leave out items that are asked and not answered yet: another worker has them.", bool)
@bank_option
@wait_option
@option(
    "--format output_format",
    "One JSON object; the ids, one a line; or a table.",
    ["json", "ids", "table"],
    default="json",
)
def ask(*, journal: Path, n_items: int, only_new: bool, bank: Path | None, wait: float, output_format: str) -> None:
    """Print the items to run next.

    Items that were asked before and have no answer yet are printed again, alone, so that a loop that was killed loses
    none. With --new only further items are printed, for several workers on one session. Once the session is over
    nothing is printed (in JSON: an empty list, and reason_stopped says why). The exit code is then 3 if a precision was
    asked for and not reached.

    \b
      itembank session ask run.jsonl
      itembank session ask run.jsonl -n 8 --new --format ids
    """  # noqa: D301
    with (
        warnings_as_notes(),
        progress("session ask") as report,
        ib.open_session(journal, loaded_bank(bank), wait=wait, progress=report) as session,
    ):
        items, is_new = next_items(session, n_items, only_new=only_new)
    rows = item_rows(session, items, is_new=is_new)
    if output_format == "json":
        print_object({"items": rows, **session_facts(session)}, "session-ask")
    elif output_format == "ids":
        print_ids(items)
    elif rows:
        print_rows(rows, "table", "session-ask", title=f"Next items for {session.model_id}")
    if not items:
        if session.reason_stopped:
            note(visible(session.conclusion))
        else:
            note(f"No further item while {len(session.pending)} are asked and not answered.")
        exit_if_imprecise(session)


@session_command.command("tell")
@journal_argument
@click.argument("item", required=False)
@option("--response", "The outcome, between 0 and 1.", float)
@option("--correct C n_correct", "Correct trials; with --trials.", int)
@option("--trials N n_trials", "Trials in all.", int)
@option("--cost UNIT=AMOUNT costs", "What the answer cost. Repeatable.", many=True)
@option("--new-units", "Accept costs in units that are neither usual nor in the bank.", bool)
@option("--failed", "There is no answer: skip the item.", bool)
@option("--again", "With --failed: the item may be asked again.", bool)
@option("--reason", "With --failed: why, for people.", default="")
@bank_option
@wait_option
@option("--format output_format", "How to print the state of the session.", ["json", "table"], default="json")
def tell(
    *,
    journal: Path,
    item: str | None,
    new_units: bool,
    bank: Path | None,
    wait: float,
    output_format: str,
    **given: Any,
) -> None:
    """Tell the answer to ITEM; or, with - for ITEM, many answers as JSON Lines on standard input.

    An answer is safe on the disk when the command ends. Telling an item again replaces its answer. Items that the
    session never asked count as well. If one of many answers is wrong in form, none is told. One line each:

    \b
      {"item_id": "q1", "response": 1}
      {"item_id": "q2", "n_correct": 3, "n_trials": 4, "costs": {"output_tokens": 912}}
      {"item_id": "q3", "failed": true, "again": true, "reason": "timeout"}

    \b
      itembank session tell run.jsonl q1 --response 1 --cost output_tokens=310
      itembank session tell run.jsonl q2 --correct 3 --trials 4
      itembank session tell run.jsonl q3 --failed --again
      my-harness | itembank session tell run.jsonl -

    An id that begins with a dash comes last, after two dashes (--).
    """  # noqa: D301
    from itembank.sessions.answers import parse_answers, tell_all  # noqa: PLC0415

    if item == "-":
        refuse_unused(*((name, False, "an ITEM; with - the answers come from standard input") for name in given))
        answers = parse_answers(_standard_input(), "standard input")
    else:
        answers = (_answer(item, given),)
    with (
        warnings_as_notes(),
        progress("session tell") as report,
        ib.open_session(journal, loaded_bank(bank), wait=wait, progress=report) as session,
    ):
        tell_all(session, answers, new_units=new_units)
    told = {"told": [answer.item_id for answer in answers], **session_facts(session)}
    if output_format == "json":
        print_object(told, "session-tell")
    else:
        print_rows([{"fact": name, "value": value} for name, value in in_words(told).items()], "table", "session-tell")


@session_command.command("extend")
@journal_argument
@limit_options
@bank_option
def extend(*, journal: Path, limits: Mapping[str, Any], bank: Path | None) -> None:
    """Raise the budget of a session, also of one that is over; it continues from there.

    Limits are for the whole session: what was answered and spent so far counts.

    \b
      itembank session extend run.jsonl --max-items 140
      itembank session extend run.jsonl --max-cost cost_usd=5
    """  # noqa: D301
    from itembank.sessions.journal_sessions import extend_session  # noqa: PLC0415

    given = budget_of(limits)
    with warnings_as_notes(), progress("session extend") as report:
        budget = extend_session(
            journal, loaded_bank(bank), n_items=given.n_items, costs=given.costs, wait=WAIT, progress=report
        )
    parts = [] if budget.n_items is None else [f"{budget.n_items} items"]
    parts += [f"{amount:g} {unit}" for unit, amount in budget.costs.items()]
    note(
        f"The budget is now {' and '.join(parts)}. Next: itembank session run {journal} --command 'PROGRAM {{item_id}}'"
    )


@session_command.command("status")
@journal_argument
@bank_option
@format_option
def status(*, journal: Path, bank: Path | None, output_format: str) -> None:
    """Show the state of a session: scores with their intervals, items, costs, and why it stopped.

    It never waits and changes nothing: look at a session while it runs. The exit code is 3 if the session has stopped
    without the precision that was asked for.

    \b
      itembank session status run.jsonl
      itembank report run.jsonl -o session.html
    """  # noqa: D301
    print_session(journal, loaded_bank(bank), output_format)


def _answer(item: str | None, given: Mapping[str, Any]) -> "Answer":
    """Make the answer of the options."""
    from itembank.sessions.answers import answer  # noqa: PLC0415

    if item is None:
        raise click.UsageError("Say which ITEM the answer is to, or give - and answers as JSON Lines.")
    if (given["n_correct"] is None) != (given["n_trials"] is None):
        raise click.UsageError("--correct C and --trials N belong together.")
    if given["failed"] + (given["response"] is not None) + (given["n_trials"] is not None) != 1:
        raise click.UsageError("Give one of --response R, --correct C with --trials N, or --failed.")
    if not given["failed"] and (given["again"] or given["reason"]):
        raise click.UsageError("--again and --reason belong to --failed.")
    return answer(item, **{**given, "costs": amounts("--cost", given["costs"])})


def _standard_input() -> str:
    """Read all of standard input as UTF-8, whatever the locale."""
    from itembank.errors import DataError  # noqa: PLC0415

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"standard input must be UTF-8, one JSON object a line: {error}. Nothing was told.") from error


session_command.add_command(run)
session_command.add_command(serve)
