"""A small subset of a benchmark, published: the items to run, and all that makes a score of the answers to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from itembank.bank.arguments import GivenBank, GivenSelection, as_bank, as_selection
from itembank.bank.bank_files import check_bank_destination, save_bank
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.files.atomic import replacing_folder, write_text
from itembank.pages.pictures import check_drawing_library
from itembank.pages.truth_charts import PredictionPanel, predicted_against_true_chart
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank.publishing.cards import (
    CANARY,
    MOST_SHOWN,
    WARNING,
    CardOptions,
    accuracy,
    columns_in_words,
    escaped,
    front_matter,
    limits,
    table,
)
from itembank.publishing.publishable import check_task_files, for_publication, harness_arguments, is_data, left_out
from itembank.publishing.without_responses import HeldOutScores, held_out_scores, without_responses
from itembank.responses.prompts import prompts_in_words, settings_by_task, words_of_items

FIGURE = "accuracy.png"
TASKS = "tasks"
WARNING_WITH_DATA = f"""\
The data files of the tasks are part of this, with questions and answers. Questions that are published end up in
training data. Do not train on this data set.

itembank canary GUID {CANARY}"""
GROUP = "tiny"
"""What the harness calls these tasks together."""


def tiny_readme(
    bank: Bank,
    selection: Selection,
    held_out: HeldOutScores | None,
    *,
    name: str,
    license: str,  # noqa: A002 (the Hub's word)
    place: str,
    has_tasks: bool,
    has_data: bool = False,
    left_out: Sequence[str] = (),
) -> str:
    """Write what it is, the ways to use it, how exact it is and what does not work."""
    options = CardOptions(name, place, license)
    figure = f"\n\n![Estimated against true scores of past models that were left out]({FIGURE})" if held_out else ""
    parts = [
        front_matter(bank, options, ("selected.csv",)),
        f"# {escaped(name)}\n\n{_summary(bank, selection)}",
        f"## Run the items\n\n{_run(bank, selection, place, has_tasks=has_tasks)}",
        f"## Get the scores\n\n{_score(place)}",
        f"## How exact it is\n\n{accuracy([] if held_out is None else [held_out])}{figure}",
        f"## The files\n\n{_files(has_tasks=has_tasks, has_figure=held_out is not None)}\n\n"
        f"{_left_out(bank, left_out, has_tasks=has_tasks, has_data=has_data)}",
        f"## What does not work\n\n{limits(bank)}",
        f"## What may not be published\n\n{WARNING_WITH_DATA if has_data else WARNING}",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _summary(bank: Bank, selection: Selection) -> str:
    n_models = bank.published.n_models if bank.published is not None else bank.n_models
    return (
        f"{selection.n_items:,} of the {bank.n_items:,} items of a benchmark, chosen by the results of {n_models:,} "
        "past models, and what it takes to estimate a new model's score on all items from its answers to these."
        f"{_asked(bank, selection)}"
    )


def _asked(bank: Bank, selection: Selection) -> str:
    """List how past models were asked these items; nothing where nobody tells."""
    items = bank.responses.items
    told = prompts_in_words(items.filter(pl.col("item_id").is_in(selection.item_ids)), most=MOST_SHOWN)
    lines = "\n".join(f"- {escaped(line)}" for line in told)
    return f"\n\nPast models were asked with these settings:\n\n{lines}" if told else ""


def _run(bank: Bank, selection: Selection, place: str, *, has_tasks: bool) -> str:
    """Say how to run the items: by their ids, or as tasks of a harness."""
    by_ids = (
        "`selected.csv` lists them. Run these items with your own harness, prompted as in a full run, and write a "
        "table with the columns `model_id`, `item_id` and `response` (0 to 1)."
    )
    if not has_tasks:
        return by_ids
    items = bank.responses.items
    chosen = items.filter(pl.col("item_id").is_in(list(selection.item_ids)))
    settings = settings_by_task(chosen)
    arguments = harness_arguments(settings, settings)
    return f"""{by_ids}

With lm-evaluation-harness one command runs them, as past models were asked, and estimates the scores, where the harness
brings the tasks:

```sh
pip install 'itembank[lm-eval]'
itembank run lm-eval {place} -o out -- --model ...
```

The harness's own command runs them as the tasks in the folder `{TASKS}`, whose README says how past models were asked,
and what these tasks cannot do by themselves:

```sh
lm_eval --include_path {place}/{TASKS} --tasks {GROUP}{arguments} --model ... --log_samples --output_path out
```

The results are then the folder `out`, in place of `results.csv` below; without itembank, make a table of it."""


def _score(place: str) -> str:
    return f"""In one line, with intervals:

```sh
pip install itembank
itembank estimate {place} results.csv
```

