"""`itembank calibrate`: fit item parameters and write a bank."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.calibration.specs import METHODS
from itembank.cli.option_types import MethodName
from itembank.cli.options import (
    format_option,
    output_option,
    reading_options,
    reading_spec,
    seed_option,
)
from itembank.cli.render import note, print_rows, progress, warnings_as_notes

if TYPE_CHECKING:
    from itembank.calibration.specs import CalibrationSpec
    from itembank.data.banks import Bank
    from itembank.data.responses import ResponseMatrix
    from itembank.data.targets import Across, Within

OWN_DIMS = {"1pl": 1, "2pl": 1, "nested": 4, "bifactor": 1}
"""Number of abilities of an item model where none is given; that of a bifactor one follows from the scenarios.

Nested: WILD takes 3. One specific ability more is our choice: it gains where tasks differ, and costs nothing elsewhere
(`docs/results-tables.md`, "Predicting tasks that were never asked").
"""


@click.command("calibrate")
@click.argument("responses", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@output_option("the bank, a folder")
@click.option(
    "--item-model",
    type=click.Choice(["1pl", "2pl", "mirt", "nested", "bifactor"]),
    help="One common slope (1pl), a slope an item (2pl), several abilities (mirt), a general ability with specific "
    "ones beside it (nested), or with one for each scenario (bifactor; --method map).  [default: by --dims]",
)
@click.option(
    "--dims",
    metavar="N|auto",
    help="Number of abilities, or 'auto' to choose it by held-out prediction; of nested with the general one.  "
    "[default: auto; 1 with 1pl and 2pl, 4 with nested, by the scenarios with bifactor]",
)
@click.option(
    "--method",
    type=MethodName(METHODS),
    default="variational",
    show_default=True,
    help="Variational Bayes, joint maximum a posteriori, or marginal maximum likelihood (at most 2 dims).",
)
@click.option(
    "--general-weight",
    type=float,
    metavar="WEIGHT",
    help="nested and bifactor by --method map: how much the general ability must explain by itself.  [default: 0.2]",
)
@click.option(
    "--degenerate",
    type=click.Choice(["prior", "majority"]),
    help="--method map: expect of items that all models answered alike what the other items are like (prior), or the "
    "same answer again (majority).  [default: prior]",
)
@click.option(
    "--by-task",
    is_flag=True,
    help="--method variational: let items of one scenario and subscenario share their prior; for few models and tasks "
    "that differ.",
)
@click.option(
    "--family",
    type=click.Choice(["auto", "bernoulli", "binomial", "beta", "beta-binomial"]),
    default="auto",
    show_default=True,
    help="What a response is: right or wrong (bernoulli, others made so by a threshold), right answers of known trials "
    "(binomial), or such that agree more than chance (beta-binomial), or a probability (beta).  auto: where trials are "
    "known binomial, or beta-binomial if they agree more than chance; else bernoulli.",
)
@click.option(
    "--precision",
    metavar="NUMBER|global|scenario",
    help="beta and beta-binomial: their precision phi, or learn one for all items or for each scenario.  "
    "[default: scenario]",
)
@click.option(
    "--positive-discrimination",
    is_flag=True,
    help="--method variational with one ability: keep the slopes of all items above zero.",
)
@reading_options
@click.option(
    "--within",
    type=click.Choice(["micro", "macro", "custom"]),
    default="micro",
    show_default=True,
    help="A scenario's score: mean over items, mean over subscenarios, or by the item column 'weight'.",
)
@click.option(
    "--overall",
    type=click.Choice(["scenarios", "items"]),
    default="scenarios",
    show_default=True,
    help="The overall score: mean over scenarios or over all items.",
)
@click.option(
    "--known-guessing", is_flag=True, help="Fix the chance of guessing from the item column chance or n_options."
)
@click.option(
    "--folds/--no-folds",
    default=True,
    show_default=True,
    help="Also fit without each tenth (fifth) of the models, which select and estimate try methods on; else they do it "
    "when first needed.",
)
@click.option("--force", is_flag=True, help="Replace the bank that stands at -o.")
@seed_option
@format_option
def command(
    *,
    responses: tuple[Path, ...],
    output: Path,
    item_model: str | None,
    dims: str | None,
    method: str,
    general_weight: float | None,
    degenerate: str | None,
    by_task: bool,
    family: str,
    precision: str | None,
    positive_discrimination: bool,
    reading: dict[str, Any],
    within: "Within",
    overall: "Across",
    known_guessing: bool,
    folds: bool,
    force: bool,
    seed: int,
    output_format: str,
) -> None:
    """Fit item parameters to the responses of past models and write a bank.

    RESPONSES are files made by itembank import, or any table of model_id, item_id, response.

    \b
      itembank calibrate responses.parquet -o bank
      itembank calibrate responses.parquet -o bank --item-model 2pl
      itembank calibrate results.csv -o bank --items items.csv --known-guessing
      itembank calibrate probabilities.parquet -o bank --item-model 2pl --family beta
    """  # noqa: D301
    from itembank.adaptive.preparation import prepare  # noqa: PLC0415
    from itembank.calibration.build import build_bank  # noqa: PLC0415
    from itembank.data.bank_files import check_bank_destination, load_bank, save_bank  # noqa: PLC0415
    from itembank.data.readers.read import read_responses  # noqa: PLC0415
    from itembank.data.targets import ScoreTargets  # noqa: PLC0415

    check_bank_destination(output, overwrite=force)
    with warnings_as_notes():
        matrix = read_responses(responses, spec=reading_spec(reading), models=reading["models"], items=reading["items"])
        ScoreTargets.create(matrix.items, within=within, across=overall)  # complains before the long work, not after
        options = _options(item_model, method, general_weight=general_weight, degenerate=degenerate, by_task=by_task)
        options |= _family_options(item_model, method, family, precision, positive=positive_discrimination)
        spec = _spec(matrix, item_model, dims, method, {"known_guessing": known_guessing, **options})
        with progress("calibrate") as report:
            bank = build_bank(matrix, spec, within=within, across=overall, rng=seed, progress=report)
        save_bank(bank, output, overwrite=force)
        if folds:
            with progress("calibrate") as report:
                prepare(load_bank(output), keep_in_bank=True, progress=report)
    print_rows([_summary(bank)], output_format, title=f"Bank {output}")
    # a fifth of a small bank: as many as there are would be refused, or leave nothing to estimate
    n_items = min(100, max(bank.targets.n_scenarios, bank.n_items // 5))
    note(f"Next: itembank select {output} -n {n_items} -o selection.json")


def _options(
    item_model: str | None, method: str, *, general_weight: float | None, degenerate: str | None, by_task: bool
) -> dict[str, Any]:
    """Gather what was asked of one method, and refuse it with another."""
    options: dict[str, Any] = {}
    if general_weight is not None:
        if method != "map" or item_model not in {"nested", "bifactor"}:
            raise click.UsageError("--general-weight goes with --method map --item-model nested or bifactor.")
        options["general_weight"] = general_weight
    if degenerate is not None:
        if method != "map":
            raise click.UsageError(f"--degenerate goes with --method map, got --method {method}.")
        options["degenerate"] = degenerate
    if by_task:
        if method != "variational" or item_model == "1pl":
            raise click.UsageError("--by-task goes with --method variational, and not with --item-model 1pl.")
        options["by_task"] = True
    return options


def _family_options(
    item_model: str | None, method: str, family: str, precision: str | None, *, positive: bool
) -> dict[str, Any]:
    """Gather the choices of family, and refuse those that do not go together."""
    options: dict[str, Any] = {"family": family}
    if precision is not None:
        if family not in {"beta", "beta-binomial"}:
            raise click.UsageError(f"--precision goes with --family beta or beta-binomial, got --family {family}.")
        options["precision"] = precision if precision in {"global", "scenario"} else _number(precision)
    if positive:
        if method != "variational" or item_model == "1pl":
            raise click.UsageError(
                "--positive-discrimination goes with --method variational, and not with --item-model 1pl."
            )
        options["positive_discrimination"] = True
    return options


def _spec(
    responses: "ResponseMatrix", item_model: str | None, dims: str | None, method: str, options: dict[str, Any]
) -> "CalibrationSpec":
    """Make the spec of the options; chooses the number of dimensions when asked to."""
    kind = METHODS.kinds[method]
    if dims == "auto" and item_model in {"1pl", "2pl"}:
        raise click.UsageError(f"--dims auto chooses among several abilities; --item-model {item_model} has one.")
    if dims == "auto" and item_model == "bifactor":
        raise click.UsageError("--dims goes without --item-model bifactor: it has one ability a scenario.")
    if dims is None and item_model is None and options.get("positive_discrimination", False):
        item_model = "2pl"
    if dims is None and item_model in OWN_DIMS:
        n_dims = OWN_DIMS[item_model]
    elif dims is None or dims == "auto":
        base = kind(item_model="nested", n_dims=2, **options) if item_model == "nested" else kind(**options)
        n_dims = _chosen_n_dims(responses, base, is_asked_for=dims == "auto")
    else:
        n_dims = _whole_number(dims)
    model = item_model or ("2pl" if n_dims == 1 else "mirt")
    return kind(item_model=model, n_dims=n_dims, **options)  # type: ignore[arg-type]


def _chosen_n_dims(responses: "ResponseMatrix", spec: "CalibrationSpec", *, is_asked_for: bool) -> int:
    """Choose the number of dimensions, or take one where too few models could tell and nobody asked."""
    from itembank.calibration.dimensions import MINIMUM_TO_CHOOSE, choose_n_dims  # noqa: PLC0415

    if responses.n_models < MINIMUM_TO_CHOOSE and not is_asked_for:
        note(f"1 dimension: {responses.n_models} models are too few to choose more.")
        return 1
    with progress("choose dimensions") as report:
        choice = choose_n_dims(responses, spec, progress=report)
    note(f"{choice.n_dims} {'dimension' if choice.n_dims == 1 else 'dimensions'}: {choice.message}.")
    return choice.n_dims


def _number(precision: str) -> float:
    try:
        return float(precision)
    except ValueError:
        raise click.BadParameter(
            f"must be a number, 'global' or 'scenario', got {precision!r}.", param_hint="--precision"
        ) from None


def _whole_number(dims: str) -> int:
    try:
        return int(dims)
    except ValueError:
        raise click.BadParameter(f"must be a whole number or 'auto', got {dims!r}.", param_hint="--dims") from None


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
