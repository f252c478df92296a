"""`itembank run`: run chosen items inside an evaluation harness."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.command import Group
from itembank.cli.estimate import print_estimates
from itembank.cli.gate import OUTPUTS, Judging, end_gate, look_teller, print_gate
from itembank.cli.new_results import note_known_models, say_notes
from itembank.cli.options import refuse_unused
from itembank.cli.render import Printer, detail, note, print_object, progress, warnings_as_notes
from itembank.cli.session_options import RunSession, exit_if_imprecise, session_spec
from itembank.cli.signatures import Choices, argument, option, verb
from itembank.errors import DataError, visible
from itembank.files.atomic import sweep
from itembank.readers.reading_specs import ReadingSpec
from itembank.sessions.events import Answer, Failed

if TYPE_CHECKING:
    from itembank.harnesses.harbor import HarborRun
    from itembank.harnesses.inspect.command import HarnessCall as InspectCall
    from itembank.harnesses.inspect.samples import TaskItems
    from itembank.harnesses.lm_eval.command import HarnessCall
    from itembank.harnesses.lm_eval.rows import RowFile
    from itembank.sessions.asking import Asking

SELECTION = "selection.json"
"""Of the folder of a run: the items that were chosen."""


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
DryRun: TypeAlias = Annotated[bool, "Compare the items with the bank's and count them; run nothing."]
IgnorePrompts: TypeAlias = Annotated[bool, "Run even if prompts differ from those of the bank's runs."]


def check_items(bank: Path, which: Choices, choices: Choices, *, has_batches: bool) -> None:
    """Check that one way of choosing items was given, and no option of another.

    A bank that was published with its items needs none. `has_batches` says whether `--batch` means something.

    Raises `click.UsageError` when it was not.
    """
    n_ways = sum(one is not None and one is not False for one in which.values())
    if n_ways > 1 or (n_ways == 0 and _own_items(bank) is None):
        raise click.UsageError("Say which items to run: one of --selection FILE, -n N, --adaptive, or --gate.")
    refuse_unused(
        *((name, which["adaptive"], "--adaptive") for name in choices if name not in {"level", "errors"}),
        ("level", which["gate"] is None, "--selection FILE, -n N, or --adaptive"),
        ("batch", has_batches, "--adaptive"),
        (("report", "junit", "github"), which["gate"] is not None, "--gate GATE"),
        ("seed", which["n_chosen"] is not None or which["adaptive"], "-n or --adaptive"),
    )


def _own_items(bank: "Path | ib.Bank") -> "ib.Selection | None":
    """Return the items that a bank was published with."""
    from itembank.bank.arguments import as_bank
    from itembank.estimation.asked import selection_or_published

    return selection_or_published(as_bank(bank), None)


def chosen_items(bank: "ib.Bank", which: Choices, seed: int, excluded: Sequence[str] = ()) -> "ib.Selection":
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
        selection = ib.select(bank, int(n_items or 0), excluded=excluded, rng=seed, progress=report)
    detail(f"Chosen by {selection.explanation or selection.method}")
    return selection


def keep_selection(selection: "ib.Selection", folder: Path) -> Path:
    """Write the selection beside the logs."""
    folder.mkdir(parents=True, exist_ok=True)
    selection.save(folder / SELECTION)
    return folder / SELECTION


@contextmanager
def says_how_to_go_on() -> Iterator[None]:
    """Say after Ctrl-C how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        note("Stopped; all answers so far are kept. The same command continues from here.")
        raise


def note_earlier(selection: "ib.Selection", path: Path, output: Path) -> None:
    """Say what a run of a later stage leaves out."""
    if selection.earlier is not None:
        note(
            f"Only the {selection.n_items} items of this stage are run. For an estimate from all stages: itembank "
            f"estimate BANK EARLIER_RESULTS {output} --selection {path}"
        )


