"""The verb `law_predictions`: responses of larger training runs, predicted from the compute of smaller ones."""

import numpy as np

from itembank.errors import DataError
from itembank.irt.bernoulli import probability
from itembank.numerics.arrays import IntArray, mean_where_known
from itembank.progress import ProgressCallback, silent
from itembank.readers.compute import TrainingCompute
from itembank.responses.responses import ResponseMatrix
from itembank.scaling.pretraining.law_results import PretrainingLaw, ScenarioLaws
from itembank.scaling.pretraining.method_specs import ItemResponseLaw, PretrainingSettings
from itembank.scaling.pretraining.pretraining_law import pretraining_law
from itembank.studies.papers.item_predictions import by_scenario
from itembank.studies.papers.item_predictions_results import Cells, ItemPredictions


def law_predictions(
    responses: ResponseMatrix,
    compute: TrainingCompute,
    *,
    largest_flops: float,
    law: ItemResponseLaw | None = None,
    progress: ProgressCallback = silent,
) -> ItemPredictions:
    """Compare each response of larger finished models with its probability at the ability that their compute forecasts.

    Items are calibrated and laws fitted with the models of at most `largest_flops`; nothing of the larger ones is used
    but their compute.

    Parameters
    ----------
    responses, compute
        As for `pretraining_law`.
    largest_flops : float
        Training compute of the largest models that are fitted.
    law : ItemResponseLaw, optional
    progress : ProgressCallback

    Returns
    -------
    ItemPredictions
        A part for each scenario with a law, and one for all.

    Raises
    ------
    DataError
        When no finished model is larger; as `pretraining_law`.
    """
    larger = np.flatnonzero(compute.is_final & (compute.flops > largest_flops))
    if not larger.size:
        raise DataError(
            f"finished models of more than {largest_flops:.3g} FLOP must be left to predict, got none: the largest has "
            f"{compute.flops.max():.3g}. Fit to smaller models."
        )
    settings = PretrainingSettings(laws=(law or ItemResponseLaw(),), largest_flops=largest_flops, n_checked=0)
    fitted = pretraining_law(responses, compute, settings=settings, progress=progress)
    found = {one.scenario: _cells(fitted, one, responses, compute, larger) for one in fitted.scenarios if one.fitted}
    return ItemPredictions(by_scenario(found), _family(fitted), "")


def _family(law: PretrainingLaw) -> str:
    """Return the family of responses that a law's items have."""
    return next(one.abilities.parameters.family for one in law.scenarios if one.fitted)


def _cells(
    law: PretrainingLaw, one: ScenarioLaws, responses: ResponseMatrix, compute: TrainingCompute, larger: IntArray
) -> Cells:
    """Predict the responses of the larger models to one scenario's items."""
    recipes = ["all" if compute.recipe is None else compute.recipe[row] for row in larger.tolist()]
    abilities, _ = one.ability_laws.predict(np.log(compute.flops[larger]))
    theta = abilities[[law.recipes.index(name) for name in recipes], np.arange(larger.size)]
    items = one.abilities.items
    smaller = responses.model_indices(np.asarray(law.model_ids)[law.is_final].tolist())
    rows = responses.model_indices([compute.model_ids[row] for row in larger.tolist()])
    observed = responses.responses[np.ix_(rows, items)]
    expected = probability(one.abilities.parameters, theta[:, None])
    known = np.nonzero(~np.isnan(observed) & ~np.isnan(expected))
    item_mean = mean_where_known(responses.responses[np.ix_(smaller, items)])
    return Cells(expected[known], observed[known], item_mean[known[1]], known[0], items[known[1]])
