"""`itembank session`: adaptive testing from a shell, one question at a time, kept in a journal."""

import sys
from pathlib import Path
from typing import Annotated, Any

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.command import Group
from itembank.cli.options import refuse_unused
from itembank.cli.render import TABLE, note, print_ids, print_object, working
from itembank.cli.session_options import (
    WAIT,
    Journal,
    Limits,
    NewUnits,
    Session,
    amounts,
    budget_of,
    exit_if_imprecise,
    item_rows,
    loaded_bank,
    next_items,
    note_predicted,
    print_session,
    print_told,
    session_facts,
    session_spec,
    what_is_asked,
)
from itembank.cli.session_run import run, serve
from itembank.cli.signatures import argument, option, verb
from itembank.errors import DataError, shell_word, visible
from itembank.selection.criteria import CRITERIA, uses_chance
from itembank.tables import plural


@click.group("session", cls=Group)
def session_command() -> None:
    """Test a model adaptively: the next items depend on its answers so far.

    A session is kept in a journal, a file with every item asked and every answer. itembank session run calls your
    program for one item after the other. Or ask which items to run next, run them with any tool, and tell the answers.
    You can stop at any time and go on later: no answer that was told is lost.

      itembank session start bank -o run.jsonl --model-id my-model --max-items 50 --half-width 0.03
      itembank session run run.jsonl --command 'python agent.py {item_id}'
      itembank session status run.jsonl

    or, with a loop of your own:

      while item=$(itembank session ask run.jsonl --format ids) && [ -n "$item" ]; do
        itembank session tell run.jsonl --response "$(my-harness "$item")" -- "$item" || break
      done
    """


@verb("start", session_command)
def start(
    *,
    bank: options.Bank,
    output: Annotated[Path, options.written("The journal to make; it must not exist.", "JOURNAL")],
    model_id: Annotated[str, "Id of the new model."],
    choices: Session,
    seed: options.Seed,
) -> None:
    """Start a session: say how items are chosen and when to stop.

    A session stops when it reaches the precision that you asked for (--half-width, --threshold, --better-than), when a
    limit allows no further item (--max-items, --max-cost), or when no item is left.

      itembank session start bank -o run.jsonl --model-id my-model --max-items 50
      itembank session start bank -o run.jsonl --model-id my-model --cost tokens --max-cost tokens=20000
      itembank session start bank -o run.jsonl --model-id my-model --threshold 0.7 --session session.toml

    Rarer choices come from a TOML file, with the names that they have in Python (docs/sessions.md lists them all):

      criterion = "d-optimal"
      interval = "model-based"
      [stopping]
      ability_error = 0.3
      [constraints]
      at_least = {math = 3, law = 3}
    """
    spec = session_spec(choices, seed=seed)
    refuse_unused(("cost", not uses_chance(CRITERIA.resolve(spec.criterion)), "a criterion that looks at costs"))
    with working("session start") as report:
        loaded = ib.load_bank(bank)
        with ib.start_session(output, loaded, spec, model_id=model_id, bank_path=bank, progress=report) as session:
            note(f"{visible(what_is_asked(session, loaded.n_models))}. It is in {output}.")
            if loaded.own_selections and spec.constraints.excluded is None:
                note(
                    "Only items that the bank was published with are asked. For all others too, give "
                    "constraints.excluded, which may be empty, in the file of --session."
                )
            note_predicted(loaded, session)
    note(f"Next: itembank session run {shell_word(output)} --command 'PROGRAM {{item_id}}'")
    note(f"      or, with a loop of your own: itembank session ask {shell_word(output)}")


@verb("ask", session_command)
def ask(
    *,
    journal: Journal,
    n_items: Annotated[int, option("Items at most.", "-n", "--n-items", type=options.COUNT)] = 1,
    only_new: Annotated[
        bool, option("Leave out items that are asked and not answered yet: another worker has them.", "--new")
    ],
    bank: options.BankOfJournal,
    output_format: Annotated[
        str, option("One JSON object; the ids, one a line; or a table.", "--format", type=("json", "ids", "table"))
    ] = "json",
) -> None:
    """Print the items to run next.

    Items that were asked before and have no answer yet are printed again, alone, so that a loop that was killed loses
    none. With --new only further items are printed, for several workers on one session. Once the session is over
    nothing is printed (in JSON: an empty list, and reason_stopped says why). The exit code is then 3 if a precision was
    asked for and not reached.

      itembank session ask run.jsonl
      itembank session ask run.jsonl -n 8 --new --format ids
    """
    with (
        working("session ask") as report,
        ib.open_session(journal, loaded_bank(bank), wait=WAIT, progress=report) as session,
    ):
        items, is_new = next_items(session, n_items, only_new=only_new)
    rows = item_rows(session, items, is_new=is_new)
    if output_format == "json":
        print_object({"items": rows, **session_facts(session)}, "session-ask")
    elif output_format == "ids":
        print_ids(items)
    elif rows:
        TABLE.rows(rows, "session-ask", title=f"Next items for {session.model_id}")
    if not items:
        if session.reason_stopped:
            note(visible(session.conclusion))
        else:
            note(f"No further item while {len(session.pending)} are asked and not answered.")
        exit_if_imprecise(session)