def print_run(scores: "ib.ScoreEstimates", bank: "ib.Bank", output: Path, out: Printer, match: str) -> None:
    """Print the estimates, and say what they are."""
    overall_is = bank.targets.overall_is
    if out.is_json:
        facts = {"bank": bank.bank_id, "overall_is": overall_is, "logs": str(output)}
        print_object({**facts, "scores": scores.rows()}, "run")
    else:
        print_estimates(scores, out)
    say_notes(scores.notes)
    detail(_MEANING_OF_OVERALL[overall_is])
    if (output / SELECTION).is_file():
        chosen = shlex.quote(str(output / SELECTION))
        folder = shlex.quote(str(output))
        rule = "" if match == "auto" else f" --match {shlex.quote(match)}"
        note(f"To see this as a page: itembank estimate BANK {folder} --selection {chosen}{rule} --report FILE.html")


_MEANING_OF_OVERALL = {
    "micro": "The overall score is micro: every item weighs the same.",
    "macro": "The overall score is macro: the mean of the scenarios' scores.",
    "custom": "The overall score weighs items as the bank's own weights say.",
}


def end_session(session: "ib.AdaptiveSession") -> None:
    """Say why a session ended, and exit 3 if it has not the precision that was asked for."""
    note(visible(session.conclusion))
    exit_if_imprecise(session)


def note_untold_prompts(bank: "ib.Bank") -> None:
    """Say which prompts cannot be compared with the bank's."""
    from itembank.harnesses.drive import untold_prompts
    from itembank.readers.pass_powers import check_one_answer_each

    check_one_answer_each(bank.responses.items, "a run")
    untold = untold_prompts(bank.responses.items)
    if untold:
        note(f"Note: {untold}.")


def print_dry_run(row: Mapping[str, Any], out: Printer) -> None:
    """Print what would be run."""
    title = f"Would run {row['n_items']:,} items, which are those of the bank; no model was called"
    out.rows([row], "run-dry", title=title)


OWN_SCORE = "The harness's own score is the mean of the items that were run, no estimate of the whole."
ROWS = "selection.rows"
"""Of the folder of a selection's run: samples of the items that were run."""
MACRO_AND_GROUPS = (
    "Groups of lm_eval that weigh by size (mmlu, bbh) are micro: for those calibrate with --across items, or import "
    "with use_groups = true in the file of --spec."
)


