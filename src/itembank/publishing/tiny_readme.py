"""The README.md of a published subset."""

from collections.abc import Sequence

import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.publishing.cards import (
    CANARY,
    MOST_SHOWN,
    WARNING,
    CardOptions,
    accuracy,
    columns_in_words,
    front_matter,
    limits,
)
from itembank.publishing.held_out import HeldOutScores
from itembank.publishing.markdown import escaped, table
from itembank.publishing.task_files import harness_arguments
from itembank.responses.prompts import prompts_in_words, settings_by_task

FIGURE = "accuracy.png"
TASKS = "tasks"
OTHER_SCORES = """ Its
scores are other ones: the item model predicts what was not run (p-IRT), and nothing more. `itembank estimate` combines
several methods by their errors on past models, and gives intervals. Quote the scores of `itembank estimate`; where you
quote those of `score.py`, say so, and compare them with no others."""
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
    has_data : bool
        Whether data files of the tasks are in it.
    left_out : sequence of str
        Columns of items that are not published.
    """
    options = CardOptions(name, place, license)
    figure = f"\n\n![Estimated against true scores of past models that were left out]({FIGURE})" if held_out else ""
    parts = [
        front_matter(bank, options, ("selected.csv",)),
        f"# {escaped(name)}\n\n{_summary(bank, selection)}",
        f"## Run the items\n\n{_run(bank, selection, place, has_tasks=has_tasks)}",
        f"## Get the scores\n\n{_score(bank, place)}",
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
    return "\n\nPast models were asked with these settings:\n\n" + _lines(told) if told else ""


def _lines(told: list[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in told)


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


def _score(bank: Bank, place: str) -> str:
    same = "which calls itembank" if bank.parameters.family != "bernoulli" else "which needs numpy alone"
    other = "" if bank.parameters.family != "bernoulli" else OTHER_SCORES
    return f"""With intervals, in one line:

```sh
pip install itembank
itembank estimate {place} results.csv
```

```python
import itembank as ib

print(ib.estimate("{place}", "results.csv"))  # or "hf:owner/name" once it was pushed
```

There is also a short program, {same}: `python {place}/score.py results.csv`.{other}"""


def _left_out(bank: Bank, names: Sequence[str], *, has_tasks: bool, has_data: bool) -> str:
    """Say what stayed with the publisher, and what `itembank pull` does not bring."""
    data = ["the data files of the tasks"] if has_tasks and not has_data else []
    stayed = ["past models with their responses", *(f"column {escaped(name)}" for name in names), *data]
    programs = f"`score.py` and `{TASKS}`" if has_tasks else "`score.py`"
    return (
        f"{columns_in_words(bank, ())} Left out: {', '.join(stayed)}.\n\n"
        f"`itembank pull` brings no programs, so that a copy made by it has no {programs}. "
        "`hf download OWNER/NAME --repo-type dataset --local-dir FOLDER` brings them, too. Look at programs of "
        "strangers before you run them."
    )


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