@verb("tell", session_command)
def tell(
    *,
    journal: Journal,
    item: Annotated[str | None, argument()],
    response: Annotated[float | None, "The outcome, between 0 and 1."],
    n_correct: Annotated[int | None, option("Correct trials; with --trials.", "--correct", metavar="C")],
    n_trials: Annotated[int | None, option("Trials in all.", "--trials", metavar="N")],
    costs: Annotated[tuple[str, ...], option("What the answer cost. Repeatable.", "--cost", metavar="UNIT=AMOUNT")],
    new_units: NewUnits,
    failed: Annotated[bool, "There is no answer: skip the item."],
    again: Annotated[bool, "With --failed: the item may be asked again."],
    bank: options.BankOfJournal,
    output_format: Annotated[
        str, option("How to print the state of the session.", "--format", type=("json", "table"))
    ] = "json",
) -> None:
    """Tell the answer to ITEM; or, with - for ITEM, many answers as JSON Lines on standard input.

    An answer is safe on the disk when the command ends. Telling an item again replaces its answer. Items that the
    session never asked count as well. If one of many answers is wrong in form, none is told. One line each:

      {"item_id": "q1", "response": 1}
      {"item_id": "q2", "n_correct": 3, "n_trials": 4, "costs": {"output_tokens": 912}}
      {"item_id": "q3", "failed": true, "again": true, "reason": "timeout"}

      itembank session tell run.jsonl q1 --response 1 --cost output_tokens=310
      itembank session tell run.jsonl q2 --correct 3 --trials 4
      itembank session tell run.jsonl q3 --failed --again
      my-harness | itembank session tell run.jsonl -

    An id that begins with a dash comes last, after two dashes (--).
    """
    from itembank.sessions.answers import answer, parse_answers, tell_all

    given: dict[str, Any] = {"response": response, "n_correct": n_correct, "n_trials": n_trials, "costs": costs}
    given |= {"failed": failed, "again": again}
    if item == "-":
        refuse_unused((given, False, "an ITEM; with - the answers come from standard input"))
        try:
            lines = sys.stdin.buffer.read().decode("utf-8-sig")  # whatever the locale
        except UnicodeDecodeError as error:
            raise DataError(
                f"standard input must be UTF-8, one JSON object a line: {error}. Nothing was told."
            ) from error
        answers = parse_answers(lines, "standard input")
    else:
        if item is None:
            raise click.UsageError("Say which ITEM the answer is to, or give - and answers as JSON Lines.")
        if (given["n_correct"] is None) != (given["n_trials"] is None):
            raise click.UsageError("--correct C and --trials N belong together.")
        if given["failed"] + (given["response"] is not None) + (given["n_trials"] is not None) != 1:
            raise click.UsageError("Give one of --response R, --correct C with --trials N, or --failed.")
        if not given["failed"] and given["again"]:
            raise click.UsageError("--again belongs to --failed.")
        answers = (answer(item, **{**given, "costs": amounts("--cost", given["costs"])}),)
    with (
        working("session tell") as report,
        ib.open_session(journal, loaded_bank(bank), wait=WAIT, progress=report) as session,
    ):
        tell_all(session, answers, new_units=new_units)
        if output_format == "table":
            print_told(session, len(answers))
    if output_format == "json":
        print_object({"told": [one.item_id for one in answers], **session_facts(session)}, "session-tell")


@verb("extend", session_command)
def extend(*, journal: Journal, limits: Limits, bank: options.BankOfJournal) -> None:
    """Raise the budget of a session, also of one that is over; it continues from there.

    Limits are for the whole session: what was answered and spent so far counts.

      itembank session extend run.jsonl --max-items 140
      itembank session extend run.jsonl --max-cost cost_usd=5
    """
    from itembank.sessions.journal_sessions import extend_session

    given = budget_of(limits)
    with working("session extend") as report:
        budget = extend_session(
            journal, loaded_bank(bank), n_items=given.n_items, costs=given.costs, wait=WAIT, progress=report
        )
    parts = [] if budget.n_items is None else [f"{plural(budget.n_items, 'item')}"]
    parts += [f"{amount:g} {unit}" for unit, amount in budget.costs.items()]
    command = f"itembank session run {shell_word(journal)} --command 'PROGRAM {{item_id}}'"
    note(f"The budget is now {' and '.join(parts)}. Next: {command}")


@verb("status", session_command)
def status(*, journal: Journal, bank: options.BankOfJournal, out: options.Out) -> None:
    """Show the state of a session: scores with their intervals, items, costs, and why it stopped.

    It never waits and changes nothing: look at a session while it runs. The exit code is 3 if the session has stopped
    without the precision that was asked for.

      itembank session status run.jsonl
      itembank report run.jsonl -o session.html
    """
    print_session(journal, loaded_bank(bank), out)


session_command.add_command(run)
session_command.add_command(serve)
