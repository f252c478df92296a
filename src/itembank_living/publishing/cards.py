"""The card of a published bank, the README.md that the Hub shows: strangers' words in it are no markup."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import polars as pl

from itembank.bank.banks import Bank
from itembank.errors import ParameterError, quoted, shell_word, visible
from itembank.responses.model_features import model_dates
from itembank.responses.prompts import prompts_in_words
from itembank.tables import plural, points_of
from itembank_living.publishing.without_responses import CrossValidatedScores

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#!|~$])|([<>&:/@]|(?<=www)\.)")


def escaped(text: object) -> str:
    """Return text that Markdown shows as it is: control characters as escapes, text that is too long cut."""
    plain = visible(" ".join(str(text).split()))
    cut = plain if len(plain) <= 80 else f"{plain[:79]}…"
    return _SPECIAL.sub(lambda found: f"\\{found[1]}" if found[1] else f"&#{ord(found[2])};", cut)


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; its cells are escaped, numbers as they are."""
    cells = [[f"{one:,}" if isinstance(one, int) else escaped(one) for one in row] for row in rows]
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


CANARY = "6f0d6bb6-0f0e-4f0b-9a52-9b2f5f6a3c5e"
"""Is in every card, so that whoever trains a model can find banks in the data and leave them out."""
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}")
PROMPT_COLUMNS = ("task", "task_version", "n_shot", "num_fewshot", "metric", "filter")
"""Columns of the item table that say how questions were asked and judged."""

WITHOUT_RESPONSES = """\
This bank was published **without past models' responses**. With it you can estimate scores (methods `auto`, `gp-irt`,
`p-irt`, `factor`, `weighted`, `mean`), select items, and run adaptive sessions. These need the whole bank:

- methods that learn from responses (`ridge`, `task-mean`);
- items chosen by responses (`anchor-correctness`), `study homogeneity` and `prepare`;
- calibrated intervals{but}. Of other items that were not drawn by chance intervals come from the item model alone, and
  are too narrow if it is wrong.
"""
BUT_SUBSET = " for other items than the {n} of `selection.json`, whose intervals are part of the bank"


@dataclass(frozen=True, slots=True)
class CardOptions:
    """What only the publisher knows."""

    name: str  # Of the bank, for the heading
    place: str  # What users write for the bank: ``hf:owner/name``, or a folder
    license: str = ""  # Identifier as the Hub has it (`cc-by-4.0`); empty for none

    def __post_init__(self) -> None:
        """Check the licence, which is in the card's front matter."""
        if self.license and not _LICENSE.fullmatch(self.license):
            raise ParameterError(
                f"a license must be an identifier such as cc-by-4.0 or apache-2.0, got {quoted(self.license)}."
            )


