"""`itembank scaling transfer`: what some items say about others, and whether they say anything."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

import itembank as ib
import itembank_scaling
from itembank.calibration.calibration_specs import METHODS as CALIBRATIONS
from itembank.cli import options
from itembank.cli.options import file_choices, refuse_unused, typed, write_figure
from itembank.cli.render import Printer, print_object, progress, warnings_as_notes
from itembank.cli.signatures import Choices, WholeNumbers, option, verb
from itembank.errors import DataError, DataWarning, shown, warn
from itembank.tables import plural
from itembank_scaling.cli.scaling_options import Builtin, Responses, read_responses_or_builtin
from itembank_scaling.transfers.transfer_specs import METHODS, TransferSpec

if TYPE_CHECKING:
    from itembank_scaling.transfers.transfers import Transfer

LEAST = {
    "methods": ("log_error", "half_width", "error_standard_error", "validity_lower", "bias", "coverage"),
    "models": (
        *("predicted_scores", "predicted_common-scale", "predicted_calibrated"),
        *("flops", "standard_error", "ability", "group", "validity_lower", "validity"),
    ),
}
"""Columns of each table that give way in a narrow terminal, the least needed first."""

_SPEC: Choices = {
    "methods": option(
        "The first makes the prediction; others are for comparison. Repeatable.",
        "--method",
        of=TransferSpec,
        type=click.Choice(tuple(METHODS)),
        show_default=True,
    ),
    "k": option(
        "1 is the score; more are pass@k of counts.",
        of=TransferSpec,
        type=WholeNumbers(),
        default="1",
        show_default=True,
    ),
}


@verb("transfer")
def transfer_command(
    *,
    responses: Responses,
    builtin: Builtin,
    source: Annotated[
        str | None,
        option("Scenario whose ability predicts.  [default: the easy items of every scenario]", metavar="SCENARIO"),
    ],
    target: Annotated[str | None, option("What is predicted.  [default: the source's hard items]", metavar="SCENARIO")],
    bank: Annotated[
        Path | None,
        option(
            "Bank of past models that calibrate; RESPONSES are of new models.  [default: cross-validate RESPONSES]",
            type=options.BankPath(),
        ),
    ],
    group: Annotated[
        str | None,
        option(
            "Column of the model table: its models are relatives (recipe, family, run) and stay together.",
            "--clusters",
            metavar="COLUMN",
        ),
    ],
    spec_file: Annotated[
        Path | None, options.spec_file("TransferSpec", "easy_fraction, n_folds, warn_below or is_forced")
    ],
    choices: Annotated[Choices, _SPEC],
    show: Annotated[
        str,
        option(
            "Which table; JSON has both of the first. validity: correlations of all scenarios' abilities, without a "
            "transfer.",
            type=("methods", "models", "validity"),
        ),
    ] = "methods",
    figure: options.Figure,
    out: options.Out,
) -> None:
    """Predict scores, or pass@k, on some items from the ability that others give.

    It first computes the convergent validity: the correlation of both abilities over the models that calibrate. It
    refuses a transfer without any sign of it, and warns if it is weak. Without --source, every scenario's easy items
    predict its hard ones. Training compute in the model table (flops) is shown beside each prediction.

    --show validity prints the correlations of all scenarios' abilities. Intervals are by Fisher's z over models, or
    with --clusters by resampling whole groups. Disattenuated correlations are corrected for the errors of the
    abilities; the correlation beyond compute is what remains when compute is taken into account.

      itembank scaling transfer responses.parquet --figure easy-to-hard.png
      itembank scaling transfer responses.parquet --source arc_easy --target arc_challenge --clusters recipe
      itembank scaling transfer samples.parquet --source gsm8k --k 1,10,100 --clusters family
      itembank scaling transfer responses.parquet --show validity --figure validity.png
      itembank scaling transfer responses.parquet --show validity --source a --target b --figure f.png
    """
    if target is not None and source is None:
        raise click.UsageError("--target needs --source.")
    is_transfer, has_pair = show != "validity", figure is not None and source is not None and target is not None
    refuse_unused(
        (("bank", "spec_file", "methods", "k"), is_transfer, "a transfer, not with --show validity"),
        (("source", "target"), is_transfer or has_pair, "--show validity with a --figure of --source and --target"),
    )
    how: dict[str, Any] = {}
    with warnings_as_notes():
        matrix = read_responses_or_builtin(responses, builtin)
        how |= {"groups": _groups(matrix, group), "compute": None}
        if "flops" in matrix.models.columns and not matrix.models["flops"].null_count():
            how["compute"] = itembank_scaling.training_compute(matrix.models, matrix.model_ids)
        if not is_transfer:
            pair = (source, target) if source is not None and target is not None else None
            _show_validity(matrix, pair, how, figure, out)
            return
        in_file = file_choices(spec_file, TransferSpec, {"item_model": (CALIBRATIONS, "name")})
        how |= {
            "spec": TransferSpec(**{**in_file, **typed(choices)}),
            "calibration": None if bank is None else ib.load_bank(bank),
        }
        with progress("transfer") as said:
            found = _transfers(matrix, source, target, {**how, "progress": said})
        if figure is not None:
            from itembank_scaling.pages.transfer_charts import agreement_chart, transfer_curves_chart

            draw = transfer_curves_chart if len(found[0].k) > 1 else agreement_chart
            write_figure(draw(found), figure)
    _print(found, show, out, is_single=source is not None)


def _transfers(
    matrix: "ib.ResponseMatrix", source: str | None, target: str | None, options: Mapping[str, Any]
) -> "list[Transfer]":
    """One transfer, or one within every scenario; those that cannot be made are skipped with a warning."""
    if source is not None:
        return [itembank_scaling.transfer(matrix, source, target, **options)]
    found = []
    for scenario in dict.fromkeys(matrix.items["scenario"].to_list()):
        try:
            found.append(itembank_scaling.transfer(matrix, scenario, **options))
        except DataError as error:
            warn(f"scenario {scenario!r} is skipped: {error}", DataWarning)
    if not found:
        raise DataError("no scenario allows a transfer from its easy to its hard items; the notes above say why.")
    return found


def _print(found: "list[Transfer]", show: str, out: Printer, *, is_single: bool) -> None:
    if out.is_json:
        records = [{**one.to_dict(), "methods": one.method_rows(), "models": one.rows()} for one in found]
        if is_single:
            print_object(records[0], "transfer")
        else:
            print_object({"transfers": records}, "transfers")
    elif is_single:
        rows = found[0].method_rows() if show == "methods" else found[0].rows()
        about = {name: value for name, value in found[0].to_dict().items() if name != "notes"}  # said as warnings
        error = found[0].method_rows()[0]["error"]
        how_well = "" if math.isnan(error) else f", with a mean error of {100.0 * error:.1f} points"
        title = f"{about['source']} predicts {about['target']}{how_well}"
        out.record(about, show, rows, "transfer", title=title, least=LEAST[show])
    else:
        names = {"target": "target", "correlation": "validity", "correlation_lower": "validity_lower"}
        rows = [  # the rows of methods have a correlation of their own
            {**{shown_as: one.to_dict()[name] for name, shown_as in names.items()}, **row}
            for one in found
            for row in (one.method_rows() if show == "methods" else one.rows())
        ]
        out.rows(
            rows,
            "transfers",
            title=f"Easy items predict the hard ones in {plural(len(found), 'scenario')}",
            least=LEAST[show],
        )


def _show_validity(
    matrix: "ib.ResponseMatrix",
    pair: tuple[str, str] | None,
    choices: Mapping[str, Any],
    figure: Path | None,
    out: Printer,
) -> None:
    """Correlate the abilities that each scenario's own items give; draw all scenarios, or the models on two."""
    from itembank_scaling.pages.transfer_charts import ability_pair_chart, validity_chart

    with progress("validity") as said:
        found = itembank_scaling.convergent_validity(matrix, progress=said, **choices)
    if figure is not None:
        write_figure(validity_chart(found) if pair is None else ability_pair_chart(found, *pair), figure)
    values = [row["correlation"] for row in found.rows()]
    by = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(values), max(values))))
    out.record(
        found.to_dict(),
        "pairs",
        found.rows(),
        "validity",
        title=f"Abilities correlate by {by} in {plural(len(values), 'pair')} of scenarios",
        least=("disattenuated_interval", "disattenuated", "n_models", "beyond_compute_interval", "beyond_compute"),
    )


def _groups(matrix: "ib.ResponseMatrix", column: str | None) -> list[str] | None:
    """Values of a column of the model table; a model without one is a group of its own."""
    if column is None:
        return None
    if column not in matrix.models.columns:
        raise DataError(f"--clusters must be a column of the model table, got {column!r}; it has "
                        f"{shown(matrix.models.columns)}. Give the table to itembank import --models.")  # fmt: skip
    names = zip(matrix.models[column].to_list(), matrix.model_ids, strict=True)
    return [f"model {model_id}" if name is None else str(name) for name, model_id in names]