@verb("lm-eval", cls=Judging)
def run_lm_eval_command(
    *,
    bank: options.Bank,
    arguments: Annotated[
        tuple[str, ...], argument(type=click.UNPROCESSED, metavar="-- LM_EVAL_ARGUMENTS...", required=False)
    ],
    output: Output,
    which: Annotated[Choices, _WHICH],
    batch: Annotated[
        int | None,
        option(
            "Items run at once: what a stop may lose.  [default: the model's batch size; 64 at least, 8 with "
            "--adaptive]",
            metavar="N",
            type=options.COUNT,
        ),
    ],
    model_id: Annotated[str | None, "Id of the model.  [default: the model's name in --model_args]"],
    plugin: Annotated[
        str | None,
        option(
            "Import this module (its name, or FILE.py) first, for example one that registers a model of your own.",
            "--import",
            metavar="MODULE",
        ),
    ],
    match: options.Match,
    dry_run: DryRun,
    ignore_prompts: IgnorePrompts,
    choices: RunSession,
    seed: options.Seed,
    outputs: Annotated[Choices, OUTPUTS],
) -> None:
    """Run chosen items inside lm-evaluation-harness, and estimate the scores on all items.

    Arguments after two dashes go to lm_eval, whose own command runs in this process. Prompts are those of the bank's
    runs, even with random few-shot examples: shots, chat template and seed are the bank's unless you give others, and
    all prompts are compared before the first request. Without --tasks the tasks of the chosen items are loaded.

      itembank run lm-eval bank --selection selection.json -o runs/m1 -- --model hf --model_args pretrained=org/m1
      itembank run lm-eval bank -n 100 -o runs/m1 -- --model hf --model_args pretrained=org/m1 --batch_size 16
      itembank run lm-eval bank --adaptive --half-width 0.02 --max-items 300 -o runs/m1 -- --model hf ...
      itembank run lm-eval bank --gate gate -o runs/int8 -- --model hf --model_args pretrained=org/m1-int8
      itembank run lm-eval bank -n 100 -o runs/m1 --dry-run -- --model hf ...

    The harness's own table goes to standard error, without scores: the mean of the chosen items is no estimate. If a
    run was interrupted, repeat the command to continue, also with another batch size or device; nothing that was
    finished runs again. The exit code is 3 if an adaptive run ends without the precision that was asked for, and 4 if
    documents or prompts are not those of the bank.
    """
    from itembank.harnesses.lm_eval.command import HarnessCall, run_command
    from itembank.harnesses.lm_eval.documents import BankPrompts, arguments_of, tasks_of
    from itembank.harnesses.lm_eval.patches import check_release

    adaptive, gate, out = which["adaptive"], which["gate"], outputs["out"]
    check_items(bank, which, choices, has_batches=True)
    call = HarnessCall.of(arguments)
    name = model_id or call.model_id
    if not name:
        raise click.UsageError("The model needs a name, which --model_args does not tell: --model-id NAME.")
    spec = session_spec(choices, seed) if adaptive else None
    check_release()
    loaded = ib.load_bank(bank)
    with warnings_as_notes():
        note_known_models(loaded, [name])
        plan = None if gate is None else gate_of(gate, loaded, ignore_prompts=ignore_prompts)
        chosen = None if adaptive or plan else chosen_items(loaded, which, seed)
        item_ids = _item_ids(loaded, chosen, spec) if plan is None else plan.order[: plan.sizes[-1]]
        tasks = tasks_of(loaded.responses.items, item_ids)
        call = _with_tasks(call, loaded, tasks).as_of(arguments_of(loaded.responses.items, tasks))
        note_untold_prompts(loaded)
        prompts = BankPrompts(
            loaded.responses.items,
            not (call.has("--num_fewshot") or call.has("--config")),
            call.fewshot_seed,
            has_template=call.has("--apply_chat_template") if dry_run else None,
            is_ignored=ignore_prompts,
        )
        if dry_run:
            launch = partial(run_command, call.without_model(), output=None, plugin=plugin)
            most = None if spec is None else spec.budget.n_items
            from itembank.harnesses.lm_eval.selected import dry_run as counted_run

            counted = counted_run(launch, loaded, item_ids, n_items=most, prompts=prompts, match=match)
            first = {} if plan is None else {"n_items_first": plan.sizes[0]}
            print_dry_run({"bank": loaded.bank_id, **first, **counted}, out)
            if prompts.has_template:
                note("Chat templates are the model's, so the settings of prompts were compared, not the prompts.")
            return
        launch = partial(run_command, call, output=output, plugin=plugin)
        how: dict[str, Any] = {"batch": batch, "prompts": prompts, "match": match}
        if chosen is not None:
            own = {"model_id": name, "level": choices["level"], "errors": choices["errors"]}
            scores = _run_selection(launch, call, loaded, chosen, output, **own, **how)
            if scores is not None:
                _print(scores, loaded, output, out, match)
        run = partial(_run_rest, launch, call, **how)
        if gate is not None:
            verdict = _run_gate(run, output, gate, bank=loaded, model_id=name, errors=choices["errors"])
        if spec is not None:
            with _session(run, output, spec, loaded, name) as session:
                _print(session.estimate().scores, loaded, output, out, match)
                end_session(session)
    if gate is not None:
        print_gate(verdict, out)
        end_gate(verdict, outputs)


