"""Laws of every scenario, from measured abilities."""

from collections.abc import Mapping, Sequence

import numpy as np

from itembank.errors import shown
from itembank.progress import ProgressCallback, silent
from itembank.scaling.pretraining.fitting import LawData, LawFit
from itembank.scaling.pretraining.forecasts import FittedLaw
from itembank.scaling.pretraining.law_inputs import Measured
from itembank.scaling.pretraining.law_results import PretrainingLaw, ScenarioLaws
from itembank.scaling.pretraining.law_spec import PretrainingLawSpec
from itembank.scaling.pretraining.method_specs import LAWS, PretrainingSettings
from itembank.scaling.pretraining.runs import Runs
from itembank.scaling.pretraining.scenario_abilities import ScenarioScores


def fit_laws(
    measured: Measured,
    runs: Runs,
    settings: PretrainingSettings,
    target: float,
    seed: int,
    *,
    progress: ProgressCallback = silent,
) -> PretrainingLaw:
    """Fit every law that is wanted to every scenario of the models of `runs`, as far as it can be fitted."""
    specs = tuple(map(LAWS.resolve, settings.laws))
    every = [_law_data(measured, number, runs, settings, seed) for number in range(len(measured.scores))]
    joint = {LAWS.name_of(spec): _joint_fits(every, spec) for spec in specs if spec.is_joint}
    scenarios = []
    for number, (scores, data) in enumerate(zip(measured.scores, every, strict=True)):
        progress(f"laws of {scores.scenario}", number / len(measured.scores))
        own = {name: fits[number] for name, fits in joint.items()}
        scenarios.append(_scenario_laws(scores, data, specs, own))
    texts = [runs.message, measured.message, _absent(measured, scenarios)]
    return PretrainingLaw(
        recipes=runs.recipes,
        scenarios=tuple(scenarios),
        model_ids=measured.model_ids,
        log_flops=runs.log_flops,
        recipe_index=runs.recipe_index,
        is_final=runs.is_final,
        target_flops=target,
        level=settings.level,
        message=" ".join(text for text in texts if text),
    )


def _law_data(measured: Measured, number: int, runs: Runs, settings: PretrainingSettings, seed: int) -> LawData:
    """Return what laws of one scenario are fitted to: the models with responses there."""
    scores = measured.scores[number]
    losses = None if measured.losses is None else measured.losses[:, number]
    runs = runs.among(scores.is_present, settings.fewest_sizes)
    return LawData(scores.observed, measured.abilities[number], losses, runs, seed)


def _joint_fits(every: list[LawData], spec: PretrainingLawSpec) -> list[LawFit | None]:
    """Fit a law to all scenarios together that have a recipe with enough sizes; None for the others."""
    places = [number for number, data in enumerate(every) if data.runs.is_enough.any()]
    fits: list[LawFit | None] = [None] * len(every)
    if places:
        found = LAWS.kernel(spec)(tuple(every[number] for number in places), spec)
        for number, fit in zip(places, found, strict=True):
            fits[number] = fit
    return fits


def _scenario_laws(
    scores: ScenarioScores,
    data: LawData,
    specs: Sequence[PretrainingLawSpec],
    joint: Mapping[str, LawFit | None],
) -> ScenarioLaws:
    """Fit every law that is wanted to one scenario; `joint` are those of all scenarios together."""
    fitted: dict[str, FittedLaw] = {}
    notes: dict[str, tuple[str, ...]] = {}
    for spec in specs if data.runs.is_enough.any() else ():
        name = LAWS.name_of(spec)
        fit: LawFit | None = joint[name] if spec.is_joint else LAWS.kernel(spec)(data, spec)
        if fit is not None:
            fitted[name], notes[name] = fit.law, fit.notes
    return ScenarioLaws(scores, fitted, notes)


def _absent(measured: Measured, scenarios: list[ScenarioLaws]) -> str:
    """Say which scenarios some models have no responses in, and which have too few sizes for any law."""
    counts = [
        f"{scenario.scenario} ({int(np.sum(~scenario.is_present))})"
        for scenario in measured.scores
        if not scenario.is_present.all()
    ]
    parts = []
    if counts:
        parts.append(f"Models without responses do not count in a scenario (how many): {shown(counts)}.")
    lacking = [scenario.scenario for scenario in scenarios if not scenario.fitted]
    if lacking:
        parts.append(f"Scenarios without a law: {shown(lacking)}.")
    return " ".join(parts)
