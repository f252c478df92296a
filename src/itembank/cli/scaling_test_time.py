"""`itembank scaling test-time`: what k samples of every item will solve."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.cli.options import format_option, gathered, refuse_unused, seed_option
from itembank.cli.render import note, print_object, print_rows, progress, warnings_as_notes
from itembank.cli.scaling_options import (
    CALIBRATED_HERE,
    item_model_option,
    level_option,
    numbers_of_samples,
    read_responses_or_builtin,
    samples_or_builtin,
)

if TYPE_CHECKING:
    from itembank.data.banks import Bank
    from itembank.data.responses import ResponseMatrix
    from itembank.scaling.sampling.pass_at_k_results import PassAtKLaw
    from itembank.scaling.sampling.sampling_plan_results import SamplingPlan

METHODS = ("irsl", "irsl-plug-in", "beta-binomial", "jeffreys", "plug-in", "unbiased")
LEAST_METHODS = ("jeffreys", "beta-binomial", "irsl-plug-in", "plug-in", "unbiased")
"""Those whose columns give way in a narrow terminal, the least needed first."""
PARTS = ("curves", "errors", "tail", "plan")

_OPTIONS = (
    click.option(
        "--bank",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Item model of past models, calibrated on counts.  [default: calibrate on RESPONSES]",
    ),
    click.option("--only", multiple=True, metavar="MODEL_ID", help="Report this model; all calibrate. Repeatable."),
    click.option(
        "--k",
        metavar="K,K,...",
        help="Numbers of samples; more than there are, too.  [default: 1, 2, 5, ... 10000]",
    ),
    click.option(
        "--budget",
        type=click.IntRange(min=1),
        help="Use only so many samples of each item, drawn from those there are, and compare with all of them.",
    ),
    click.option(
        "--method", "methods", multiple=True, type=click.Choice(METHODS), help="Repeatable.  [default: all of them]"
    ),
    item_model_option,
    click.option(
        "--minimum-pass-rate",
        type=float,
        default=0.0,
        help="Report everything a second time without the items whose pass rate in all samples is below this, which "
        "published curves often leave out: 0.005.",
    ),
    click.option(
        "--include-unsampled", is_flag=True, help="Count items too that a model has no samples of, as IRSL can."
    ),
    level_option,
    click.option(
        "--interval",
        type=click.Choice(["calibrated", "model-based"]),
        default="calibrated",
        show_default=True,
        help="Widen intervals as models of known pass@k ask for, or take the item model's word.",
    ),
    click.option(
        "--half-width", type=float, help="Also plan which items to sample further until the interval is this narrow."
    ),
    click.option(
        "--plan-k", type=click.IntRange(min=1), help="The k whose interval is planned.  [default: largest --k]"
    ),
)
_NAMES = (
    "bank",
    "only",
    "k",
    "budget",
    "methods",
    "item_model",
    "minimum_pass_rate",
    "include_unsampled",
    "level",
    "interval",
    "half_width",
    "plan_k",
)


def _law_options(function: Any) -> Any:
    """Add the options above; the command gets them as one mapping, `choices`."""
    return gathered(function, _OPTIONS, _NAMES, into="choices")


@click.command("test-time")
@samples_or_builtin
@_law_options
@click.option(
    "--show",
    type=click.Choice(PARTS),
    help="Which table; errors need --budget, plan needs --half-width.  [default: curves; JSON has all]",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Also draw it: a PNG, SVG or PDF file."
)
@seed_option
@format_option
def command(
    *,
    responses: tuple[Path, ...],
    builtin: str | None,
    reading: dict[str, Any],
    choices: dict[str, Any],
    show: str | None,
    output: Path | None,
    seed: int,
    output_format: str,
) -> None:
    """Say how often at least one of k samples of an item is right, for any k, from few samples.

    RESPONSES hold n_correct and n_trials of every model and item, or one row a sample with --repeats count. The default
    method, irsl, shares what all models say of an item: an item that a model never solved in 50 samples is not taken
    for impossible when models like it solve it now and then. It has intervals, and forecasts beyond the samples.

    \b
      itembank scaling test-time samples.parquet --k 1,10,100,1000 -o pass-at-k.png
      itembank scaling test-time samples.parquet --budget 50 --show errors
      itembank scaling test-time new-model.csv --bank bank --half-width 0.02 --show plan
    """  # noqa: D301
    from itembank.reports.canvas import check_figure_destination, save_figure  # noqa: PLC0415
    from itembank.scaling.sampling.pass_at_k_law import pass_at_k_law  # noqa: PLC0415

    _refuse_unused(choices, is_plan_shown=show == "plan" or output_format == "json")
    if output is not None:
        check_figure_destination(output)  # complains before the long work, not after
    _check_show(show, choices)
    spec = _spec(choices)
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin, reading)
        bank = _bank(choices["bank"], matrix)
        models = choices["only"] or None
        with progress("test-time") as report:
            law = pass_at_k_law(matrix, spec, bank=bank, models=models, rng=seed, progress=report)
            plan = None if choices["half_width"] is None else _plan(matrix, bank, choices, spec.k, seed)
        if output is not None:
            from itembank.reports.pass_at_k_figures import figure_pass_at_k  # noqa: PLC0415

            note(f"Figure: {save_figure(figure_pass_at_k(law), output)}")
    for text in law.notes:
        note(f"Note: {text}.")
    _print(law, plan, show or "curves", output_format)


def _refuse_unused(choices: Mapping[str, Any], *, is_plan_shown: bool) -> None:
    """Refuse options that say nothing of the methods asked for, of the item model, or of what is shown."""
    methods, is_planned = set(choices["methods"] or METHODS), choices["half_width"] is not None
    has_item_model = is_planned or not methods.isdisjoint({"irsl", "irsl-plug-in"})
    refuse_unused(
        ("item_model", choices["bank"] is None, CALIBRATED_HERE),
        ("item_model", has_item_model, "--method irsl, --method irsl-plug-in or --half-width"),
        ("level", is_planned or "irsl" in methods, "--method irsl or --half-width"),
        ("interval", "irsl" in methods, "--method irsl"),
        ("plan_k", is_planned, "--half-width"),
        ("half_width", is_plan_shown, "--show plan or --format json"),
    )


def _check_show(show: str | None, choices: Mapping[str, Any]) -> None:
    """Refuse a table that nothing was asked for, and a plan from part of the samples."""
    needed = {"errors": "budget", "plan": "half_width"}.get(show or "")
    if needed is not None and choices[needed] is None:
        raise click.UsageError(f"--show {show} needs --{needed.replace('_', '-')}.")
    if choices["half_width"] is not None and choices["budget"] is not None:
        raise click.UsageError("--half-width plans beyond all samples there are: leave --budget out.")


def _spec(choices: Mapping[str, Any]) -> Any:
    """Make the spec; None of an option stands for the spec's own default."""
    from itembank.calibration.specs import Variational  # noqa: PLC0415
    from itembank.scaling.sampling.pass_at_k_specs import PassAtKSpec  # noqa: PLC0415

    given = {name: choices[name] for name in ("budget", "minimum_pass_rate", "include_unsampled", "level", "interval")}
    if choices["k"] is not None:
        given["k"] = numbers_of_samples(choices["k"])
    if choices["methods"]:
        given["methods"] = choices["methods"]
    item_model = Variational(item_model=choices["item_model"], family="beta-binomial")
    return PassAtKSpec(item_model=item_model, **given)