def gate_of(folder: Path, bank: "ib.Bank", *, ignore_prompts: bool) -> "ib.GatePlan":
    """Load a gate, and check that the bank knows its items."""
    from itembank.harnesses.drive import check_gate

    plan = ib.GatePlan.load(folder)
    check_gate(plan, bank, set(bank.responses.item_ids), is_ignored=ignore_prompts)
    return plan


def _item_ids(bank: "ib.Bank", selection: "ib.Selection | None", spec: "ib.SessionSpec | None") -> list[str]:
    """Return the items that are run, or may be asked."""
    if selection is not None:
        return list(selection.item_ids)
    from itembank.sessions.first_items import excluded_items

    excluded = set() if spec is None else set(excluded_items(bank, spec))
    return [item for item in bank.responses.item_ids if item not in excluded]


def _with_tasks(call: "HarnessCall", bank: "ib.Bank", tasks: Sequence[str]) -> "HarnessCall":
    """Return the call with the bank's tasks, unless it names some."""
    from itembank.responses.prompts import names_in_harness

    if call.has("--tasks") or call.has("--config"):
        return call
    if not tasks:
        raise click.UsageError(
            "Name the tasks of lm_eval that have the items, since neither the bank nor its ids do "
            f"({visible(bank.responses.item_ids[0])}): -- --tasks NAME,... A group is searched whole."
        )
    own = names_in_harness(bank.responses.items)
    return call.with_more("--tasks", ",".join(own.get(task, task) for task in tasks))


def _run_selection(
    launch: Callable[[], Any], call: "HarnessCall", bank: "ib.Bank", selection: "ib.Selection", output: Path, **how: Any
) -> "ib.ScoreEstimates | None":
    """Run a selection, or what is missing of it in the logs; other ranks have no estimates."""
    from itembank.harnesses.lm_eval.rows import RowFile
    from itembank.harnesses.lm_eval.run import run_selection

    note_earlier(selection, keep_selection(selection, output), output)
    rows = RowFile(output / ROWS, call)
    n_answered = sum(item in rows.by_item for item in selection.item_ids)
    if n_answered:
        note(f"Continuing the run in {output}: {n_answered} items are answered.")
    with says_how_to_go_on():
        done = run_selection(launch, bank, selection, rows, is_logged=_is_logged(output, rows), **how)
    return None if done is None else done.estimates


@contextmanager
def _session(
    run: Callable[..., None], output: Path, spec: "ib.SessionSpec", bank: "ib.Bank", model_id: str
) -> Iterator["ib.AdaptiveSession"]:
    """Run a session to its end, or continue the one that is kept beside the logs."""
    from itembank.harnesses.lm_eval.run import session_at

    journal = output / "session.jsonl"
    with progress("session") as report, session_at(journal, bank, spec, model_id=model_id, progress=report) as session:
        run(bank, session, journal, after_answer=_say)
        yield session


def _run_gate(run: Callable[..., None], output: Path, gate: Path, *, bank: "ib.Bank", **who: Any) -> "ib.Gate":
    """Run the stages of a gate until there is a verdict, or continue those that are kept beside the logs."""
    from itembank.gating.running import open_gate_run

    journal = output / "gate.jsonl"
    with open_gate_run(journal, gate, bank=bank, **who) as stages:
        run(bank, stages, journal, after_answer=look_teller())
        return stages.result


def _run_rest(
    launch: Callable[[], Any],
    call: "HarnessCall",
    bank: "ib.Bank",
    session: "Asking",
    journal: Path,
    **how: Any,
) -> None:
    """Run what a session or a gate asks until it is over, and write the logs; say what continues."""
    from itembank.gating.running import GateRun
    from itembank.harnesses.lm_eval.rows import RowFile, option_probabilities
    from itembank.harnesses.lm_eval.run import rows_path, run_adaptively

    rows = RowFile(rows_path(journal), call)  # the journal's lock guards both files
    if isinstance(session, GateRun) and session.plan.probabilities is not None:
        session.look_with(lambda: option_probabilities(rows, session.model_id))
    if session.n_items:
        note(f"Continuing with the answers in {journal}: {session.n_items} items are answered.")
    is_over = session.reason_stopped is not None and not session.pending
    if not (is_over and _is_logged(journal.parent, rows)):
        with says_how_to_go_on():
            run_adaptively(launch, bank, session, rows, **how)


