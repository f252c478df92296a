"""`itembank gate`: whether a change broke the model."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args

import click

import itembank as ib
from itembank.cli import options
from itembank.cli.command import EXIT_FAILED, EXIT_NO_VERDICT, Command, Group, failure
from itembank.cli.new_results import importing_first, read_new_results
from itembank.cli.options import refuse_unused, typed_command, write_report
from itembank.cli.render import (
    TABLE,
    Printer,
    is_quiet,
    note,
    print_exactly,
    print_object,
    warnings_as_notes,
    working,
    wrapped,
)
from itembank.cli.session_run import RUNNING, command_options, ends_like_ctrl_c, note_failure
from itembank.cli.signatures import Choices, NamedChoice, argument, option, verb
from itembank.errors import shell_word
from itembank.estimation.estimator_specs import QUESTIONS, DifferenceEstimand
from itembank.files.atomic import check_destination, write_text
from itembank.gating.gate_spec import GateSpec
from itembank.readers.reading_specs import ReadingSpec, Repeats
from itembank.sessions.events import Answer, Failed
from itembank.tables import plural

if TYPE_CHECKING:
    from itembank.gating.gate import GatePair
    from itembank.gating.running import GateRun
    from itembank.responses.error_kinds import Errors

_RULE: Choices = {
    "What passes": {
        "margin": option("Drop of the score that must not pass, from 0 to 1: 0.02 is 2 points.", of=GateSpec),
        "tolerance": option("Drop that is still healthy.  [default: half the margin]", of=GateSpec),
        "false_alarm": option("Share of healthy candidates that may fail, at most.", of=GateSpec),
        "miss": option("Share of candidates worse by the margin that may pass, at most.", of=GateSpec),
        "both_sides": option("Count a rise like a drop: are two harnesses, or prompts, the same?", type=bool),
        "estimand": option(
            "What the difference is of: this run on exactly these items (run), the mean over repeated runs on "
            "these (repeated), or questions like these (questions).  [default: questions; in stages run]",
            type=NamedChoice(get_args(DifferenceEstimand), expected=QUESTIONS),
        ),
        "cluster": option(
            "Column of the item table that groups items drawn together, such as documents.",
            metavar="COLUMN",
            default="",
        ),
    },
    "Lost answers": {
        "errors": options.LostAnswers,
        "max_lost": option(
            "Let nothing pass if either side lost a larger share of its answers.", metavar="SHARE", of=GateSpec
        ),
    },
}
Bank: TypeAlias = Annotated[
    Path | None, option("Bank of past models, with which few items say more.", type=options.BankPath())
]
Ids: TypeAlias = Annotated[str, option("Form of the printed items to run.", type=options.ID_FORMS, default="list")]


def _checked_file(ctx: click.Context, _parameter: click.Parameter, given: Path | bool | None) -> Path | bool | None:
    """Refuse before any work what no file could be written to: JUnit's, or for `--github` the job's summary."""
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    path = given if isinstance(given, Path) else Path(summary) if given and summary else None
    if path is not None and not ctx.resilient_parsing:
        check_destination(path)
    return given


OUTPUTS: Choices = {
    "report": options.Report,
    "junit": option(
        "Also write the verdict as JUnit XML.", metavar="FILE", type=options.NEW_FILE, callback=_checked_file
    ),
    "github": option(
        "Also write an annotation, a summary of the job and the output verdict of the step in GitHub Actions.",
        type=bool,
        callback=_checked_file,
    ),
    "out": options.Out,
}


class Judging(Command):
    """A command that ends with a verdict, or says in the forms of CI why there is none; never with the code of FAIL."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        """Read the options; of a command line that is wrong, as many as can be, to learn where to say so."""
        make, given = super().make_context, [*args]
        lenient = {"resilient_parsing": True, "ignore_unknown_options": True, "allow_extra_args": True}
        with _or_says_why_not(lambda: make(info_name, given, parent, **lenient)):
            return make(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _or_says_why_not(lambda: ctx):
            return super().invoke(ctx)


@contextmanager
def _or_says_why_not(context: Callable[[], click.Context]) -> Iterator[None]:
    """Write where options ask for it why there is no verdict, and end with an exit code that no verdict has."""
    try:
        yield
    except click.exceptions.Exit:  # with a verdict, or after --help
        raise
    except BaseException as error:  # a harness may call sys.exit, with the code of PASS, too
        ctx = context()
        asked, (reason, code) = ctx.params, failure(error)
        if not (asked.get("github") or asked.get("junit") or asked.get("gate", True)):
            raise  # a run without a gate
        from itembank.gating import ci_reports

        if (ctx.find_root().obj or {}).get("debug"):
            traceback.print_exception(error)
        if asked.get("github"):  # jobs show an annotation as an error, and only its line breaks are harmless there
            click.echo(ci_reports.annotation_without_verdict(reason), err=True)
            with suppress(OSError):
                _tell_github(ci_reports.summary_without_verdict(reason), "none")
        elif not isinstance(error, click.UsageError | BrokenPipeError):
            click.echo(wrapped(f"Error: {reason}"), err=True)
        if asked.get("junit"):
            with suppress(OSError):
                write_text(asked["junit"], ci_reports.junit_without_verdict(reason))
        if isinstance(error, click.UsageError):
            raise
        raise click.exceptions.Exit(EXIT_NO_VERDICT if code == EXIT_FAILED else code) from error


def _tell_github(summary: str, verdict: str) -> None:
    """Add a text to the summary of GitHub's job, and to the outputs of its step the verdict; elsewhere nothing."""
    for variable, text in (("GITHUB_STEP_SUMMARY", summary), ("GITHUB_OUTPUT", f"verdict={verdict}\n")):
        if name := os.environ.get(variable):
            with Path(name).open("a", encoding="utf-8") as file:
                file.write(text)


