"""The verb `info`: what is in a bank, or in responses."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from itembank.auditing.outlook import outlook
from itembank.bank.ability_axis import AbilityAxis
from itembank.bank.arguments import GivenBank, GivenResponses, as_responses
from itembank.bank.bank_files import load_bank
from itembank.bank.bank_places import BESIDE_BANK, is_bank_name
from itembank.bank.bank_records import RECORD
from itembank.bank.banks import Bank
from itembank.bank.known_scores import external_names
from itembank.errors import first_few
from itembank.files.documents import read_toml
from itembank.planning.plan import overall_plan
from itembank.responses.contents import about_responses, means_in_words, scenario_rows
from itembank.responses.prompts import prompts_in_words
from itembank.responses.sizes import assumed_questions
from itembank.tables import plural
from itembank.tabular import Tabular, picked


@dataclass(frozen=True, slots=True, repr=False)
class Info(Tabular):
    """What is in a bank, or in responses; its records are one a scenario.

    Attributes
    ----------
    sentence : str
    facts : mapping of name to number, text or list
        On the whole, as `itembank info --format json` has them.
    scenarios : tuple of records
    notes : tuple of str
        What a reader must know of the scores.
    """

    main_columns = (
        *("target", "scenario", "n_items", "n_models", "density", "mean_response"),
        *("mean_score", "lowest_score", "highest_score"),
    )

    sentence: str
    facts: Mapping[str, Any]
    scenarios: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """One record a scenario; of a bank also one of the overall score."""
        return list(self.scenarios)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts."""
        return dict(self.facts)


def info(source: GivenBank | GivenResponses) -> Info:
    """Say what is in a bank, or in responses: models, items, scores by scenario.

    Parameters
    ----------
    source : Bank, ResponseMatrix, path, paths or table
        A bank, its folder or name; or responses, as `calibrate` takes them.

    Raises
    ------
    DataError, BankError
        When it can be read as neither.

    Examples
    --------
    >>> info("bank").facts["n_models"]  # doctest: +SKIP
    """
    if isinstance(source, str | Path) and (is_bank_name(source) or (Path(source) / RECORD).is_file()):
        source = load_bank(source)
    if isinstance(source, Bank):
        mean = source.targets.overall_in_words
        notes = (source.calibration.caution, f"The overall score is {mean}." if mean else "", _whose_scores(source))
        return Info(_in_a_sentence(source), _about(source), tuple(_scenario_rows(source)), tuple(filter(None, notes)))
    responses = as_responses(source)
    about, rows = about_responses(responses), scenario_rows(responses)
    kind = "right or wrong (family bernoulli)" if about.pop("is_binary") else "from 0 to 1 (family beta)"
    if any(part.n_trials is not None and part.n_trials.max() > 1 for part in responses.parts()):
        kind = "shares of several attempts (family binomial or beta-binomial)"
    said = f"Answers of {plural(about['n_models'], 'model')} to {plural(about['n_items'], 'item')}"
    return Info(said, {**about, "responses": kind}, tuple(rows), means_in_words(about, rows))


def _in_a_sentence(bank: Bank) -> str:
    """Say how large a bank is, and how good scores from few of its items are where that is known."""
    n_models = bank.n_calibration_models
    models = f"{plural(n_models, 'past model')} and " if n_models else ""
    size = f"A bank of {models}{plural(bank.n_total, 'item')}"
    known = [
        (one.selection.n_items, one.measured["half_width"]) for one in bank.subsets if "half_width" in one.measured
    ]
    if not known and (plan := overall_plan(bank)) is not None:
        usual = plan.near(100)
        known = [(usual.n_items, usual.half_width)]
    if not known or not known[0][1]:
        return size
    whose = " for models like these" if n_models else ""
    return f"{size}; scores from {known[0][0]} items are good to ±{100.0 * known[0][1]:.1f} points{whose}"


