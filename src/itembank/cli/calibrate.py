"""`itembank calibrate`: fit item parameters and write a bank, of each of many results, or without past results."""

import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

import itembank as ib
from itembank.calibration.calibration_specs import METHODS, JointMAP, Variational
from itembank.cli import options
from itembank.cli.info import degenerate_words
from itembank.cli.new_results import importing_first, note_overall, read_results
from itembank.cli.options import file_choices, refuse_unused, typed
from itembank.cli.render import Printer, detail, is_verbose, note, progress, warnings_as_notes
from itembank.cli.signatures import Choices, MethodName, NumberOrWord, argument, option, verb
from itembank.errors import DataWarning, shell_word, unsaid
from itembank.tables import all_of, plural
from itembank.tabular import picked

if TYPE_CHECKING:
    import polars as pl

    from itembank.calibration.calibration_specs import CalibrationSpec

_ITEM_MODEL: Choices = {
    "item_model": option(
        "One slope for all items (1pl), one each (2pl), several abilities (mirt), a general and specific ones "
        "(nested).  [default: by --dims]",
        of=JointMAP,
        default=None,
        show_default=False,
    ),
    "family": option(
        "Right or wrong; counts; probabilities (beta); counts that agree more than chance; auto: by known trials.",
        of=Variational,
    ),
}