class GateGroup(Group):
    """A group that takes two results: `itembank gate A B` is `itembank gate verdict A B`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the usual command's name before what is no command's."""
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = ["verdict", *args]
        return super().parse_args(ctx, args)


@click.group("gate", cls=GateGroup)
def gate_command() -> None:
    """Did this change break the model? Pass, fail or undecided, against a margin.

    Two results, files or folders of logs, are enough:

      itembank gate runs/bf16 runs/int8 --margin 0.02

    `itembank gate verdict --help` lists all options. To run no more items than the verdict needs, run in stages:

      itembank gate start runs/bf16 --margin 0.02 -o gate
      itembank gate next gate runs/int8

    Exit codes, also of itembank run ... --gate:

      0  pass
      1  fail
      2  no verdict: the command line is wrong, or names a file that is not there
      3  undecided
      4  no verdict: items or prompts are not those of the bank, or a bank, gate or journal is damaged
      5  no verdict for any other reason, such as results that are damaged
    """


@verb("verdict", gate_command, cls=Judging)
def verdict_command(
    *,
    baseline: Annotated[Path, argument(type=options.EXISTING)],
    candidate: Annotated[Path, argument(type=options.EXISTING)],
    bank: Bank,
    selection: options.Selection,
    rule: Annotated[Choices, _RULE],
    self_test: Annotated[bool, "Both are runs of the same set-up: how often would it fail, and which margin works?"],
    repeats: Annotated[bool, "Items have repeated answers: say whether more items or more repeats help more."],
    jq: options.Jq,
    match: options.Match,
    allow_mixed_prompts: options.MixedPrompts,
    outputs: Annotated[Choices, OUTPUTS],
) -> None:
    """Decide from two results whether the candidate is as good as the baseline.

    PASS: the drop is proved to be less than the margin. FAIL: it is proved to be more than the tolerance, and the best
    estimate is the margin or more. UNDECIDED: the verdict says how many more items would decide it. If the
    candidate ran only some of the baseline's items, these must have been drawn at random (itembank gate start draws
    them).

      itembank gate runs/bf16 runs/int8 --margin 0.02
      itembank gate old.parquet new.parquet --bank bank --selection selection.json
      itembank gate harness-a.parquet harness-b.parquet --both-sides
      itembank gate run-1 run-2 --self-test
    """
    from itembank.bank.arguments import as_selection
    from itembank.gating.gate import GatePair, gate, probabilities_of_both
    from itembank.gating.lost import as_counted
    from itembank.readers.agreement import only_items

    if repeats:
        from itembank.gating.noise import advice, more_items_or_repeats

    refuse_unused(("match", bank is not None, "--bank BANK"))
    reading: dict[str, Any] = {"match": match, "errors": rule["errors"], "jq": jq}
    reading["allow_mixed_prompts"] = allow_mixed_prompts
    spec = GateSpec(**rule)
    loaded = None if bank is None else ib.load_bank(bank)
    with working("gate") as advance:
        one, other = (
            read_run([path], loaded, repeats="count" if repeats else "error", **reading)
            for path in (baseline, candidate)
        )
        chosen = None if selection is None else as_selection(selection)
        if chosen is not None:
            one, other = (only_items(each, chosen.item_ids)[0] for each in (one, other))
        if self_test:
            _end_self_test(GatePair.of(*as_counted(one, other, spec.errors)), spec, outputs["out"])
            return
        found = gate(
            one,
            other,
            bank=loaded,
            selection=chosen,
            probabilities=None if loaded is not None else probabilities_of_both([baseline], one, [candidate], other),
            allow_mixed_prompts=allow_mixed_prompts,
            spec=spec,
            progress=advance,
        )
    more = []
    if repeats:
        pair = GatePair.of(*as_counted(one, other, spec.errors), allow_mixed_prompts=True)
        more = more_items_or_repeats(pair, found)
    print_gate(found, outputs["out"], more)
    quoted = shell_word(baseline)
    then = {
        "undecided": ("The difference of these two runs alone", f"{typed_command()} --estimand run")
        if found.is_all_run
        else (
            "To run no more items than the verdict needs",
            f"itembank gate start {quoted} --margin {spec.margin:g} -o gate",
        ),
        "fail": ("How far apart two runs of the baseline are", f"itembank gate {quoted} ANOTHER_RUN --self-test"),
    }
    if repeats:
        note(advice(more) if more else "Note: without several attempts, right or wrong, nothing is known of repeats.")
    end_gate(found, outputs, then.get(found.verdict))


