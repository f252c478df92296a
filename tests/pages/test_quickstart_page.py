import dataclasses

import numpy as np
import pytest

from itembank.bank.banks import Bank
from itembank.estimation.estimate import estimate
from itembank.pages.quickstart import (
    STRATEGIES,
    FlaggedErrors,
    QuickstartResult,
    Round,
    StrategyErrors,
    quickstart_page,
)
from itembank.planning.select import select
from itembank.responses.score_names import OVERALL
from tests.bank.banks import make_bank
from tests.pages.reading import answers, chart, column, words


def errors(strategy, mean):
    return StrategyErrors(strategy, {"random": 1}, {"mean": 1}, mean, 3.0 * mean, 0.9, 0.96, 0.95)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    bank: Bank = make_bank()
    held_out = make_bank(n_models=5, seed=3).responses
    selection = select(bank, 12, method="random", rng=1)
    found = estimate(bank, held_out, selection=selection, method="weighted", interval="model-based")
    flags = np.array([0.5, 0.01, 0.5, 0.5, 0.5])
    found = dataclasses.replace(found, typicality=found.typicality._replace(typicality=flags))
    true = bank.targets.with_overall(bank.targets.scenario_means(held_out.responses))
    selections = {strategy.selection: selection for strategy in STRATEGIES}
    first = Round(bank, held_out, true, selections, (found,) * len(STRATEGIES))
    folder = tmp_path_factory.mktemp("quickstart")
    files = {name: folder / name for name in ("bank", "selection", "responses")}
    means = (2.9, 2.6, 1.7, 1.4)
    made = tuple(errors(strategy, mean) for strategy, mean in zip(STRATEGIES, means, strict=True))
    return QuickstartResult(made, FlaggedErrors(2, 10, 2.5, 1.1), first, 2, files, ())


def test_problem_and_gain_stand_at_once(result):
    page = quickstart_page(result)
    assert page.title == "12 of 30 questions: 2.9 points off by chance, 1.4 points by itembank"
    assert [one.value for one in answers(page)] == ["2.9 points", "1.4 points", "96 %"]
    assert "2 of 10 estimates are of models that answered unlike past models: their mean error is 2.5" in words(page)
    assert "Errors are over 2 such splits" in words(page)


def test_every_held_out_model_is_drawn_against_the_truth_in_both_panels(result):
    page = quickstart_page(result)
    data = chart(page, "random sampling is off by 2.9 points").data[0].columns
    true = result.first.true[:, -1]
    np.testing.assert_allclose(data["true"], [*true, *true])
    np.testing.assert_allclose(data["estimate"][:5], result.first.estimates[0].column(OVERALL))
    assert [bool(one) for one in data["is_flagged"]] == [False, True, False, False, False] * 2
    assert [one is None for one in data["from"]] == [False, True, True, True, True] * 2
    lowest, highest = data["from"][0], data["to"][0]
    assert lowest <= np.min(data["low"])
    assert highest >= np.max(data["high"])


def test_all_ways_and_the_next_commands_are_listed(result):
    page = quickstart_page(result)
    assert column(page, "Errors of the overall score", "mean") == [2.9, 2.6, 1.7, 1.4]
    assert f"itembank report {result.files['bank']} {result.files['responses']} --selection" in words(page)