def _about(bank: Bank) -> dict[str, Any]:
    calibration, asked, folder = bank.calibration, prompts_in_words(bank.responses.items), bank.cache.folder
    origin = _origin(folder / BESIDE_BANK) if folder is not None and (folder / BESIDE_BANK).is_file() else {}
    assumed, ahead = assumed_questions(bank.responses.items), outlook(bank)
    n_negative = int((AbilityAxis.of(bank).slopes(calibration) < 0.0).sum())  # along the axis of the bank's page
    versions: dict[str, Any] = {}
    if bank.history is not None:
        changes = bank.history.changes
        versions = {
            "name": bank.name or None,
            "version": bank.version,
            "parent": changes[-1].parents[0] if changes and changes[-1].parents else None,
            "target_id": bank.target_id,
            "n_items_aside": bank.n_aside,
        }
    return {
        "bank": bank.bank_id,
        **versions,
        "n_models": bank.n_models,
        "n_items": bank.n_total,
        **({} if bank.rest is None else {"n_items_in_bank": bank.n_items}),
        **_about_responses(bank),
        **origin,
        **({"prompts": asked} if asked else {}),
        **picked(calibration, "method", "item_model"),
        "family": calibration.parameters.family,
        **picked(calibration, "n_dims", "converged", "message", "score_correlation"),
        **({"caution": calibration.caution} if calibration.caution else {}),
        "n_degenerate_items": int(calibration.is_degenerate.sum()),
        **({} if assumed is None else {"assumed_questions": assumed}),
        "n_negative_items": n_negative,
        "score_within_scenarios": bank.targets.within,
        "overall_score_over": bank.targets.across,
        "costs": sorted(bank.responses.costs),
        "newest_model": ahead.newest and ahead.newest.isoformat(),
        "months_old": ahead.months_old(),
        "n_never_solved": ahead.n_never_solved,
        "outlook": ahead.rows(),
    }


def _about_responses(bank: Bank) -> dict[str, Any]:
    if not (bank.published or bank.n_models):
        return {}
    if bank.published is None:
        external = list(external_names(bank.responses.models))
        return {
            "density": float(bank.responses.observed.mean()),
            "binary": bank.responses.is_binary,
            **({"external_scores": external} if external else {}),
        }
    about = bank.published
    subsets = sorted(about.subsets, key=lambda one: one.selection.n_items)
    return {
        "without_responses_of": f"{about.n_models} models of bank {about.whole_bank}",
        "items_to_run": [one.selection.n_items for one in subsets] or None,
        "measured": [{"n_items": one.selection.n_items, **one.measured} for one in subsets if one.measured],
    }


def _whose_scores(bank: Bank) -> str:
    """Say of which models scores are known, where not of all: others may have run some scenarios or items only."""
    known = np.count_nonzero(~np.isnan(bank.best_known_scores), axis=0).tolist()
    if len(set(known)) < 2:
        n_known = known[0] if bank.n_models else 0
        said = f"Scores of past models are of {n_known} of {bank.n_models}: the others answered too few of the items."
        return said if n_known < bank.n_models else ""
    *scenarios, overall = (f"{n} for {name}" for n, name in zip(known, bank.targets.names, strict=True))
    return f"Scores of past models are of different models: {overall}, {first_few(scenarios)}."


def _scenario_rows(bank: Bank) -> list[dict[str, Any]]:
    """One row a scenario, and one for the overall score; a score is NaN if that of no past model is known."""
    targets, scores = bank.targets, bank.best_known_scores
    sizes = [*targets.scenario_sizes.tolist(), bank.n_total]
    weights = [*targets.scenario_weights.tolist(), 1.0]
    biases = [*bank.item_model_bias.tolist(), float("nan")]
    rows = []
    for j, name in enumerate(targets.names):
        row = {"target": name, "n_items": sizes[j], "weight": weights[j]}
        if bank.n_models:
            known = scores[~np.isnan(scores[:, j]), j]
            values = (known.mean(), known.min(), known.max()) if known.size else (np.nan,) * 3
            row |= zip(("mean_score", "lowest_score", "highest_score"), map(float, values), strict=True)
        rows.append({**row, "item_model_bias": biases[j]})
    if bank.parameters.precision is not None:  # of items together by the geometric mean
        logs = np.log(bank.parameters.precision)
        means = np.bincount(targets.scenario_index, logs) / np.bincount(targets.scenario_index)
        for row, precision in zip(rows, [*np.exp(means).tolist(), float(np.exp(logs.mean()))], strict=True):
            row["precision"] = precision
    return rows


def _origin(recipe: Path) -> dict[str, Any]:
    """Return what the recipe of a ready bank says of the results that it was built from."""
    told = read_toml(recipe)
    about, fetched = (one if isinstance(one, dict) else {} for one in (told.get("source"), told.get("fetched")))
    texts = {
        "title": told.get("title"),
        "licence": told.get("licence") or fetched.get("licence") or about.get("licence"),
        "source": fetched.get("address") or about.get("address"),
        "revision": fetched.get("revision") or told.get("revision"),
    }
    lists = {name: told.get(name) for name in ("harnesses", "notes")}
    return {
        **{name: str(text or "") for name, text in texts.items()},
        **{name: [str(one) for one in words] if isinstance(words, list) else [] for name, words in lists.items()},
    }