def _bank(path: Path | None, matrix: "ResponseMatrix") -> "Bank | None":
    """Load the bank, and tell of models that it was calibrated on."""
    from itembank.cli.new_results import note_known_models  # noqa: PLC0415
    from itembank.data.bank_files import load_bank  # noqa: PLC0415

    if path is None:
        return None
    bank = load_bank(path)
    note_known_models(bank, matrix.model_ids)
    return bank


def _plan(
    matrix: "ResponseMatrix", bank: "Bank | None", choices: Mapping[str, Any], k: Sequence[int], seed: int
) -> "SamplingPlan":
    """Plan further samples."""
    from itembank.calibration.specs import Variational  # noqa: PLC0415
    from itembank.scaling.sampling.sampling_plan import SamplingPlanSpec, sampling_plan  # noqa: PLC0415

    spec = SamplingPlanSpec(
        k=choices["plan_k"] or max(k),
        half_width=choices["half_width"],
        level=choices["level"],
        item_model=Variational(item_model=choices["item_model"], family="beta-binomial"),
    )
    return sampling_plan(matrix, spec, bank=bank, models=choices["only"] or None, rng=seed)


def _print(law: "PassAtKLaw", plan: "SamplingPlan | None", show: str, output_format: str) -> None:
    """Print everything as one JSON object, or one table."""
    errors = law.errors() + (law.errors(kept=True) if law.minimum_pass_rate else [])
    if output_format == "json":
        planned = {} if plan is None else {"plan": plan.summary(), "samples": plan.rows()}
        print_object({**law.to_dict(), "curves": law.rows(), "errors": errors, "tail": law.tail(), **planned})
        return
    if show == "curves":
        is_table = output_format == "table"
        rows = _wide(law) if is_table else law.rows()
        print_rows(rows, output_format, title="pass@k, from 0 to 1", least=LEAST_METHODS)
    elif show == "errors":
        print_rows(
            errors,
            output_format,
            title=f"Errors of pass@k, from 0 to 1, from {law.budget} samples an item",
            least=("share_known", "error_of_negative_log"),
        )
    elif show == "tail":
        print_rows(law.tail(), output_format, title=f"Items that fail most often at k = {law.k[-1]:g}")
    elif plan is not None:
        if output_format == "table":
            print_rows(
                plan.summary(),
                output_format,
                title="Further samples; half-widths of pass@k, from 0 to 1",
                least=("n_items", "n_uniform", "half_width_wanted"),
            )
        print_rows(plan.rows(), output_format, title="Items to sample")


def _wide(law: "PassAtKLaw") -> list[dict[str, Any]]:
    """One line for each curve and k, a column a method."""
    wide: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in law.rows():
        key = (row["model_id"], row["scenario"], row["k"])
        line = wide.setdefault(key, dict(zip(("model_id", "scenario", "k"), key, strict=True)))
        line[row["method"]] = row["pass_at_k"]
        if row["method"] == "irsl":
            line[f"{100 * law.level:g} % interval"] = (
                "-" if math.isnan(row["low"]) else f"{row['low']:.4f} to {row['high']:.4f}"
            )
        if "truth" in row:
            line["truth"] = row["truth"]
    return list(wide.values())
