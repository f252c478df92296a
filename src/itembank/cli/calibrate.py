"""`itembank calibrate`: fit item parameters and write a bank."""

from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from itembank.calibration.calibration_specs import METHODS, JointMAP, Variational
from itembank.cli.calibrate_each import COLUMNS, BankWork, calibrate_each
from itembank.cli.command import Command, gathered, headed
from itembank.cli.external_scores import check_external_options, external_options, with_scores
from itembank.cli.new_results import read_results
from itembank.cli.options import (
    MethodName,
    NumberOrWord,
    file_choices,
    format_option,
    method_option,
    option,
    output_option,
    parallel_option,
    refuse_unused,
    responses_argument,
    score_options,
    seed_option,
    spec_file_option,
    typed,
)
from itembank.cli.render import note, print_rows, progress, warnings_as_notes
from itembank.responses.score_names import Across, Within

if TYPE_CHECKING:
    from itembank.bank.banks import Bank
    from itembank.calibration.calibration_specs import CalibrationSpec
    from itembank.responses.responses import ResponseMatrix

OWN_DIMS = {"1pl": 1, "2pl": 1, "nested": 4, "bifactor": 1}
"""Number of abilities of an item model where none is given; that of a bifactor one follows from the scenarios.

Nested: WILD takes 3. One specific ability more is our choice: it gains where tasks differ, and costs nothing elsewhere
(`docs/results-tables.md`, "Predicting tasks that were never asked").
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


@click.command("calibrate", cls=Command)
@responses_argument
@output_option("the bank folder")
@option("--force", "Replace the bank that stands at -o.", bool)
@option(
    "--each",
    "Make a bank of each of RESPONSES in the folder -o, but for those that stand there, --jobs at a time.",
    bool,
)
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
    "--folds/--no-folds", "Also fit folds of models, as itembank prepare does.", bool, default=True, show_default=True
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
    """  # noqa: D301
    from itembank.bank.bank_files import check_bank_destination  # noqa: PLC0415

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
    from itembank.bank.bank_files import save_bank  # noqa: PLC0415
    from itembank.calibration.build import build_bank  # noqa: PLC0415
    from itembank.responses.targets import ScoreTargets  # noqa: PLC0415

    matrix = read_results(responses)
    # what follows complains before the long work, not after
    targets = ScoreTargets.create(matrix.items, within=within, across=across)
    matrix = with_scores(matrix, scores, external, targets.scenarios)
    spec = _spec(matrix, method, dims, given)
    with progress("calibrate") as report:
        bank = build_bank(matrix, spec, within=within, across=across, rng=seed, progress=report)
    save_bank(bank, output, overwrite=force)
    if folds:
        _finish(output, folds=True)
    return bank


def _finish(output: Path, *, folds: bool) -> "Bank":
    """Load the bank that was written, and fit the folds that it has not."""
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.sessions.preparation import prepare  # noqa: PLC0415

    bank = load_bank(output)
    if folds:
        with progress("calibrate") as report:
            prepare(bank, keep_in_bank=True, progress=report)
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
