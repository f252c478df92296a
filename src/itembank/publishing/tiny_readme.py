"""The README.md of a published subset."""

import polars as pl

from itembank.data.banks import Bank
from itembank.data.prompts import prompts_in_words
from itembank.data.selections import Selection
from itembank.publishing.cards import MOST_SHOWN, WARNING, CardOptions, accuracy, front_matter, limits
from itembank.publishing.held_out import HeldOutScores
from itembank.publishing.markdown import escaped, table

FIGURE = "accuracy.png"
TASKS = "tasks"
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
) -> str:
    """Write what it is, the ways to use it, how exact it is and what does not work.

    Parameters
    ----------
    bank : Bank
        Without past models' responses.
    selection : Selection
    held_out : HeldOutScores or None
    name : str
        For the heading.
    license : str
        Identifier as the Hub has it; empty for none.
    place : str
        What the folder is called in commands.
    has_tasks : bool
        Whether the folder `tasks` is there.
    """
    options = CardOptions(name, place, license)
    figure = f"\n\n![Estimated against true scores of past models that were left out]({FIGURE})" if held_out else ""
    parts = [
        front_matter(bank, options, ("selected.csv",)),
        f"# {escaped(name)}\n\n{_summary(bank, selection)}",
        f"## Run the items\n\n{_run(place, has_tasks=has_tasks)}",
        f"## Get the scores\n\n{_score(place)}",
        f"## How exact it is\n\n{accuracy([] if held_out is None else [held_out])}{figure}",
        f"## The files\n\n{_files(has_tasks=has_tasks, has_figure=held_out is not None)}",
        f"## What does not work\n\n{limits(bank)}",
        f"## What may not be published\n\n{WARNING}",
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
    return "\n\nPast models were asked with these settings:\n\n" + _lines(told) if told else ""


def _lines(told: list[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in told)


def _run(place: str, *, has_tasks: bool) -> str:
    """Say how to run the items: by their ids, or as tasks of a harness."""
    by_ids = (
        "`selected.csv` lists them. Run these items with your own harness, prompted as in a full run, and write a "
        "table with the columns `model_id`, `item_id` and `response` (0 to 1)."
    )
    if not has_tasks:
        return by_ids
    return f"""{by_ids}

With lm-evaluation-harness the folder `{TASKS}` does it:

```sh
pip install 'itembank[lm-eval]'
lm_eval --include_path {place}/{TASKS} --tasks {GROUP} --model ... --log_samples --output_path out
```

The results are then the folder `out`, in place of `results.csv` below; without itembank, make a table of it."""


def _score(place: str) -> str:
    return f"""With intervals, in one line:

```sh
pip install itembank
itembank estimate {place} results.csv
```

```python
import itembank as ib

print(ib.estimate("{place}", "results.csv"))  # or "hf:owner/name" once it was pushed
```

Without itembank: `python {place}/score.py results.csv`."""


def _files(*, has_tasks: bool, has_figure: bool) -> str:
    rows = [
        ("selected.csv", "the items to run, with their weights in the estimate and their parameters"),
        ("parameters.csv", "all items, with their weights in the full score and their parameters"),
        ("selection.json", "the items to run, as itembank keeps a selection"),
        ("score.py", "a short program that makes scores of answers"),
        *([(FIGURE, "estimated against true scores of past models that were left out")] if has_figure else []),
        *([(TASKS, "tasks of lm-evaluation-harness")] if has_tasks else []),
        ("bank.json and others", "the bank, with its score targets and the errors measured on past models"),
    ]
    return table(("file", "holds"), rows)