def card(
    bank: Bank,
    options: CardOptions,
    cross_validated: Sequence[CrossValidatedScores],
    left_out: Sequence[str] = (),
    *,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Write the card of a bank.

    `cross_validated` are errors of the whole bank for some numbers of items, none where they could not be measured;
    `left_out` columns of its tables that are not published; `beside` says what the files of a small subset hold, by
    their names.
    """
    published, subset = bank.published, next(iter(bank.subsets), None)
    few = "about a hundred" if subset is None else f"{subset.selection.n_items:,}"
    summary = (
        f"A calibrated item bank of {plural(bank.n_total, 'item')} in {plural(bank.targets.n_scenarios, 'scenario')}, "
        f"made of the results of {plural(bank.n_calibration_models, 'model')} (bank `{bank.bank_id}`). It estimates "
        f"what a new model would score on all items from its answers to {few} of them, with an interval."
    )
    tables = {"items": bank.responses.items, **({} if published else {"past models": bank.responses.models})}
    columns = [f"Its table of {name} has the columns {_listed(table.columns)}." for name, table in tables.items()]
    columns += [f"Left out: {_listed(left_out)}."] if left_out else []
    dates = model_dates(bank.responses.models)
    of_models = ""
    if dates is not None:
        of_models = f"{plural(dates.len() - dates.null_count(), 'model')} of {dates.min()!s} to {dates.max()!s}."
    has_errors = subset is not None and (subset.errors.shape[0] > 0 or subset.apart.size > 0)
    but = BUT_SUBSET.format(n=subset.selection.n_items) if has_errors and subset is not None else ""
    parts = [
        _front_matter(bank, options, [name for name in beside if name == "selected.csv"]),
        f"# {escaped(options.name)}\n\n{summary}",
        f"## Use it\n\n{_usage_of_subset(bank, options.place) if beside else _usage(shell_word(options.place))}",
        f"## What it holds\n\n{_scenarios(bank)}\n\n{' '.join(columns)}",
        f"## How exact it is\n\n{_accuracy(cross_validated, drawn_half_width(bank))}",
        *[f"![{escaped(holds)}]({name})" for name, holds in beside.items() if name.endswith(".png")],
        *_section("## The files", table(("file", "holds"), list(beside.items())) if beside else ""),
        *_section("## The past models", of_models),
        *_section("## How questions were asked", _prompts(bank)),
        *_section("## What does not work", WITHOUT_RESPONSES.format(but=but) if published else ""),
        f"## What may not be published\n\n{WARNING}",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


WARNING = f"""\
A bank holds ids, numbers and hashes: no question and no answer of the benchmark. Keep it so, and do not add them here:
questions that are published end up in training data. Do not train on this data set.

itembank canary GUID {CANARY}"""


def _front_matter(bank: Bank, options: CardOptions, tables: Sequence[str]) -> str:
    """Return what the Hub reads: tags, licence, and the tables that its viewer shows."""
    shown = [*tables, "items.parquet", *([] if bank.published else ["models.parquet"])]
    configs = [f"- config_name: {name.partition('.')[0]}\n  data_files: {name}" for name in shown]
    lines = [
        f"pretty_name: {json.dumps(options.name, ensure_ascii=True)}",
        *([f"license: {options.license}"] if options.license else []),
        "tags:\n- itembank",
        "configs:\n" + "\n".join(configs),
    ]
    return "---\n" + "\n".join(lines) + "\n---"


def drawn_half_width(bank: Bank) -> float | None:
    """Half-width to expect of the items that a bank was published with, if they were drawn; else None."""
    one = next(iter(bank.subsets), None)
    return None if one is None or one.selection.inclusion_probabilities is None else one.measured.get("half_width")


def _accuracy(cross_validated: Sequence[CrossValidatedScores], of_draw: float | None) -> str:
    """Say how well past models were estimated that the bank had not seen, and what else a draw gives."""
    if not cross_validated:
        return "The bank has too few past models for cross-validation, so nobody knows: take its intervals with care."
    rows = [
        (one.n_items, one.true.size, f"{100.0 * one.error:.1f} points", f"{100.0 * one.coverage:.0f} %")
        for one in cross_validated
    ]
    heads = ("items answered", "models", "mean error of the overall score", "95 % intervals that cover the true score")
    drawn = ""
    if of_draw is not None:
        drawn = (
            " Estimates from this folder rest on the draw of the items instead: their intervals hold for any model, "
            f"and are about ±{points_of(of_draw)} points."
        )
    return (
        "Each past model was estimated, by the method `stacked`, by a bank that had not seen it:\n\n"
        f"{table(heads, rows)}\n\nA model unlike all past ones can be off by more.{drawn}"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(escaped, names))


def _section(heading: str, text: str) -> list[str]:
    return [f"{heading}\n\n{text}"] if text else []


def _usage(place: str) -> str:
    return f"""```sh
pip install '.[hub]'  # in a checkout of itembank; after its first release: pip install 'itembank[hub]'
itembank select {place} -n 100 -o selection.json --ids list > items.txt
# run these items on your model: results.csv with columns model_id, item_id, response
itembank estimate {place} results.csv --selection selection.json
```"""


def _usage_of_subset(bank: Bank, place: str) -> str:
    """Say how to run the items: by their ids, and inside a harness where the bank was made of its logs."""
    inside = (
        " `itembank run lm-eval BANK -o out -- --model ...` (or `run inspect`) runs them inside the harness, as\n"
        "past models were asked, and estimates the scores."
    )
    python = json.dumps(place, ensure_ascii=False).replace("`", "\\x60")
    return f"""Run the items of `selected.csv` with your own harness, prompted as in a full run, and write a table with
the columns `model_id`, `item_id` and `response` (0 to 1).{inside if "task" in bank.responses.items.columns else ""}

```sh
pip install .  # in a checkout of itembank; after its first release: pip install itembank
itembank estimate {shell_word(place)} results.csv
```

In Python, `ib.estimate({python}, "results.csv")`; `"hf:owner/name"` once it was pushed."""


def _scenarios(bank: Bank) -> str:
    """Return one row a scenario, with the range of past models' scores where it is known."""
    sizes, weights = bank.targets.scenario_sizes.tolist(), bank.targets.scenario_weights
    rows: list[tuple[object, ...]] = []
    for index, name in enumerate(bank.targets.scenarios[:60]):
        row: tuple[object, ...] = (name, int(sizes[index]), f"{weights[index]:.3f}")
        if not bank.published:
            scores = bank.best_known_scores[:, index]
            known = scores[~np.isnan(scores)]
            ends = (known.mean(), known.min(), known.max()) if known.size else ()
            row = (*row, *([f"{one:.3f}" for one in ends] or ["", "", ""]))
        rows.append(row)
    heads = ("scenario", "items", "weight in the overall score")
    text = table(heads if bank.published else (*heads, "mean score", "lowest", "highest"), rows)
    more = bank.targets.n_scenarios - len(rows)
    calibration = bank.calibration
    abilities = "ability" if calibration.n_dims == 1 else "abilities"
    how = f"Item model {calibration.item_model}, {calibration.n_dims} {abilities}, by {calibration.method}."
    return text + (f"\n\n... and {more} more." if more > 0 else "") + f"\n\n{how}"


def _prompts(bank: Bank) -> str:
    """List how each kind of item was asked and judged, as the item table says."""
    told = prompts_in_words(bank.responses.items, most=60)
    if told:
        return "\n".join(f"- {escaped(line)}" for line in told)
    names = [name for name in PROMPT_COLUMNS if name in bank.responses.items.columns]
    if not names:
        return ""
    kinds = bank.responses.items.select(names).unique(maintain_order=True)
    return table(names, kinds.head(60).cast(pl.String).fill_null("").rows())
