"""`itembank calibrate`: fit item parameters and write a bank, of each of many results, or without past results."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import itembank as ib
from itembank.calibration.calibration_specs import METHODS, JointMAP, Variational
from itembank.cli.command import Command, gathered, headed
from itembank.cli.new_results import importing_first, read_results
from itembank.cli.options import (
    EXISTING,
    FILE,
    MethodName,
    NumberOrWord,
    file_choices,
    format_option,
    method_option,
    option,
    output_option,
    parallel_option,
    refuse_unused,
    score_options,
    seed_option,
    spec_file_option,
    typed,
)
from itembank.cli.render import note, print_rows, progress, warnings_as_notes
from itembank.errors import ItembankWarning, ParameterError, command_line_words, shown, visible
from itembank.responses.score_names import Across, Within

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.calibration.calibration_specs import CalibrationSpec
    from itembank.planning.accuracy import MoreModels
    from itembank.responses.responses import ResponseMatrix

OWN_DIMS = {"1pl": 1, "2pl": 1, "nested": 4, "bifactor": 1}
"""Number of abilities of an item model where none is given; that of a bifactor one follows from the scenarios.

Nested: WILD takes 3. One specific ability more is our choice: it gains where tasks differ, and costs nothing elsewhere
(`benchmarks/tables/tables.md`, "Predicting tasks that were never asked").
"""


_ITEM_MODEL = headed(
    "Item model",
    option(
        "--item-model",
        "One slope for all items (1pl), one each (2pl), several abilities (mirt), a general and specific ones "
        "(nested), one a scenario (bifactor, map only).  [default: by --dims]",
        JointMAP,
        default=None,
        show_default=False,
    ),
    option(
        "--family",
        "Right or wrong; counts; probabilities (beta); counts that agree more than chance; a few levels (graded: with"
        " --method mml); auto: by known trials.",
        Variational,
    ),
)


external_options = headed(
    "External scores",
    option("--scores", "Scores of models that their items do not make, by model_id.", FILE),
    option("--score COLUMN external", "A column of --scores to keep. Repeatable.", many=True),
)
"""Scores that `--target COLUMN` of later commands estimates."""


@click.command("calibrate", cls=Command)
@click.argument("responses", nargs=-1, type=EXISTING)
@output_option("the bank folder")
@option("--force", "Replace the bank that stands at -o.", bool)
@option(
    "--each",
    "Make a bank of each of RESPONSES in the folder -o, but for those that stand there, --jobs at a time.",
    bool,
)
@option(
    "--items",
    "Begin a bank of all items of this table, without RESPONSES or with few: item_id, and where known scenario, "
    "subscenario, weight and difficulty_prior (in logits, for an average model).",
    FILE,
)
@option(
    "--parameters",
    "--items holds item parameters that others fitted: difficulty and discrimination, loading_1, ... and intercept, "
    "a1, ... and d of R's mirt; or it is best_parameters.json of py-irt or tinyBenchmarks.pkl.",
    bool,
)
@option("--benchmark NAME", "--parameters: the one to take of a file that holds several benchmarks.")
@method_option(
    MethodName(METHODS),
    "Variational Bayes, joint MAP, or marginal ML (1 ability).",
    default="variational",
)
@option(
    "--dims",
    "How many abilities; auto tries several.  [default: by --item-model, else auto]",
    NumberOrWord(int, "auto"),
)
@spec_file_option("the spec of --method", "known_guessing, by_task or precision")
@gathered("choices", _ITEM_MODEL)
@score_options
@external_options
@option(
    "--folds/--no-folds",
    "Also fit folds of models, which calibrated intervals rest on; else the first command that needs them does.",
    bool,
    default=True,
    show_default=True,
)
@parallel_option
@seed_option
@format_option
def calibrate_command(
    *,
    responses: tuple[Path, ...],
    output: Path,
    force: bool,
    each: bool,
    items: Path | None,
    parameters: bool,
    benchmark: str | None,
    method: str,
    dims: int | str | None,
    spec_file: Path | None,
    choices: Mapping[str, Any],
    within: Within,
    across: Across,
    external: tuple[str, ...],
    scores: Path | None,
    folds: bool,
    seed: int,
    output_format: str,
) -> None:
    """Fit item parameters to the responses of past models and write a bank.

    RESPONSES are files made by itembank import, which puts what is known of models and items into them, or any table of
    model_id, item_id, response.

    \b
      itembank calibrate responses.parquet -o bank
      itembank calibrate responses.parquet -o bank --spec guessing.toml
      itembank calibrate probabilities.parquet -o bank --item-model 2pl --family beta
      itembank calibrate results.csv -o bank --scores leaderboard.csv --score mmlu_full
      itembank calibrate results/*.parquet -o banks --each --jobs 4

    where guessing.toml has the line known_guessing = true.

    With --items and fewer than ten past models, items are drawn at random and intervals rest on the draw alone: they
    hold whatever the items are like. From ten models on an item model is fitted. Begin again with more results as they
    come.

    \b
      itembank calibrate --items items.csv -o bank
      itembank calibrate first-model-full.csv --items items.csv -o bank --force

    With --parameters there are no past models; estimates and intervals rest on these parameters, and the bank is
    as good as they are.

    \b
      itembank calibrate --items parameters.csv --parameters -o bank
      itembank calibrate --items tinyBenchmarks.pkl --parameters --benchmark mmlu -o tiny-mmlu
    """  # noqa: D301
    from itembank.bank.bank_files import check_bank_destination  # noqa: PLC0415

    refuse_unused(("parameters", items is not None, "--items"), ("benchmark", parameters, "--parameters"))
    if items is not None:
        fitted = ("each", "method", "dims", "spec_file", *choices, "scores", "external", "folds")
        refuse_unused(*((name, False, "past results that are many, not with --items") for name in fitted))
        check_bank_destination(output, overwrite=force)
        choices = {"within": within, "across": across}
        if parameters:
            if responses:
                raise click.UsageError("A bank of known --parameters has no past models. Leave RESPONSES out.")
            _start_known(items, output, {**choices, "benchmark": benchmark or ""}, output_format, force=force)
        else:
            _start(items, responses, output, {**choices, "rng": seed}, output_format, force=force)
        return
    if not responses:
        raise click.UsageError("Missing argument 'RESPONSES...'. A bank without past results needs --items ITEMS.csv.")
    check_external_options(scores, external)
    given = file_choices(spec_file, METHODS.kinds[method]) | _given(method, choices)
    own_dims = given.pop("n_dims", None)
    dims = own_dims if dims is None else dims
    make = partial(
        _make, method=method, dims=dims, given=given, within=within, across=across, scores=scores, external=external,
        folds=folds, seed=seed, force=force,
    )  # fmt: skip
    if each:
        rows = calibrate_each(responses, output, BankWork(make, partial(_finish, folds=folds), _summary, force))
        print_rows(rows, output_format, title=f"Banks in {output}", columns=COLUMNS)
        if any(row["status"] == "failed" for row in rows):
            click.get_current_context().exit(1)
        return
    check_bank_destination(output, overwrite=force)
    with warnings_as_notes():
        bank = make(responses, output)
    print_rows([_summary(bank)], output_format, title=f"Bank {output}")
    # a fifth of a small bank: as many as there are would be refused, or leave nothing to estimate
    n_items = min(100, max(bank.targets.n_scenarios, bank.n_items // 5))
    note(f"Next: itembank select {output} -n {n_items} -o selection.json")


def check_external_options(scores: Path | None, external: Sequence[str]) -> None:
    """Refuse one of the two options without the other."""
    if (scores is None) != (not external):
        raise click.UsageError("--scores FILE and --score COLUMN go together. Give both, or leave both out.")


def with_scores(
    responses: "ResponseMatrix", scores: Path | None, external: Sequence[str], scenarios: Sequence[str]
) -> "ResponseMatrix":
    """Keep the external scores of models beside their responses."""
    if scores is None:
        return responses
    from itembank.bank.known_scores import check_external_names, with_external_scores  # noqa: PLC0415
    from itembank.readers.matrix import read_known  # noqa: PLC0415

    check_external_names(external, scenarios)
    return responses.with_tables(
        models=with_external_scores(responses.models, read_known(scores, "model_id")[0], external)
    )


def _make(
    responses: tuple[Path, ...],
    output: Path,
    *,
    method: str,
    dims: int | str | None,
    given: Mapping[str, Any],
    within: Within,
    across: Across,
    scores: Path | None,
    external: tuple[str, ...],
    folds: bool,
    seed: int,
    force: bool,
) -> "Bank":
    """Read responses, fit items, write the bank whole, and then its folds."""
    from itembank.responses.targets import ScoreTargets  # noqa: PLC0415

    matrix = read_results(responses)
    # what follows complains before the long work, not after
    targets = ScoreTargets.create(matrix.items, within=within, across=across)
    matrix = with_scores(matrix, scores, external, targets.scenarios)
    spec = _spec(matrix, method, dims, given)
    with progress("calibrate") as report:
        bank = ib.build_bank(matrix, spec, within=within, across=across, rng=seed, progress=report)
    ib.save_bank(bank, output, overwrite=force)
    if folds:
        _finish(output, folds=True)
    return bank


def _finish(output: Path, *, folds: bool) -> "Bank":
    """Load the bank that was written, and fit the folds that it has not."""
    bank = ib.load_bank(output)
    if folds:
        with progress("calibrate") as report:
            ib.prepare(bank, keep_in_bank=True, progress=report)
    return bank


def _given(method: str, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices that were given and that the method and the item model have; refuse the others."""
    having = {name: [one for one in METHODS.builtin_names if name in _fields(one)] for name in choices}
    rules = [(name, name in _fields(method), f"--method {' or '.join(having[name])}") for name in choices]
    refuse_unused(*rules)
    idle = {name for name, has_say, _ in rules if not has_say}
    return {name: value for name, value in typed(choices).items() if name not in idle}


def _fields(method: str) -> set[str]:
    """Names of a method's choices."""
    return {one.name for one in fields(METHODS.kinds[method])}


def _spec(
    responses: "ResponseMatrix", method: str, dims: int | str | None, given: Mapping[str, Any]
) -> "CalibrationSpec":
    """Make the spec of the options; chooses the number of dimensions when asked to."""
    kind, item_model = METHODS.kinds[method], given.get("item_model")
    options = {name: value for name, value in given.items() if name != "item_model"}
    if dims == "auto" and item_model in {"1pl", "2pl"}:
        raise click.UsageError(f"--dims auto chooses among several abilities; --item-model {item_model} has one.")
    if dims == "auto" and item_model == "bifactor":
        raise click.UsageError("--dims goes without --item-model bifactor: it has one ability a scenario.")
    if dims is None and item_model is None and given.get("positive_discrimination", False):
        item_model = "2pl"
    if method == "mml":
        if dims not in {None, 1}:
            raise click.UsageError("--method mml fits one ability: leave --dims out, or take another method.")
        dims = 1
    if dims is None and item_model in OWN_DIMS:
        dims = OWN_DIMS[item_model]
    elif dims is None or dims == "auto":
        base = kind(item_model="nested", n_dims=2, **options) if item_model == "nested" else kind(**options)
        dims = _chosen_n_dims(responses, base, is_asked_for=dims == "auto")
    model = item_model or ("2pl" if dims == 1 else "mirt")
    return kind(item_model=model, n_dims=dims, **options)  # type: ignore[arg-type]


def _chosen_n_dims(responses: "ResponseMatrix", spec: "CalibrationSpec", *, is_asked_for: bool) -> int:
    """Choose the number of dimensions, or take one where the data are too few to tell and nobody asked."""
    from itembank.calibration.dimensions import MINIMUM_TO_CHOOSE, choose_n_dims  # noqa: PLC0415

    is_one_item = responses.n_items == 1
    if (responses.n_models < MINIMUM_TO_CHOOSE or is_one_item) and not is_asked_for:
        few = "one item is" if is_one_item else f"{responses.n_models} models are"
        note(f"1 dimension: {few} too few to choose more.")
        return 1
    with progress("choose dimensions") as report:
        choice = choose_n_dims(responses, spec, progress=report)
    note(f"{choice.n_dims} {'dimension' if choice.n_dims == 1 else 'dimensions'}: {choice.message}.")
    return choice.n_dims


def _summary(bank: "Bank") -> dict[str, Any]:
    """One row on the bank."""
    calibration = bank.calibration
    return {
        "bank": bank.bank_id,
        "n_models": bank.n_models,
        "n_items": bank.n_items,
        "n_scenarios": bank.targets.n_scenarios,
        "method": calibration.method,
        "item_model": calibration.item_model,
        "family": calibration.parameters.family,
        "n_dims": calibration.n_dims,
        "converged": calibration.converged,
        "n_iterations": calibration.n_iterations,
        "n_degenerate_items": int(calibration.is_degenerate.sum()),
    }


Made = tuple[dict[str, Any], str, list[str]]
"""The row of a bank, what ended it (empty where nothing did), and what it warned of."""

COLUMNS = ("name", "status", "bank", "n_models", "n_items", "n_scenarios", "n_dims", "converged")
"""Of the table; JSON and CSV have all."""


@dataclass(frozen=True, slots=True)
class BankWork:
    """How one bank is made."""

    # function of (paths,) and a destination: Makes a bank and writes it whole.
    make: Callable[[tuple[Path, ...], Path], "Bank"]
    finish: Callable[[Path], "Bank"]  # Loads a bank that stands there already, and does what may be left to do
    summary: Callable[["Bank"], dict[str, Any]]  # What a row says of it
    force: bool  # Make those anew that stand there already


def calibrate_each(sources: Sequence[Path], output: Path, work: BankWork) -> list[dict[str, Any]]:
    """Make a bank of each of the results in a folder; one that fails does not stop the others.

    Rows come in the order of the results, with `name`, `status` ('made', 'kept' or 'failed') and `error`.
    """
    from itembank.numerics.parallel import in_parallel  # noqa: PLC0415

    names = names_of(sources)
    check_folder(output)
    parts = [(source, output / name, work) for source, name in zip(sources, names, strict=True)]
    rows: dict[int, dict[str, Any]] = {}
    with progress("calibrate") as report:
        for number, (row, failure, said) in in_parallel(_made_quietly, parts):
            rows[number] = row
            for message in dict.fromkeys(said):
                click.echo(f"Warning: {names[number]}: {visible(message)}", err=True)
            if failure:
                click.echo(f"Error: {names[number]}: {visible(failure)}", err=True)
            report(f"{len(rows)} of {len(parts)} done", len(rows) / len(parts))
    n_kept = sum(row["status"] == "kept" for row in rows.values())
    if n_kept:
        note(f"{n_kept} of {len(rows)} banks stood there already and were kept; --force makes them anew.")
    known = dict.fromkeys(name for row in sorted(rows.values(), key=len, reverse=True) for name in row)
    return [{**known, **rows[number]} for number in range(len(parts))]


def names_of(sources: Sequence[Path]) -> list[str]:
    """Return the name of each bank: that of its file without endings, or of its folder.

    Raises
    ------
    ParameterError
        When two would have one name.
    """
    names = [source.name.split(".")[0] if source.is_file() else source.resolve().name for source in sources]
    twice = [str(source) for source, name in zip(sources, names, strict=True) if names.count(name) > 1 or not name]
    if twice:
        raise ParameterError(
            "with --each every bank is named after its results, so their names must differ and not be empty, got "
            f"{shown(twice)}. Rename them, or calibrate these one by one."
        )
    return names


def check_folder(output: Path) -> None:
    """Raise `ParameterError` where no folder of banks can be."""
    from itembank.bank.bank_records import RECORD  # noqa: PLC0415
    from itembank.files.atomic import check_destination  # noqa: PLC0415

    check_destination(output, is_folder=True)
    if (output / RECORD).is_file():
        raise ParameterError(
            f"{output} is a bank; with --each, -o must name a folder for several. Choose another place."
        )


def _made_quietly(source: Path, destination: Path, work: BankWork) -> Made:
    """Make one bank without a word: banks that are made at once would write over each other's bars."""
    from itembank.bank.bank_files import check_bank_destination  # noqa: PLC0415
    from itembank.bank.bank_records import RECORD  # noqa: PLC0415

    with (
        command_line_words(),
        click.Context(click.Command(destination.name), obj={"quiet": True}).scope(),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", ItembankWarning)
        is_there = (destination / RECORD).is_file() and not work.force
        status, failure, facts = "kept" if is_there else "made", "", {}
        try:
            if not is_there:
                check_bank_destination(destination, overwrite=work.force)  # before the long work
            facts = work.summary(work.finish(destination) if is_there else work.make((source,), destination))
        except click.ClickException as error:
            status, failure = "failed", error.format_message()
        except Exception as error:  # noqa: BLE001 (whatever ends a bank is told as its failure)
            status, failure = "failed", str(error) or type(error).__name__
    said = [str(one.message) for one in caught if issubclass(one.category, ItembankWarning)]
    return {"name": destination.name, "status": status, **facts, "error": failure or None}, failure, said


def _start(
    items: Path,
    responses: tuple[Path, ...],
    output: Path,
    choices: Mapping[str, Any],
    output_format: str,
    *,
    force: bool,
) -> None:
    """Begin a bank without past results, or with those of a few models."""
    from itembank.planning.accuracy import plan_models  # noqa: PLC0415
    from itembank.readers.agreement import read_new_responses  # noqa: PLC0415
    from itembank.readers.matrix import read_known  # noqa: PLC0415

    with warnings_as_notes():
        table, _ = read_known(items, "item_id")
        matrix = None
        if responses:
            with importing_first(responses):
                matrix = read_new_responses(responses, table)
        with progress("calibrate") as report:
            bank = ib.banks.start(table, matrix, progress=report, **choices)
    ib.save_bank(bank, output, overwrite=force)
    n_items = min(100, bank.n_items)
    plan = None if bank.calibration.is_fitted else plan_models(bank, n_items)
    print_rows([_about_start(bank, plan)], output_format, title=f"Bank {output}")
    if plan is not None:
        _say_what_to_expect(bank, plan)
    note(f"Next: itembank select {output} -n {n_items} -o selection.json")


def _start_known(items: Path, output: Path, choices: Mapping[str, Any], output_format: str, *, force: bool) -> None:
    """Make a bank of known item parameters, and write the items to run beside it where the file names them."""
    with warnings_as_notes():
        bank = ib.banks.start(items, parameters=True, **choices)
    ib.save_bank(bank, output, overwrite=force)
    own = bank.items_to_run
    if own is not None:
        own.save(output / "selection.json")
    print_rows([_summary(bank)], output_format, title=f"Bank {output}")
    if own is None:
        note(f"Next: itembank select {output} -n {min(100, bank.n_items)} -o selection.json")
    else:
        note(f"Items to run: {own.n_items}, in {output / 'selection.json'}. Next: itembank estimate {output} RESULTS")


def _about_start(bank: "Bank", plan: "MoreModels | None") -> dict[str, Any]:
    """One row on the bank, and how wide intervals will be where they rest on the draw of items."""
    row = {
        "bank": bank.bank_id,
        "n_models": bank.n_models,
        "n_items": bank.n_items,
        "n_scenarios": bank.targets.n_scenarios,
        "method": bank.calibration.method,
    }
    if plan is None:
        return row
    now, *later = plan.rows()
    widths = {f"half_width_{one['n_models']}_models": one["half_width"] for one in later}
    return {**row, "n_items_to_run": plan.n_items, "half_width": now["half_width"], **widths}


def _say_what_to_expect(bank: "Bank", plan: "MoreModels") -> None:
    """Say how wide intervals will be, and what more past models would do."""
    if plan.n_items == bank.n_items:
        note(f"A model that runs all {bank.n_items} items needs no interval; few give an interval.")
        return
    now, *later = plan.rows()
    note(
        f"Expect {100.0 * plan.level:g} % intervals of +-{100.0 * now['half_width']:.1f} points for the overall score "
        f"from {plan.n_items} items drawn at random."
    )
    how = "this bank's models" if plan.is_measured else "models usually do"
    widths = " or ".join(
        f"+-{100.0 * row['half_width']:.1f} with {row['n_models'] - bank.n_models} more" for row in later
    )
    note(f"More models that run all items narrow this to {widths}, if they answer as much alike as {how}.")