@contextmanager
def _to_a_reader_who_may_leave() -> Iterator[None]:
    """Print: if the reader has left (`| head -1`), the rest goes nowhere, and the exit code is the verdict's."""
    try:
        yield
    except BrokenPipeError:  # else the interpreter would fail to write the rest when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@_to_a_reader_who_may_leave()
def _end_self_test(pair: "GatePair", spec: GateSpec, out: Printer) -> None:
    from itembank.gating.noise import self_test

    found = self_test(pair, spec)
    if out.is_json:
        print_object(found.to_dict(), "gate-self-test")
        return
    if out.is_csv:
        out.rows(found.rows(), "gate-self-test")
        return
    click.echo(f"{wrapped(found.sentence)}\n")
    title = "Noise floor of a score, and of a difference: standard errors in points"
    TABLE.rows(found.floor(), "gate-self-test", title=title)
    click.echo(wrapped("On the same items, as here, a difference has the noise of trials alone."))
    rows = [{n: v if n == "margin" else f"{100 * v:.1f} %" for n, v in row.items()} for row in found.rows()]
    click.echo("")
    title = "How often a candidate that is the same fails, passes, or falls below a threshold; margins in points"
    TABLE.rows(rows, "gate-self-test", title=title)


def read_run(
    paths: Sequence[Path], bank: "ib.Bank | None", *, match: str, repeats: Repeats = "error", **reading: Any
) -> "ib.ResponseMatrix":
    """Read the results of one model, without the warning that they are of some items only."""
    from itembank.readers.read import read_matrix

    if bank is not None:
        return read_new_results(bank, paths, match=match, **reading)
    with importing_first(paths, reading["jq"]):
        return read_matrix(list(paths), ReadingSpec(repeats=repeats, **reading))


@_to_a_reader_who_may_leave()
def print_gate(found: "ib.Gate", out: Printer, repeats: Sequence[Mapping[str, Any]] = ()) -> None:
    """Print a verdict, and what more items and repeats would bring."""
    if out.is_json:
        print_object({**found.to_dict(), **({"repeats": list(repeats)} if repeats else {})}, "gate")
    elif out.is_csv:
        out.rows(found.rows(), "gate")
    else:
        click.echo(coloured(wrapped(found.sentence)))
        click.echo("")
        for name, words in found.facts:
            click.echo(wrapped(f"{name:<17}{words}", indent=17))


_COLOURS = {"PASS": "green", "FAIL": "red", "UNDECIDED": "yellow"}


