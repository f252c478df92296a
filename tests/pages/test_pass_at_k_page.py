from dataclasses import replace

import numpy as np
import pytest

from itembank.pages.shown import show
from itembank_scaling.pages import pass_at_k_page
from itembank_scaling.pages.pass_at_k_page import middle_model
from itembank_scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank_scaling.pass_at_k.specs import PassAtKSpec
from tests.pages.reading import check_charts, column, lead_text
from tests.scaling.samples import known_bank, simulated_samples


@pytest.fixture(scope="module")
def samples():
    return simulated_samples(n_models=8, n_items=20, n_trials=60)


@pytest.fixture(scope="module")
def law(samples):
    return pass_at_k_law(
        samples.responses, PassAtKSpec(k=(1, 10, 100), budget=20, n_draws=200), bank=known_bank(samples)
    )


def test_curves_hold_model_band_and_what_all_samples_say(law):
    (chart,) = show(law).charts
    data = chart.data[0].columns
    np.testing.assert_allclose(data["value"], 100.0 * law.values("irsl").ravel())
    np.testing.assert_allclose(data["low"], 100.0 * law.all_items.low.ravel())
    np.testing.assert_allclose(data["observed"], 100.0 * law.all_items.truth.ravel())
    np.testing.assert_array_equal(data["is_forecast"], np.tile(law.k > 20, len(law.model_ids)))
    alone = pass_at_k_law(
        simulated_samples(n_models=4, n_items=9, n_trials=20).responses, PassAtKSpec(k=(1,), n_draws=100)
    )
    one = show(alone).charts[0]
    assert one.note.startswith("The point in colour is the item response law, the bar its 95 % interval. The other is")
    assert [part["mark"]["type"] for part in one.spec["layer"][:2]] == ["rule", "point"]
    scales = [part["encoding"]["y"]["scale"]["domain"] for part in chart.spec["layer"]]
    assert scales == [[0.0, 100.0]] * len(scales)


def test_the_page_begins_with_the_first_forecast_beyond_the_samples_and_lists_all(law):
    page = show(law)
    i = law.model_ids.index(middle_model(law))
    low, value, high = (100.0 * part[i, 2] for part in (law.all_items.low, law.values("irsl"), law.all_items.high))
    assert lead_text(page).startswith(
        f"{law.model_ids[i]} reaches {value:.1f} points on {law.scenarios[i]} at k = 100 ({low:.1f} to {high:.1f}), "
        "from 20 samples of each question: a forecast."
    )
    sentence = pass_at_k_page._sentence(replace(law, n_trials=np.minimum(law.n_trials, 5)), i)
    assert f" on {law.scenarios[i]} at k = 10 (" in sentence
    assert f" and {value:.1f} points at k = 100 ({low:.1f} to {high:.1f}), from 5 samples of each" in sentence
    uneven = law.n_trials.copy()
    uneven[i, np.argmax(uneven[i] > 0)] = 1
    assert "from 1 to 20 samples of each question" in pass_at_k_page._sentence(replace(law, n_trials=uneven), i)
    np.testing.assert_allclose(column(page, "pass@k in points", "jeffreys"), law.values("jeffreys").ravel())
    np.testing.assert_allclose(column(page, "pass@k in points", "truth"), law.all_items.truth.ravel())


def test_without_the_item_response_law_there_is_no_interval(samples):
    plain = pass_at_k_law(samples.responses, PassAtKSpec(k=(1, 10), methods=("jeffreys", "unbiased")))
    page = show(plain)
    assert "band" not in page.charts[0].note
    assert np.isfinite(page.charts[0].data[0].columns["observed"]).any()
    check_charts(page)


def test_many_curves_are_taken_evenly_from_the_lowest_to_the_highest(law, monkeypatch):
    monkeypatch.setattr(pass_at_k_page, "MOST_CURVES", 3)
    data = show(law).charts[0].data[0].columns
    drawn, first = np.asarray(data["value"])[np.asarray(data["k"]) == 1], 100.0 * law.values("irsl")[:, 0]
    np.testing.assert_allclose([drawn.min(), drawn.max()], [first.min(), first.max()])
    assert len(drawn) == 3