def _is_logged(output: Path, rows: "RowFile") -> bool:
    """Whether the harness has logged a run of these very arguments: with others, prompts are built and compared."""
    sweep(output)  # what was left if that run was killed at its very end
    return rows.is_of_same_words and any(output.rglob("results_*.json"))


def _say(session: "ib.AdaptiveSession", answer: "Answer") -> None:
    """Say how far a session is when a batch is told."""
    if isinstance(answer, Failed):
        note(f"{visible(answer.item_id)} has no answer: {visible(answer.reason)}.")
    if not session.pending:
        overall = session.estimate().scores.rows()[-1]
        score, low, high = (f"{100.0 * overall[name]:.1f}" for name in ("estimate", "low", "high"))
        note(f"{session.n_items} items: {overall['target']} {score}, {low} to {high} points")


def _print(scores: "ib.ScoreEstimates", bank: "ib.Bank", output: Path, out: Printer, match: str) -> None:
    """Print the estimates, and say which groups of lm_eval have another overall score."""
    print_run(scores, bank, output, out, match)
    if bank.targets.overall_is == "macro":
        note(MACRO_AND_GROUPS)


BATCH = 8


@verb("inspect", cls=Judging)
def run_inspect_command(
    *,
    bank: options.Bank,
    task: Annotated[str, argument()],
    arguments: Annotated[
        tuple[str, ...], argument(type=click.UNPROCESSED, metavar="-- INSPECT_ARGUMENTS...", required=False)
    ],
    output: Output,
    which: Annotated[Choices, _WHICH],
    batch: Annotated[
        int | None,
        option(f"--adaptive: items asked for and run at once.  [default: {BATCH}]", metavar="N", type=options.COUNT),
    ],
    scorer: Annotated[str | None, option("Whose scores are the responses.  [default: the bank's]", metavar="NAME")],
    task_arg: Annotated[tuple[str, ...], option("Argument of the task. Repeatable.", metavar="NAME=VALUE")],
    match: options.Match,
    dry_run: DryRun,
    ignore_prompts: IgnorePrompts,
    choices: RunSession,
    seed: options.Seed,
    outputs: Annotated[Choices, OUTPUTS],
) -> None:
    """Run chosen samples of TASK inside Inspect, and estimate the scores on all of them.

    TASK is what inspect eval takes: a file, FILE@NAME or PACKAGE/NAME. Arguments after two dashes go to inspect eval,
    whose output goes to standard error. Its log has the estimate, too.

      itembank run inspect bank inspect_evals/gsm8k --selection selection.json -o runs/m1 -- --model openai/gpt-4o
      itembank run inspect bank task.py -n 100 -o runs/m1 -- --model openai/gpt-4o
      itembank run inspect bank task.py --adaptive --half-width 0.02 --max-items 300 -o runs/m1 -- --model ...
      itembank run inspect bank task.py --gate gate -o runs/m2 -- --model openai/gpt-5

    If a run was interrupted, repeat the command to continue; no sample that was answered runs again. The exit code is 3
    if an adaptive run ends without the precision that was asked for, and 4 if a sample is not that of the bank.
    """
    from itembank.bank.bank_places import is_bank_name
    from itembank.harnesses.inspect.command import (
        IGNORE_PROMPTS,
        HarnessCall,
        check_arguments,
        check_task,
        expected_run,
        run_command,
    )
    from itembank.harnesses.inspect.samples import check_release, task_items

    adaptive, gate, out = which["adaptive"], which["gate"], outputs["out"]
    check_items(bank, which, choices, has_batches=adaptive)
    given: dict[str, Any] = {IGNORE_PROMPTS: True} if ignore_prompts else {}
    given |= {"match": match} if match != "auto" else {}
    place = str(bank if is_bank_name(bank) else bank.resolve())
    given |= {"task": task, "bank": place, "scorer": scorer, "task_args": _task_arguments(task_arg)}
    check_arguments(arguments)
    check_release()
    loaded = ib.load_bank(bank)
    with warnings_as_notes():
        known = task_items(loaded, _task_name(loaded, task))
        if adaptive:
            session = session_spec(choices, seed).to_dict()
            call = HarnessCall("adaptive", {**given, "batch": batch or BATCH, "session": session}, arguments)
        elif gate is not None:
            given |= {} if choices["errors"] is None else {"errors": choices["errors"]}
            call = HarnessCall("gated", {**given, "gate": str(gate.resolve())}, arguments)
        else:
            chosen = chosen_items(loaded, which, seed, known.others)
            kept = which["selection"] or keep_selection(chosen, output)
            note_earlier(chosen, kept, output)
            call = HarnessCall("subset", {**given, "selection": str(kept.resolve())}, arguments)
        note_untold_prompts(loaded)
        check_task(call, loaded, known)
        if dry_run:
            print_dry_run(expected_run(loaded, known, call), out)
            return
        with says_how_to_go_on():
            run_command(call, output)
        if gate is not None:
            verdict = _inspected_gate(gate, loaded, known, call, output)
        else:
            _print_harness_run(loaded, known, call, output, choices=choices, out=out)
    if gate is not None:
        print_gate(verdict, out)
        end_gate(verdict, outputs)


