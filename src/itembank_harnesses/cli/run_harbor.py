"""`itembank run harbor`: run chosen items inside Harbor."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import itembank as ib
from itembank.cli import options
from itembank.cli.gate import Judging
from itembank.cli.new_results import importing_first, note_known_models
from itembank.cli.render import note, warnings_as_notes
from itembank.cli.session_options import RunSession, session_spec
from itembank.cli.signatures import argument, option, verb
from itembank.readers.reading_specs import ReadingSpec
from itembank_harnesses.cli import run_common

if TYPE_CHECKING:
    from itembank.sessions.asking import Asking
    from itembank_harnesses.harbor import HarborRun


@verb("harbor", cls=Judging)
def run_harbor_command(
    *,
    bank: options.Bank,
    data_set: Annotated[str, argument()],
    arguments: Annotated[tuple[str, ...], run_common.arguments("HARBOR")],
    output: run_common.Output,
    which: run_common.Which,
    n_attempts: Annotated[
        int | None,
        option("Trials of each task.  [default: those of the job's file, else 1]", "--attempts", type=options.COUNT),
    ],
    batch: Annotated[int | None, run_common.batch("tasks of a job")],
    model_id: Annotated[str | None, "Id of the agent.  [default: as its trials tell it]"],
    dry_run: Annotated[bool, "Count the tasks, and say what past agents paid for them; run nothing."],
    ignore_prompts: Annotated[bool, "Run even if version or time limits differ from those of the bank's runs."],
    choices: RunSession,
    outputs: run_common.Outputs,
) -> None:
    """Run chosen tasks of DATA_SET as jobs of Harbor, and estimate the scores on all tasks.

    DATA_SET is NAME@VERSION, ORGANISATION/NAME@REF, a folder of tasks, or the file of a job (JSON) with one data set.
    Arguments after two dashes go to harbor run, whose output goes to standard error.

      itembank run harbor bank terminal-bench@2.0 -n 30 -o runs/a1 -- -a terminus-2 -m openai/gpt-5
      itembank run harbor bank tasks/ --selection selection.json --attempts 3 -o runs/a1 -- -a claude-code -m ...
      itembank run harbor bank job.json --adaptive --half-width 0.05 --max-cost cost_usd=40 -o runs/a1
      itembank run harbor bank terminal-bench@2.0 --gate gate -o runs/a2 -- -a terminus-2 -m openai/gpt-6
      itembank run harbor bank terminal-bench@2.0 -n 30 -o runs/a1 --dry-run -- -a terminus-2

    If a run was interrupted, repeat the command: missing trials, and tasks without a verdict, run in a new job.
    The exit code is 3 if an adaptive run ends without the precision that was asked for, and 4 if the version of the
    data set or time limits are not those of the bank's runs.
    """
    from itembank.sessions.first_items import excluded_items
    from itembank_harnesses.harbor import HarborRun

    adaptive, gate, out = which["adaptive"], which["gate"], outputs["out"]
    run_common.check_items(bank, which, choices, has_batches=adaptive)
    loaded = ib.load_bank(bank)
    with warnings_as_notes():
        reading = ReadingSpec(errors=choices["errors"], allow_mixed_prompts=ignore_prompts)
        run = HarborRun.of(loaded, data_set, output, arguments, n_attempts=n_attempts, spec=reading)
        others = [item for item in loaded.responses.item_ids if item not in set(run.item_ids)]
        spec = session_spec(choices) if adaptive else None
        if spec is not None and others:  # items of other data sets, which are not asked
            excluded = (*excluded_items(loaded, spec), *others)
            spec = replace(spec, constraints=replace(spec.constraints, excluded=excluded))
        plan = None if gate is None else run_common.gate_of(gate, loaded, ignore_prompts=ignore_prompts)
        chosen = None if adaptive or plan else run_common.chosen_items(loaded, which, others)
        if dry_run:
            item_ids = run_common.items_to_run(loaded, chosen, spec, plan)
            most = len(item_ids)
            if spec is not None and spec.budget.n_items is not None:
                most = min(spec.budget.n_items, most)
            trials = "a trial" if run.n_attempts == 1 else f"{run.n_attempts} trials"
            title = f"Would run {trials} of each of {most:,} tasks; nothing was run"
            counted = {"n_items": most, "n_items_full": len(run.item_ids), **run.expected_costs(item_ids, most)}
            run_common.print_dry_run(run.bank, counted, out, plan, title)
            return
        run.check()
        name = model_id or run.model_id
        with (
            run_common.says_how_to_go_on(),
            importing_first([output], then="Then: itembank estimate BANK responses.parquet"),
        ):
            if chosen is not None:
                run_common.note_earlier(chosen, run_common.keep_selection(chosen, output), output)
                run.answers([item for item in chosen.item_ids if item not in set(others)])
                scores = run.estimate(chosen, model_id=model_id)
                note_known_models(loaded, scores.model_ids)
                run_common.print_run(scores, loaded, output, out, "auto")
                note(run_common.OWN_SCORE)
            if spec is not None:
                asked = partial(_run_asked, run, batch or run_common.BATCH)
                with run_common.session_of_run(asked, output, spec, loaded, name) as session:
                    run_common.print_run(session.estimate().scores, loaded, output, out, "auto")
                    run_common.end_session(session)
            if plan is not None and gate is not None:
                asked = partial(_run_asked, run, len(plan.order))
                verdict = run_common.run_gate(asked, output, gate, bank=loaded, model_id=name, errors=choices["errors"])
    if gate is not None:
        run_common.end_gate_of_run(verdict, outputs)


def _run_asked(run: "HarborRun", batch: int, _bank: "ib.Bank", session: "Asking", journal: Path, **how: Any) -> None:
    """Run what a session or a gate asks until it is over; say what continues."""
    run_common.note_continued(session, journal)
    run.run_asked(session, batch, **how)
