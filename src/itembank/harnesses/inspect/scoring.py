"""Scorer and metric of Inspect that put the full-benchmark estimate into a log; loaded by Inspect only."""

import math

from inspect_ai._util.registry import registry_info
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.scorer._scorer import SCORER_METRICS, scorer_register
from inspect_ai.solver import TaskState

from itembank.harnesses.inspect.estimates import estimated_metrics
from itembank.readers.inspect_samples import OWN_SCORER, choose_scorer, flat_scores, score_value


@metric(name="full_benchmark", scores="unreduced")
def full_benchmark(
    bank: str, task: str, *, bank_id: str = "", session: str = "", selection: str = "", routing: str = ""
) -> Metric:
    """Estimate the score on the full benchmark; the arguments are those of `estimated_metrics`.

    It depends on them and on the samples' ids and scores alone, so that it holds in retries and in `inspect score`.
    """

    def estimated(scores: list[SampleScore]) -> dict[str, float]:
        values = [(one.sample_id, one.score.as_float()) for one in scores]
        chosen = {"session": session, "selection": selection, "routing": routing}
        return estimated_metrics(values, bank=bank, task=task, bank_id=bank_id, **chosen)

    return estimated


@scorer(metrics=[], name=OWN_SCORER)
def _copied(bank: str, task: str, scorer_name: str | None = None, **_known: str) -> Scorer:  # noqa: ARG001 (for logs)
    """Give the score of another scorer of the task as a number."""

    async def score(state: TaskState, _target: Target) -> Score:
        found = flat_scores({name: one.model_dump() for name, one in (state.scores or {}).items()})
        if not found:
            return Score(value=math.nan)
        name = choose_scorer(task, list(found), [scorer_name] if scorer_name else [], [])
        return Score(value=score_value(found[name]), metadata={"scorer": name})

    return score


def estimating(bank: str, task: str, scorer_name: str | None = None, **known: str) -> Scorer:
    """Make the scorer whose metric is the estimate.

    Parameters
    ----------
    bank, task : str
    scorer_name : str, optional
        Whose scores are the responses; the task's first scorer by default.
    **known
        Further arguments of `full_benchmark`.
    """
    made = _copied(bank, task, scorer_name, **known)
    # Inspect's decorator knows no metrics that depend on the scorer's own arguments.
    registry_info(made).metadata[SCORER_METRICS] = [full_benchmark(bank=bank, task=task, **known)]
    return made


scorer_register(estimating, registry_info(_copied).name, {SCORER_METRICS: []})
