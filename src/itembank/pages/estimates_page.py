"""The page of estimates: the score of one model or many, and how far to trust it."""

from collections.abc import Iterator

import numpy as np

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import shown
from itembank.estimation.estimates import ScoreEstimates
from itembank.estimation.estimator_specs import ESTIMANDS_IN_WORDS, MEANING
from itembank.pages.blocks import Answers, Block, Caution, Facts, Section
from itembank.pages.common import Pair, bank_provenance, plural
from itembank.pages.estimated import Estimated
from itembank.pages.many_estimates import many_lead, many_sections
from itembank.pages.model_details import model_sections
from itembank.pages.render import Page
from itembank.pages.score_answers import score_answer
from itembank.responses.responses import ResponseMatrix

MOST_DETAILED = 3
"""Models that are shown one by one; of more, all together."""


def estimates_page(
    bank: Bank,
    responses: ResponseMatrix,
    estimates: ScoreEstimates,
    selection: Selection | None = None,
    *,
    title: str = "",
    command: str = "",
) -> Page:
    """Return the page of what `estimate` found.

    Of up to three models it shows each by itself: beside past models, scenario by scenario, where its answers are
    typical and where not, every answer, and what to run next. Of more it shows all in order.

    Parameters
    ----------
    bank : Bank
    responses : ResponseMatrix
        Of the new models, as `estimate` took them.
    estimates : ScoreEstimates
    selection : Selection, optional
        The items that were run, as `estimate` took it.
    title : str
    command : str
        That writes the page; '' in Python.

    Raises
    ------
    DataError
        When the responses are not those of the models that were estimated.

    Examples
    --------
    >>> page = estimates_page(bank, responses, estimates, selection)  # doctest: +SKIP
    >>> page.save("estimates.html")  # doctest: +SKIP
    """
    made = Estimated.of(bank, responses, estimates, selection)
    few = made.n_models <= MOST_DETAILED
    return Page(
        title=title or _title(made),
        kind="Estimates",
        lead=(_lead(made) if few else many_lead(made), *cautions(made)),
        sections=(*(_few(made) if few else many_sections(made)), Section("How to read this", (_caveats(made),))),
        provenance=(*bank_provenance(bank), *_provenance(made)),
        command=command,
    )


def _title(made: Estimated) -> str:
    of = f" on {made.bank.name}" if made.bank.name else ""
    models = made.estimates.model_ids
    return f"{models[0] if len(models) == 1 else plural(len(models), 'model')}{of}"


def _lead(made: Estimated) -> Block:
    estimates = made.estimates
    answers = tuple(
        score_answer(made.bank, made.model(row, estimates.main_target), made.answered(row)[0], method=estimates.method)
        for row in range(made.n_models)
    )
    return answers[0] if len(answers) == 1 else Answers(answers)


def _few(made: Estimated) -> Iterator[Section]:
    """Yield the sections of one model; of several, one for each with all its blocks."""
    if made.n_models == 1:
        yield from model_sections(made, 0)
        return
    for row, name in enumerate(made.estimates.model_ids):
        yield Section(name, tuple(block for part in model_sections(made, row) for block in part.blocks))


def cautions(made: Estimated) -> Iterator[Caution]:
    """Yield what a reader must not miss."""
    estimates, bank = made.estimates, made.bank
    flagged = estimates.typicality.flagged_in_words(estimates.model_ids, bank.n_compared_models)
    if flagged:
        yield Caution(flagged)
    known = set(bank.responses.model_ids) & set(estimates.model_ids)
    if known:
        yield Caution(
            f"{shown(sorted(known))} helped to calibrate this bank: such an estimate is better than one of a new "
            "model, and its interval too narrow."
        )
    unknown = [name for name, row in zip(estimates.model_ids, estimates.value, strict=True) if np.isnan(row).any()]
    if unknown:
        yield Caution(f"{shown(unknown)}: some scores have nothing to go by. Run items of these scenarios.")
    n_missing = int(estimates.n_missing.max(initial=0))
    if n_missing:
        who = "It lacks" if estimates.n_models == 1 else "Some models lack up to"
        yield Caution(
            f"{who} {plural(n_missing, 'answer')} to the selection. What is missing counts as missing by chance: if "
            "these were the items that the model fails, the estimate is too high."
        )


def _caveats(made: Estimated) -> Facts:
    return Facts(tuple(_caveat_pairs(made)))


def _caveat_pairs(made: Estimated) -> Iterator[Pair]:
    estimates, bank = made.estimates, made.bank
    yield "Which score", f"{ESTIMANDS_IN_WORDS[estimates.estimand].capitalize()}."
    if bank.targets.overall_in_words:
        yield "Overall score", f"{bank.targets.overall_in_words.capitalize()}."
    if bank.n_aside:
        yield "Items that do not count", f"{plural(bank.n_aside, 'item')} of the bank count in no score."
    yield "Interval", MEANING[estimates.interval_kind]
    if estimates.explanation:
        yield "Method", f"Estimated by {estimates.explanation}"
    yield (
        "Atypical models",
        "Typicality is the share of past models that answered as unusually. Below 0.10 a model counts as unlike past "
        "ones: it is drawn hollow, and its interval may be too narrow.",
    )
    yield "New prompts", "Prompt, harness and settings must be those of the bank; no statistic can tell that they are."


def _provenance(made: Estimated) -> Iterator[Pair]:
    estimates = made.estimates
    yield "Models", shown(estimates.model_ids)
    yield "Method", f"{estimates.method}, {100.0 * estimates.level:g} % intervals, {estimates.interval_kind}"