def _task_arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """Turn NAME=VALUE into a mapping; values that are JSON are read as such."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"must be NAME=VALUE, got {pair!r}.", param_hint="--task-arg")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _task_name(bank: "ib.Bank", task: str) -> str:
    """Return the name of a task, which a file alone does not tell if the bank has several."""
    names = bank.responses.items["task"].unique().to_list() if "task" in bank.responses.items.columns else []
    if "@" in task:
        return task.rpartition("@")[2]
    return str(names[0]) if len(names) == 1 else task.removesuffix(".py")


def _print_harness_run(
    bank: "ib.Bank", known: "TaskItems", call: "InspectCall", output: Path, *, choices: Mapping[str, Any], out: Printer
) -> None:
    """Print the estimates of a run that came to its end."""
    from itembank.harnesses.inspect.command import last_run, lost_to, run_answers
    from itembank.harnesses.inspect.samples import known_pool, selected_estimates, told_session

    run = last_run(output)
    answers = {} if run is None else run_answers(run, known, call.task_arguments["scorer"] or known.scorer)
    if run is None or not any(score == score for scores in answers.values() for score in scores):  # noqa: PLR0124 (NaN)
        raise DataError(f"{output}: no sample was scored, so there is nothing to estimate from.")
    note_known_models(bank, [run.model_id])
    session = None
    if "session" in call.task_arguments:
        text = json.dumps(call.task_arguments["session"], sort_keys=True)
        pool = known_pool(call.task_arguments["bank"], "", known.task, text)
        session = told_session(pool, answers, model_id=run.model_id, kinds=lost_to(run, known))
        scores: ib.ScoreEstimates | None = session.estimate().scores
    else:
        chosen = ib.Selection.load(call.task_arguments["selection"])
        how = {"level": choices["level"], "errors": choices["errors"], "kinds": lost_to(run, known)}
        scores = selected_estimates(bank, answers, chosen, model_id=run.model_id, **how)
    if scores is None:
        raise DataError(f"{output}: no sample of the selection was scored, so there is nothing to estimate from.")
    print_run(scores, bank, output, out, "auto")  # the samples have the bank's ids in the log
    note(OWN_SCORE)
    if session is not None:
        end_session(session)


def _inspected_gate(gate: Path, bank: "ib.Bank", known: "TaskItems", call: "InspectCall", output: Path) -> "ib.Gate":
    """Return the verdict of a run that came to its end."""
    from itembank.gating.running import GateRun
    from itembank.harnesses.inspect.command import answers_with_costs, last_run

    run = last_run(output)
    if run is None:
        raise DataError(f"{output}: no sample was run, so there is nothing to look at.")
    plan = ib.GatePlan.load(gate).with_errors(call.task_arguments.get("errors"))
    passing = GateRun(plan, model_id=run.model_id, bank=bank)
    for answer in answers_with_costs(run, known, call.task_arguments["scorer"] or known.scorer):
        passing.take(answer)
    return passing.result


@verb("harbor", cls=Judging)
def run_harbor_command(
    *,
    bank: options.Bank,
    data_set: Annotated[str, argument()],
    arguments: Annotated[
        tuple[str, ...], argument(type=click.UNPROCESSED, metavar="-- HARBOR_ARGUMENTS...", required=False)
    ],
    output: Output,
    which: Annotated[Choices, _WHICH],
    n_attempts: Annotated[
        int | None,
        option("Trials of each task.  [default: those of the job's file, else 1]", "--attempts", type=options.COUNT),
    ],
    batch: Annotated[
        int | None, option(f"--adaptive: tasks of a job.  [default: {BATCH}]", metavar="N", type=options.COUNT)
    ],
    model_id: Annotated[str | None, "Id of the agent.  [default: as its trials tell it]"],
    metric: Annotated[str | None, "The reward that counts, if there are several.  [default: reward]"],
    max_response: Annotated[float, option("The highest reward.", of=ReadingSpec)],
    dry_run: Annotated[bool, "Count the tasks, and say what past agents paid for them; run nothing."],
    ignore_prompts: Annotated[bool, "Run even if version or time limits differ from those of the bank's runs."],
    choices: RunSession,
    seed: options.Seed,
    outputs: Annotated[Choices, OUTPUTS],
) -> None:
    """Run chosen tasks of DATA_SET as jobs of Harbor, and estimate the scores on all tasks.

    DATA_SET is NAME@VERSION, ORGANISATION/NAME@REF, a folder of tasks, or the file of a job (JSON) with one data set.
    Arguments after two dashes go to harbor run, whose output goes to standard error.

      itembank run harbor bank terminal-bench@2.0 -n 30 -o runs/a1 -- -a terminus-2 -m openai/gpt-5
      itembank run harbor bank tasks/ --selection selection.json --attempts 3 -o runs/a1 -- -a claude-code -m ...
      itembank run harbor bank job.json --adaptive --half-width 0.05 --max-cost cost_usd=40 -o runs/a1
      itembank run harbor bank terminal-bench@2.0 --gate gate -o runs/a2 -- -a terminus-2 -m openai/gpt-6
      itembank run harbor bank terminal-bench@2.0 -n 30 -o runs/a1 --dry-run -- -a terminus-2

    If a run was interrupted, repeat the command: trials that lack, and tasks without any verdict, are run in a new job.
    The exit code is 3 if an adaptive run ends without the precision that was asked for, and 4 if the version of the
    data set or time limits are not those of the bank's runs.
    """
    from itembank.harnesses.harbor import HarborRun

    adaptive, gate, out = which["adaptive"], which["gate"], outputs["out"]
    check_items(bank, which, choices, has_batches=adaptive)
    loaded = ib.load_bank(bank)
    with warnings_as_notes():
        reading = ReadingSpec(
            metric=(metric,) if metric else (),
            max_response=max_response,
            errors=choices["errors"],
            allow_mixed_prompts=ignore_prompts,
        )
        run = HarborRun.of(loaded, data_set, output, arguments, n_attempts=n_attempts, spec=reading)
        others = [item for item in loaded.responses.item_ids if item not in set(run.item_ids)]
        spec = _without(loaded, session_spec(choices, seed), others) if adaptive else None
        plan = None if gate is None else gate_of(gate, loaded, ignore_prompts=ignore_prompts)
        chosen = None if adaptive or plan else chosen_items(loaded, which, seed, others)
        if dry_run:
            item_ids = _item_ids(loaded, chosen, spec) if plan is None else list(plan.order[: plan.sizes[-1]])
            _print_expected(run, item_ids, spec, plan, out)
            return
        run.check()
        name = model_id or run.model_id
        with says_how_to_go_on():
            if chosen is not None:
                note_earlier(chosen, keep_selection(chosen, output), output)
                run.answers([item for item in chosen.item_ids if item not in set(others)])
                scores = run.estimate(chosen, model_id=model_id, level=choices["level"])
                note_known_models(loaded, scores.model_ids)
                print_run(scores, loaded, output, out, "auto")
                note(OWN_SCORE)
            if spec is not None:
                asked = partial(_run_asked, run, batch or BATCH)
                with _session(asked, output, spec, loaded, name) as session:
                    print_run(session.estimate().scores, loaded, output, out, "auto")
                    end_session(session)
            if plan is not None and gate is not None:
                asked = partial(_run_asked, run, len(plan.order))
                verdict = _run_gate(asked, output, gate, bank=loaded, model_id=name, errors=choices["errors"])
    if gate is not None:
        print_gate(verdict, out)
        end_gate(verdict, outputs)


def _without(bank: "ib.Bank", spec: "ib.SessionSpec", others: Sequence[str]) -> "ib.SessionSpec":
    """Return a session that does not ask items of other data sets."""
    from itembank.sessions.first_items import excluded_items

    excluded = (*excluded_items(bank, spec), *others)
    return replace(spec, constraints=replace(spec.constraints, excluded=excluded)) if others else spec


def _print_expected(
    run: "HarborRun",
    item_ids: Sequence[str],
    spec: "ib.SessionSpec | None",
    plan: "ib.GatePlan | None",
    out: Printer,
) -> None:
    """Print what would be run at most, and what it would cost."""
    most = len(item_ids) if spec is None or spec.budget.n_items is None else min(spec.budget.n_items, len(item_ids))
    first = {} if plan is None else {"n_items_first": plan.sizes[0]}
    counts = {**first, "n_items": most, "n_items_full": len(run.item_ids)}
    trials = "a trial" if run.n_attempts == 1 else f"{run.n_attempts} trials"
    title = f"Would run {trials} of each of {most:,} tasks; nothing was run"
    row = {"bank": run.bank.bank_id, **counts, **run.expected_costs(item_ids, most)}
    out.rows([row], "run-dry", title=title)


def _run_asked(run: "HarborRun", batch: int, _bank: "ib.Bank", session: "Asking", journal: Path, **how: Any) -> None:
    """Run what a session or a gate asks until it is over; say what continues."""
    if session.n_items:
        note(f"Continuing with the answers in {journal}: {session.n_items} items are answered.")
    run.run_asked(session, batch, **how)


@click.group("run", cls=Group)
def run_command() -> None:
    """Run chosen items inside an evaluation harness, and estimate the full-benchmark score.

    itembank run lm-eval bank -n 100 -o runs/m1 -- --model hf --model_args pretrained=org/m1
    itembank run inspect bank mytask.py -n 100 -o runs/m1 -- --model openai/gpt-5
    itembank run harbor bank terminal-bench@2.0 -n 30 -o runs/a1 -- -a terminus-2 -m openai/gpt-5
    itembank run lm-eval bank --gate gate -o runs/int8 -- --model hf --model_args pretrained=org/m1-int8
    """


run_command.add_command(run_lm_eval_command)
run_command.add_command(run_inspect_command)
run_command.add_command(run_harbor_command)
