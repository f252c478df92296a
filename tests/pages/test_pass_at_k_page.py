import importlib

import numpy as np
import pytest

from itembank.pages.blocks import Chart
from itembank.pages.pass_at_k_page import pass_at_k_page
from itembank.scaling.pass_at_k.pass_at_k_law import pass_at_k_law
from itembank.scaling.pass_at_k.specs import PassAtKSpec
from tests.pages.reading import answers, cautions, check_charts, lead_text, of_kind, table
from tests.scaling.samples import known_bank, simulated_samples


@pytest.fixture(scope="module")
def samples():
    return simulated_samples(n_models=8, n_items=20, n_trials=60)


@pytest.fixture(scope="module")
def law(samples):
    return pass_at_k_law(
        samples.responses, PassAtKSpec(k=(1, 10, 100), budget=20, n_draws=200), bank=known_bank(samples)
    )


def test_the_answer_is_the_mean_over_curves_and_its_error(law):
    page = pass_at_k_page(law)
    value = law.values("irsl")
    first, last, error = answers(page)
    assert first.value == f"{100.0 * value[:, 0].mean():.1f} %"
    assert last.value == f"{100.0 * value[:, -1].mean():.1f} %"
    assert error.value == f"{100.0 * law.errors()[0]['error']:.1f} points"
    assert "Over 8 curves" in lead_text(page)
    check_charts(page)


def test_one_model_has_its_own_answer_with_an_interval(samples):
    law = pass_at_k_law(
        samples.responses, PassAtKSpec(k=(1, 50), n_draws=200), bank=known_bank(samples), models=["model-3"]
    )
    page = pass_at_k_page(law)
    (answer,) = answers(page)
    low, high = law.all_items.low[0, -1], law.all_items.high[0, -1]
    assert answer.label == "model-3 on math, pass@50"
    assert answer.interval == f"{100.0 * low:.1f} % to {100.0 * high:.1f} %, 95 % interval"
    assert page.title == "pass@k of model-3"
    assert "bind" not in str(of_kind(page, Chart)[0].spec)
    check_charts(page)


def test_curves_hold_model_band_and_what_all_samples_say(law):
    (chart,) = of_kind(pass_at_k_page(law), Chart)
    data = chart.data[0].columns
    np.testing.assert_allclose(data["value"], law.values("irsl").ravel())
    np.testing.assert_allclose(data["low"], law.all_items.low.ravel())
    np.testing.assert_allclose(data["observed"], law.all_items.truth.ravel())
    np.testing.assert_array_equal(data["is_forecast"], np.tile(law.k > 20, len(law.model_ids)))
    scales = [part["encoding"]["y"]["scale"]["domain"] for part in chart.spec["layer"]]
    assert scales == [[0.0, 1.0]] * len(scales)


def test_without_the_item_response_law_there_is_no_interval(law, samples):
    plain = pass_at_k_law(samples.responses, PassAtKSpec(k=(1, 10), methods=("jeffreys", "unbiased")))
    page = pass_at_k_page(plain)
    assert "band" not in of_kind(page, Chart)[0].note
    assert np.isfinite(of_kind(page, Chart)[0].data[0].columns["observed"]).any()
    assert cautions(page) == ""
    check_charts(page)


def test_many_curves_are_taken_evenly_from_the_lowest_to_the_highest(law, monkeypatch):
    monkeypatch.setattr(importlib.import_module(pass_at_k_page.__module__), "MOST_CURVES", 3)
    shown = table(pass_at_k_page(law), "pass@k of every model and scenario").data.columns
    first = law.values("irsl")[:, 0]
    assert sorted(shown["k0"])[0] == pytest.approx(first.min())
    assert sorted(shown["k0"])[-1] == pytest.approx(first.max())
    assert len(shown["k0"]) == 3