@verb("calibrate")
def calibrate_command(
    *,
    responses: Annotated[tuple[Path, ...], argument(type=options.EXISTING, required=False)],
    output: Annotated[Path, options.output("the bank folder")],
    force: Annotated[bool, "Replace the bank at -o, if there is one."],
    items: Annotated[
        Path | None,
        option(
            "Begin a bank of all items of this table, without RESPONSES or with few: item_id, and if known scenario, "
            "subscenario, weight and difficulty_prior (in logits, for an average model).",
            type=options.FILE,
        ),
    ],
    parameters: Annotated[
        bool,
        "--items has item parameters that others fitted: difficulty and discrimination, loading_1, ... and intercept, "
        "a1, ... and d of R's mirt; or it is best_parameters.json of py-irt or tinyBenchmarks.pkl.",
    ],
    benchmark: Annotated[
        str | None, option("With --parameters: the one to take from a file of several benchmarks.", metavar="NAME")
    ],
    method: Annotated[
        str, option("Variational Bayes, joint MAP, or marginal ML (1 ability).", type=MethodName(METHODS))
    ] = "variational",
    dims: Annotated[
        int | Literal["auto"] | None,
        option(
            "How many abilities; auto tries several.  [default: by --item-model, else auto]",
            type=NumberOrWord(int, "auto"),
        ),
    ],
    spec_file: Annotated[
        Path | None, options.spec_file("the spec of --method", "known_guessing, by_task or precision")
    ],
    choices: Annotated[Choices, {"Item model": _ITEM_MODEL}],
    scores: Annotated[Choices, {"within": options.Within, "across": options.Across}],
    folds: Annotated[
        bool,
        option(
            "Also fit the folds of cross-validation, which calibrated intervals need; else the first command that "
            "needs them fits them. Drawn items need none.",
            "--folds/--no-folds",
            show_default=True,
        ),
    ],
    jobs: options.Jobs,
    out: options.Out,
) -> None:
    """Fit item parameters to the responses of past models and write a bank.

    RESPONSES are files made by itembank import, which keep what is known about models and items, or any table of
    model_id, item_id, response.

      itembank calibrate responses.parquet -o bank
      itembank calibrate responses.parquet -o bank --spec guessing.toml
      itembank calibrate probabilities.parquet -o bank --item-model 2pl --family beta

    where guessing.toml has the line known_guessing = true.

    With --items and fewer than ten past models, intervals rest on the random draw of items alone. With ten models or
    more an item model is fitted: calibrate again as results come. Results of one or two models begin a bank of their
    own items. With --parameters there are no past models, and the bank is as good as these parameters.

      itembank calibrate --items items.csv -o bank
      itembank calibrate first-model-full.csv --items items.csv -o bank --force
      itembank calibrate --items tinyBenchmarks.pkl --parameters --benchmark mmlu -o tiny-mmlu
    """
    from itembank.bank.bank_files import check_bank_destination
    from itembank.calibration.fit_item_model import MINIMUM_MODELS
    from itembank.cli.import_results import say_scenarios
    from itembank.readers.collecting import find_sources
    from itembank.readers.reading_specs import ReadingSpec
    from itembank.responses.responses import DEFAULT_SCENARIO
    from itembank.responses.targets import ScoreTargets

    options.share_work(jobs)
    refuse_unused(("parameters", items is not None, "--items"), ("benchmark", parameters, "--parameters"))
    fitted = ("method", "dims", "spec_file", *choices, "folds")
    if items is not None:
        refuse_unused((fitted, False, "results of many past models, not with --items"))
        check_bank_destination(output, overwrite=force)
        if parameters:
            if responses:
                raise click.UsageError("A bank of known --parameters has no past models. Leave RESPONSES out.")
            _start_known(items, output, {**scores, "benchmark": benchmark or ""}, out, force=force)
        else:
            _start(items, responses, output, scores, out, force=force)
        return
    if not responses:
        raise click.UsageError("Missing argument 'RESPONSES...'. A bank without past results needs --items ITEMS.csv.")
    given = file_choices(spec_file, METHODS.kinds[method]) | _given(method, choices)
    own_dims = given.pop("n_dims", None)
    dims = own_dims if dims is None else dims
    check_bank_destination(output, overwrite=force)
    with warnings_as_notes():
        matrix = read_results(responses)
        if DEFAULT_SCENARIO in matrix.items["scenario"]:
            with unsaid(DataWarning):  # said when the file was read
                say_scenarios(find_sources(responses, ReadingSpec()), ReadingSpec(), "import the file first, with ")
        if matrix.n_models < MINIMUM_MODELS:
            refuse_unused((fitted, False, f"results of {MINIMUM_MODELS} models or more"))
            note(f"An item model needs {MINIMUM_MODELS} models, got {matrix.n_models}: a bank of their items is begun.")
            _begin(matrix.items, matrix, output, scores, out, force=force)
            return
        ScoreTargets.create(matrix.items, **scores)  # complains before the long work, not after
        spec = _spec(matrix, method, dims, given)
        with progress("calibrate") as report:
            bank = ib.calibrate(matrix, spec, **scores, progress=report)
        if folds:  # before the bank is written, so that a command that is killed leaves all of it or nothing
            with progress("calibrate") as report:
                ib.prepare(bank, progress=report)
        bank.save(output, overwrite=force)
    _print_summary(bank, out)
    # a fifth of a small bank: as many as there are would be refused, or leave nothing to estimate
    n_items = min(100, max(bank.targets.n_scenarios, bank.n_items // 5))
    note(f"Next: itembank select {shell_word(output)} -n {n_items} -o selection.json")


def _given(method: str, choices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the choices that were given and that the method and the item model have; refuse the others."""
    known = {one: {field.name for field in fields(METHODS.kinds[one])} for one in {*METHODS.builtin_names, method}}
    having = {name: [one for one in METHODS.builtin_names if name in known[one]] for name in choices}
    rules = [(name, name in known[method], f"--method {' or '.join(having[name])}") for name in choices]
    refuse_unused(*rules)
    idle = {name for name, has_say, _ in rules if not has_say}
    return {name: value for name, value in typed(choices).items() if name not in idle}


def _spec(
    responses: "ib.ResponseMatrix", method: str, dims: int | Literal["auto"] | None, given: Mapping[str, Any]
) -> "CalibrationSpec":
    """Make the spec of the options; chooses the number of dimensions unless it is known."""
    from itembank.calibration.dimensions import usual_spec

    item_model = given.get("item_model")
    if dims == "auto" and item_model in {"1pl", "2pl"}:
        raise click.UsageError(f"--dims auto chooses among several abilities; --item-model {item_model} has one.")
    if method == "mml" and dims not in {None, 1}:
        raise click.UsageError("--method mml fits one ability: leave --dims out, or take another method.")
    with progress("choose dimensions") as report:
        spec, why = usual_spec(responses, method, given, n_dims=dims, progress=report)
    if why:
        detail(why)
    return spec


def _print_summary(bank: "ib.Bank", out: Printer) -> None:
    """Print what was calibrated: a sentence, and the facts that people need."""
    import numpy as np

    from itembank.responses.sizes import assumed_questions

    models = f"on {plural(bank.n_models, 'past model')}" if bank.n_models else "by known parameters"
    known = bank.item_model_bias[~np.isnan(bank.item_model_bias)]
    points = f"{100.0 * known.mean():.1f} points" if known.size else ""
    error = f"; the item model alone predicts scenario scores to {points} (cross-validated)" if points else ""
    calibration, assumed = bank.calibration, assumed_questions(bank.responses.items)
    facts = {
        "bank": bank.bank_id,
        **picked(bank, "n_models", "n_items"),
        "n_scenarios": bank.targets.n_scenarios,
        **picked(calibration, "method", "item_model"),
        "family": calibration.parameters.family,
        **picked(calibration, "n_dims", "converged", "n_iterations"),
        "n_degenerate_items": int(calibration.is_degenerate.sum()),
        "score_correlation": calibration.score_correlation,
        **({"caution": calibration.caution} if calibration.caution else {}),
        **({} if assumed is None else {"assumed_questions": assumed}),
    }
    if out.is_table:
        facts["n_degenerate_items"] = f"{facts['n_degenerate_items']} ({degenerate_words(bank)})"
    usual = ("bank", "n_scenarios", "n_dims", "n_degenerate_items", "assumed_questions")
    shown = [*(name for name in usual if name in facts), *([] if facts["converged"] else ["converged"])]
    title = f"Calibrated {plural(bank.n_items, 'item')} {models}{error}"
    out.rows([facts], "calibrate", title=title, columns=() if is_verbose() else shown)
    note_overall(bank)


def _start(
    items: Path, responses: tuple[Path, ...], output: Path, choices: Mapping[str, Any], out: Printer, *, force: bool
) -> None:
    """Begin a bank without past results, or with those of a few models."""
    from itembank.cli.import_results import say_scenario_of_items
    from itembank.readers.agreement import read_new_responses
    from itembank.readers.matrix import read_known

    with warnings_as_notes():
        table, _ = read_known(items, "item_id")
        say_scenario_of_items(items)
        matrix = None
        if responses:
            with importing_first(responses):
                matrix = read_new_responses(responses, table)
        _begin(table, matrix, output, choices, out, force=force)


def _begin(
    table: "pl.DataFrame",
    matrix: "ib.ResponseMatrix | None",
    output: Path,
    choices: Mapping[str, Any],
    out: Printer,
    *,
    force: bool,
) -> None:
    """Write a bank of the items of a table, and say how well it estimates scores."""
    from itembank.planning.precision import plan_models

    with progress("calibrate") as report:
        bank = ib.banks.start(table, matrix, progress=report, **choices)
    bank.save(output, overwrite=force)
    n_items = min(100, bank.n_items)
    plan = None if bank.calibration.is_fitted else plan_models(bank, n_items).to_dicts()
    row = {
        "bank": bank.bank_id,
        **picked(bank, "n_models", "n_items"),
        "n_scenarios": bank.targets.n_scenarios,
        "method": bank.calibration.method,
    }
    if plan is not None:  # intervals will rest on the draw of items
        now, *later = plan
        widths = {f"half_width_{one['n_models']}_models": one["half_width"] for one in later}
        row |= {"n_items_to_run": n_items, "half_width": now["half_width"], **widths}
    models = plural(bank.n_models, "past model") if bank.n_models else "no past models"
    out.rows([row], "calibrate", title=f"{output}: a bank of {plural(bank.n_items, 'item')} with {models}")
    if plan is not None:
        _say_what_to_expect(bank, n_items, plan)
    note(f"Next: itembank select {shell_word(output)} -n {n_items} -o selection.json")


def _start_known(items: Path, output: Path, choices: Mapping[str, Any], out: Printer, *, force: bool) -> None:
    """Make a bank of known item parameters, and write the items to run beside it if the file names them."""
    with warnings_as_notes():
        bank = ib.banks.start(items, parameters=True, **choices)
    bank.save(output, overwrite=force)
    own = bank.items_to_run
    if own is not None:
        own.save(output / "selection.json")
    _print_summary(bank, out)
    if own is None:
        note(f"Next: itembank select {shell_word(output)} -n {min(100, bank.n_items)} -o selection.json")
    else:
        there = f"Items to run: {own.n_items}, in {output / 'selection.json'}"
        note(f"{there}. Next: itembank estimate {shell_word(output)} RESULTS")


def _say_what_to_expect(bank: "ib.Bank", n_items: int, plan: list[dict[str, Any]]) -> None:
    """Say how wide intervals will be, and what more past models would do."""
    from itembank.planning.precision import between_models

    if n_items == bank.n_items:
        note(f"A model that runs {all_of(bank.n_items, 'item')} needs no interval; few give an interval.")
        return
    now, *later = plan
    note(
        f"Expect 95 % intervals of ±{100.0 * now['half_width']:.1f} points for the overall score "
        f"from {n_items} items drawn at random."
    )
    how = "models usually do" if math.isnan(between_models(bank)) else "this bank's past models"
    widths = " or ".join(
        f"±{100.0 * row['half_width']:.1f} with {row['n_models'] - bank.n_models} more" for row in later
    )
    note(f"More models that run all items narrow this to {widths}, if they answer as much alike as {how}.")