def coloured(sentence: str) -> str:
    """Colour the verdict at the beginning of a sentence; `click.echo` takes it out where no terminal reads it."""
    word = sentence.partition(":")[0]
    if word not in _COLOURS or os.environ.get("NO_COLOR"):  # no-color.org
        return sentence
    return click.style(word, fg=_COLOURS[word], bold=True) + sentence.removeprefix(word)


def end_gate(found: "ib.Gate", outputs: Mapping[str, Any], then: tuple[str, str] | None = None) -> None:
    """Write what else was asked for, and exit with the verdict's code; the page says what to do `then`."""
    from itembank.gating.ci_reports import github_annotation, junit_xml, step_summary

    for text in found.notes:
        note(f"Note: {text}.")
    if outputs.get("report") is not None:
        from itembank.pages.gate_page import gate_page

        words = ["itembank", *sys.argv[1:]]
        place = words.index("--") if "--" in words else len(words)  # what comes after it is a harness's
        words[place:place] = [
            word for one in ("--junit gate.xml", "--github") if one.split()[0] not in words for word in one.split()
        ]
        ways = [*([then] if then else []), ("In continuous integration", " ".join(map(shell_word, words)))]
        write_report(gate_page(found, command=typed_command(), then=ways), outputs["report"])
    if outputs.get("junit") is not None:
        write_text(outputs["junit"], junit_xml(found))
    if outputs.get("github"):
        _tell_github(step_summary(found), found.verdict)
        is_read_by_programs = not outputs["out"].is_table or bool(found.next_items)
        click.echo(github_annotation(found), err=is_read_by_programs)  # GitHub reads both
    click.get_current_context().exit(found.exit_code)


@verb("start", gate_command, cls=Judging)
def start_command(
    *,
    baseline: Annotated[Path, argument(type=options.EXISTING)],
    output: Annotated[Path, options.written("Folder of the gate.", "GATE", options.OTHER_FOLDER)],
    bank: Bank,
    rule: Annotated[Choices, _RULE],
    max_items: Annotated[int | None, option("Most items to run.", of=GateSpec)],
    ids: Ids,
    jq: options.Jq,
    match: options.Match,
    seed: options.Seed,
    out: options.Out,
) -> None:
    """Plan a gate in stages from the baseline's results, and print the first items to run.

    The baseline runs once, on all items. Every candidate then runs stage after stage and stops as soon as there is a
    verdict. Error rates are for all stages together. A margin that no number of these items can decide is refused.

      itembank gate start runs/bf16 --margin 0.02 -o gate
      itembank gate start runs/bf16 --bank bank:mmlu-pro --margin 0.03 --ids lm-eval -o gate
    """
    from itembank.gating.gate import option_probabilities
    from itembank.gating.stages import check_gate_destination, start_gate
    from itembank.harnesses.id_forms import id_text

    refuse_unused(("match", bank is not None, "--bank BANK"))
    check_gate_destination(output)
    spec = GateSpec(**rule, max_items=max_items, seed=seed)
    loaded = None if bank is None else ib.load_bank(bank)
    with warnings_as_notes():
        given = read_run([baseline], loaded, match=match, errors=spec.errors, jq=jq)
        known = None if loaded is not None else option_probabilities([baseline], given)
        plan = start_gate(given, bank=bank, probabilities=known, spec=spec)
        first = plan.next_items()
        text = "" if out.is_json else id_text(ids, first, plan.baseline.items)  # refuses ids before a gate is there
        plan.save(output)
    if out.is_json:
        facts = {"gate": str(output), "bank": plan.bank_id, "n_total": len(plan.order), "looks": list(plan.sizes)}
        print_object({**facts, "next_items": list(first)}, "gate-start")
    else:
        print_exactly(text)
    note(
        f"The gate looks at {', '.join(map(str, plan.sizes))} items. Run the {len(first)} above, then: itembank gate "
        f"next {shell_word(output)} RESULTS"
    )