```python
import itembank as ib

print(ib.estimate("{place}", "results.csv"))  # or "hf:owner/name" once it was pushed
```"""


def _left_out(bank: Bank, names: Sequence[str], *, has_tasks: bool, has_data: bool) -> str:
    """Say what stayed with the publisher, and what `itembank pull` does not bring."""
    data = ["the data files of the tasks"] if has_tasks and not has_data else []
    stayed = ["past models with their responses", *(f"column {escaped(name)}" for name in names), *data]
    return (f"{columns_in_words(bank, ())} Left out: {', '.join(stayed)}.") + (
        f"\n\n`itembank pull` brings no programs, so that a copy made by it has no {TASKS}. "
        "`hf download OWNER/NAME --repo-type dataset --local-dir FOLDER` brings them, too. Look at programs of "
        "strangers before you run them."
        if has_tasks
        else ""
    )


def _files(*, has_tasks: bool, has_figure: bool) -> str:
    rows = [
        ("selected.csv", "the items to run, with their weights in the estimate and their parameters"),
        ("parameters.csv", "all items, with their weights in the full score and their parameters"),
        ("selection.json", "the items to run, as itembank keeps a selection"),
        *([(FIGURE, "estimated against true scores of past models that were left out")] if has_figure else []),
        *([(TASKS, "tasks of lm-evaluation-harness")] if has_tasks else []),
        ("bank.json and others", "the bank, with its score targets and the errors measured on past models"),
    ]
    return table(("file", "holds"), rows)


@dataclass(frozen=True, slots=True)
class TinySpec:
    """Choices of `publish_tiny`.

    Attributes
    ----------
    name : str
        Of what is published; the folder's name where it is empty.
    license : str
        Identifier as the Hub has it: `cc-by-4.0`.
    include_columns : tuple of str
        Columns of items that may be published although they look like questions or answers.
    drop_columns : tuple of str
        Columns of items that are left out.
    include_data : bool
        Let data files in the folder `tasks` go.
    """

    name: str = ""
    license: str = ""
    include_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()
    include_data: bool = False


@dataclass(frozen=True, slots=True)
class Tiny:
    """What was published.

    Attributes
    ----------
    bank : Bank
        Without past models' responses.
    selection : Selection
        The items to run.
    held_out : HeldOutScores or None
        How well past models were estimated; None where there are too few.
    left_out : tuple of str
        Columns of items that stayed.
    """

    bank: Bank
    selection: Selection
    held_out: HeldOutScores | None
    left_out: tuple[str, ...] = ()


def publish_tiny(
    bank: GivenBank,
    folder: str | Path,
    n_items: int = 100,
    *,
    selection: GivenSelection | None = None,
    spec: TinySpec | None = None,
    write_tasks: Callable[[Path, Bank, Selection], object] | None = None,
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
        How many items, where no selection is given.
    selection : Selection or path, optional
    spec : TinySpec, optional
    write_tasks : function, optional
        Given the folder `tasks` to fill, the published bank and its selection, writes tasks of a harness.
    overwrite : bool
        Replace what was published there before.
    progress : ProgressCallback

    Raises
    ------
    BankError
        When something else stands at `folder`.
    DataError
        When a column of the items looks like questions or answers, or the folder `tasks` got what may not go.
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
    subset = published.published.subset if published.published is not None else None
    items = chosen if subset is None else subset.selection
    tiny = Tiny(published, items, held_out_scores(whole, chosen), left_out(given, published))
    with replacing_folder(folder) as new:
        _write(new, tiny, replace(spec, name=spec.name or folder.resolve().name), folder.name, write_tasks)
    return tiny


def _write(
    folder: Path,
    tiny: Tiny,
    spec: TinySpec,
    place: str,
    write_tasks: Callable[[Path, Bank, Selection], object] | None,
) -> None:
    """Fill the folder."""
    save_bank(tiny.bank, folder)
    tiny.selection.save(folder / "selection.json")
    parameters = _parameters(tiny)
    parameters.write_csv(folder / "parameters.csv")
    parameters.filter(pl.col("weight").is_not_null()).write_csv(folder / "selected.csv")
    if tiny.held_out is not None:
        held_out = tiny.held_out
        title = f"{held_out.true.size:,} past models, {held_out.n_items:,} items each"
        panel = PredictionPanel(title, held_out.true, held_out.estimate, held_out.low, held_out.high)
        predicted_against_true_chart([panel]).save(folder / FIGURE)
    files: list[Path] = []
    if write_tasks is not None:
        write_tasks(folder / TASKS, tiny.bank, tiny.selection)
        files = check_task_files(folder / TASKS, tiny.bank, with_data=spec.include_data)
    text = tiny_readme(
        tiny.bank,
        tiny.selection,
        tiny.held_out,
        name=spec.name,
        license=spec.license,
        place=place,
        has_tasks=write_tasks is not None,
        has_data=any(map(is_data, files)),
        left_out=tiny.left_out,
    )
    write_text(folder / "README.md", text)


def _parameters(tiny: Tiny) -> pl.DataFrame:
    """Table of all items: weight in the estimate (null where the item is not run), in the score, and parameters."""
    bank, parameters = tiny.bank, tiny.bank.parameters
    columns = {
        "score_weight": bank.targets.weights,
        "intercept": parameters.intercept,
        **{f"loading_{k + 1}": parameters.loadings[:, k] for k in range(parameters.n_dims)},
        "lower_asymptote": parameters.lower_asymptote,
        "upper_asymptote": parameters.upper_asymptote,
        **({} if parameters.precision is None else {"precision": parameters.precision}),
    }
    weights = pl.DataFrame({"item_id": tiny.selection.item_ids, "weight": tiny.selection.weights})
    items = bank.responses.items.select("item_id", "scenario", "subscenario")
    table = bank.responses.items
    asked = [words_of_items(table), *(table[name] for name in ("metric", "filter") if name in table.columns)]
    items = items.with_columns(one for one in asked if one.null_count() < one.len())
    joined = items.join(weights, on="item_id", how="left", maintain_order="left")
    return joined.with_columns(**{name: pl.Series(np.ascontiguousarray(one)) for name, one in columns.items()})
