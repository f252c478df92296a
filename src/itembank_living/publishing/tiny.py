"""A small subset of a benchmark, published: the items to run, and all that makes a score of the answers to them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenSelection, as_bank, as_selection
from itembank.bank.bank_files import check_bank_destination, parameter_columns, save_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.files.atomic import replacing_folder, write_text
from itembank.pages.pictures import check_drawing_library
from itembank.pages.truth_charts import PredictionPanel, predicted_against_true_chart
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank.responses.prompts import words_of_items
from itembank_living.publishing.cards import CardOptions, card
from itembank_living.publishing.publishable import for_publication, left_out
from itembank_living.publishing.without_responses import CrossValidatedScores, cross_validated_scores, without_responses

FIGURE = "accuracy.png"
FILES = {
    "selected.csv": "the items to run, with parameters; selection_weight is for means of scenarios",
    "parameters.csv": "all items, with parameters; weight is that in the scenario's score",
    "selection.json": "the items to run, as itembank keeps a selection",
    FIGURE: "cross-validated estimates against true scores of past models",
}
"""What the folder holds beside the bank's own files."""


@dataclass(frozen=True, slots=True)
class TinySpec:
    """Choices of `publish_tiny`.

    Attributes
    ----------
    name : str
        Of what is published; the folder's name if it is empty.
    license : str
        Identifier as the Hub has it: `cc-by-4.0`.
    include_columns : tuple of str
        Columns of items that may be published although they look like questions or answers.
    drop_columns : tuple of str
        Columns of items that are left out.
    """

    name: str = ""
    license: str = ""
    include_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tiny:
    """What was published.

    Attributes
    ----------
    bank : Bank
        Without past models' responses.
    selection : Selection
        The items to run.
    cross_validated : CrossValidatedScores or None
        How well past models were estimated; None if there are too few.
    left_out : tuple of str
        Columns of items that stayed.
    """

    bank: Bank
    selection: Selection
    cross_validated: CrossValidatedScores | None
    left_out: tuple[str, ...] = ()


def publish_tiny(
    bank: GivenBank,
    folder: str | Path,
    n_items: int = 100,
    *,
    selection: GivenSelection | None = None,
    spec: TinySpec | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = silent,
) -> Tiny:
    """Write a folder with the items to run and a bank without past models' responses, which `estimate` takes as it is.

    Parameters
    ----------
    bank : Bank or path
        With past models' responses.
    folder : path
        `estimate(folder, results)` and `load_bank(folder)` take it; so does `push`.
    n_items : int
        How many items, if no selection is given.
    selection : Selection or path, optional
    spec : TinySpec, optional
    overwrite : bool
        Replace what was published there before.
    progress : ProgressCallback

    Raises
    ------
    BankError
        When something else is at `folder`.
    DataError
        When a column of the items looks like questions or answers.
    ParameterError
        When the items cannot be chosen, or the bank has no responses itself.
    MissingDependencyError
        When vl-convert is not installed.
    """
    folder, spec = Path(folder), TinySpec() if spec is None else spec
    check_bank_destination(folder, overwrite=overwrite)
    check_drawing_library()  # what is missing is told before the work
    given = as_bank(bank)
    whole = for_publication(given, spec.include_columns, spec.drop_columns)
    chosen = as_selection(selection)
    if chosen is None:
        chosen = select(whole, n_items, rng=0, progress=part_of(progress, 0.0, 0.5))
    published = without_responses(whole, selections=[chosen], progress=part_of(progress, 0.5, 0.9))
    subset = next(iter(published.subsets), None)
    items = chosen if subset is None else subset.selection
    tiny = Tiny(published, items, cross_validated_scores(whole, chosen), left_out(given, published))
    options = CardOptions(spec.name or folder.resolve().name, folder.name, spec.license)
    with replacing_folder(folder) as new:
        _write(new, tiny, options)
    return tiny


def _write(folder: Path, tiny: Tiny, options: CardOptions) -> None:
    save_bank(tiny.bank, folder)
    tiny.selection.save(folder / "selection.json")
    # all items, in columns that `calibrate --items FILE --parameters` reads
    table = tiny.bank.responses.items
    asked = [words_of_items(table), *(table[name] for name in ("metric", "filter") if name in table.columns)]
    items = table.select("item_id", "scenario", "subscenario")
    items = items.with_columns(one for one in asked if one.null_count() < one.len())
    columns = {name: pl.Series(np.ascontiguousarray(one)) for name, one in parameter_columns(tiny.bank).items()}
    parameters = items.with_columns(weight=columns.pop("score_weight"), **columns)
    parameters.write_csv(folder / "parameters.csv")
    weights = pl.DataFrame({"item_id": tiny.selection.item_ids, "selection_weight": tiny.selection.weights})
    parameters.join(weights, on="item_id", maintain_order="left").write_csv(folder / "selected.csv")
    scores = tiny.cross_validated
    if scores is not None:
        title = f"{scores.true.size:,} past models, {scores.n_items:,} items each"
        panel = PredictionPanel(title, scores.true, scores.estimate, scores.low, scores.high)
        predicted_against_true_chart([panel]).save(folder / FIGURE)
    files = {name: holds for name, holds in FILES.items() if (folder / name).is_file()}
    text = card(tiny.bank, options, [] if scores is None else [scores], tiny.left_out, beside=files)
    write_text(folder / "README.md", text)