@verb("next", gate_command, cls=Judging)
def next_command(
    *,
    gate: Annotated[Path, argument(type=options.EXISTING_FOLDER)],
    candidate: Annotated[tuple[Path, ...], argument(type=options.EXISTING, required=False)],
    how: Annotated[
        Choices,
        command_options(
            "Run the stages by this program, once for each item, until there is a verdict. Columns of the baseline's "
            "item table in braces are replaced: {item_id}, {scenario}, ...",
            is_required=False,
        ),
    ],
    running: Annotated[Choices, RUNNING],
    model_id: Annotated[str | None, "Name of the candidate that the command runs."],
    ids: Ids,
    reading: options.NewResults,
    outputs: Annotated[Choices, OUTPUTS],
) -> None:
    """Decide from all answers so far whether the candidate passes, or print the items to run next.

    --command runs the items, stage after stage, by a program that prints its answer as for itembank session run. Stop
    it whenever you like and give the same command again: no item that was answered runs twice.

      itembank gate next gate runs/int8
      itembank gate next gate runs/int8-1 runs/int8-2 --format json
      itembank gate next gate --command 'python agent.py {item_id}' --model-id agent-2 --jobs 4
    """
    from itembank.gating.gate import option_probabilities
    from itembank.harnesses.id_forms import id_text

    is_run = how["command"] is not None
    if is_run == bool(candidate):
        raise click.UsageError("Give the candidate's results, or --command COMMAND to run its items: one of them.")
    plan = ib.GatePlan.load(gate).with_errors(reading["errors"])
    refuse_unused(
        ((*how, *running, "model_id"), is_run, "--command COMMAND"),
        (("ids", "jq", "allow_mixed_prompts"), not is_run, "results of the candidate"),
        ("match", not is_run and bool(plan.bank_id), "results for a gate with a bank"),
    )
    if is_run:
        if not model_id:
            raise click.UsageError("The candidate needs a name: --model-id NAME.")
        with warnings_as_notes():
            found = _run_by_command(gate, model_id, reading["errors"], how, running)
        print_gate(found, outputs["out"])
        end_gate(found, outputs)
        return
    loaded = plan.bank()
    with warnings_as_notes():
        given = read_run(candidate, loaded, **{**reading, "errors": plan.spec.errors})
        known = option_probabilities(candidate, given) if plan.probabilities is not None else None
        allow = reading["allow_mixed_prompts"]
        found = plan.look(given, bank=loaded, probabilities=known, allow_mixed_prompts=allow)
    then = None
    if found.next_items:
        words = " ".join(["itembank gate next", *map(shell_word, (gate, *candidate)), "NEXT_RESULTS"])
        then = (f"When the next {plural(len(found.next_items), 'item', 'are')} answered", words)
    if found.next_items and outputs["out"].is_table:
        if not is_quiet():
            click.echo(coloured(wrapped(found.sentence)), err=True)
        with _to_a_reader_who_may_leave():
            print_exactly(id_text(ids, found.next_items, plan.baseline.items))
    else:
        print_gate(found, outputs["out"])
    end_gate(found, outputs, then)


def _run_by_command(
    gate: Path, model_id: str, errors: "Errors | None", how: Mapping[str, Any], running: Mapping[str, Any]
) -> "ib.Gate":
    """Run stages by a command until there is a verdict; answers are kept beside the gate."""
    from itembank.gating.running import open_gate_run
    from itembank.harnesses.commands import CommandItems, CommandSpec, file_name
    from itembank.harnesses.drive import drive

    with open_gate_run(gate / file_name(model_id, ".answers.jsonl"), gate, model_id=model_id, errors=errors) as run:
        items = CommandItems(CommandSpec(**how), run.plan.baseline.items)
        if run.n_items:
            note(f"Continuing: {plural(run.n_items, 'item', 'are')} answered.")
        with ends_like_ctrl_c(run):  # a `GateRun` has what is asked of a session
            drive(run, items, **running, after_answer=look_teller(), on_interrupt=items.interrupt)
        return run.result


def look_teller() -> Callable[[Any, "Answer"], None]:
    """Make what reports on standard error, after each answer, what failed and what a look found."""
    from itembank.gating.results import signed

    told: ib.Gate | None = None

    def tell(run: "GateRun", answer: "Answer") -> None:
        nonlocal told
        if isinstance(answer, Failed):
            note_failure(answer)
        elif run.found is not None and run.found is not told:
            told, look = run.found, run.found.last
            note(
                f"{look.n_items} of {told.n_total} items: difference {signed(look.difference)} points "
                f"({signed(look.low)} to {signed(look.high)})"
            )

    return tell
