import numpy as np
import polars as pl
import pytest

from itembank.errors import ParameterError
from itembank.pages.figures.canvas import save_figure
from itembank.pages.figures.study_figures import KINDS, MOST_PANELS, draw_study, styles
from itembank.studies.summary import summarise
from tests.pages.figures.drawn import message_of, names_of, note_of

METHODS = (("random", "weighted"), ("random", "gp-irt"), ("anchor-irt", "gp-irt"))


def make_estimates(*, splits=("k-fold", "$newest_models"), methods=METHODS, budgets=(30.0, 100.0), n_models=22):
    """Errors that shrink with the number of items."""
    rng = np.random.default_rng(0)
    parts = []
    for split in splits:
        for selector, estimator in methods:
            for budget in budgets:
                for repeat in range(2):
                    truth = rng.random(n_models)
                    estimate = truth + rng.normal(size=n_models) / (4.0 * np.sqrt(budget))
                    parts.append(
                        pl.DataFrame({"truth": truth, "estimate": estimate}).with_columns(
                            split=pl.lit(split),
                            selector=pl.lit(selector),
                            estimator=pl.lit(estimator),
                            budget=budget,
                            n_items=int(budget),
                            repeat=repeat,
                            model_id=pl.Series([f"m{m}" for m in range(n_models)]),
                        )
                    )
    numbers = ("cost", "effective_items", "n_calibration", "seconds_calibrate", "seconds_select", "seconds_estimate")
    table = pl.concat(parts).with_columns(fold=0, draw=0, target=pl.lit("overall"))
    return table.with_columns(
        *(pl.lit(1.0).alias(name) for name in numbers), low=pl.col("estimate") - 0.05, high=pl.col("estimate") + 0.05
    )


ESTIMATES = make_estimates()
SUMMARY = summarise(ESTIMATES)


def lines_of(axes):
    """Data of the curves of a panel: the first line of each error bar."""
    return [container.lines[0].get_xydata() for container in axes.containers]


@pytest.mark.parametrize(("kind", "metric", "scale"), [("error", "mae", 100.0), ("rank", "spearman", 1.0)])
def test_curves_are_the_metric_by_size(kind, metric, scale):
    figure = draw_study(SUMMARY, ESTIMATES, kind)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["k-fold", "$newest_models"]
    for axes, split in zip(figure.axes, ("k-fold", "$newest_models"), strict=True):
        for line, (selector, estimator) in zip(lines_of(axes), METHODS, strict=True):
            rows = SUMMARY.filter(split=split, selector=selector, estimator=estimator).sort("budget")
            np.testing.assert_allclose(line, np.column_stack([rows["budget"], scale * rows[metric]]))
    assert sorted(names_of(figure.axes[1])) == sorted(f"{one} × {other}" for one, other in METHODS)
    assert "standard error over repeats" in note_of(figure)


def test_the_message_names_the_best_and_the_worst_of_the_most_items():
    means = SUMMARY.filter(budget=100.0).group_by("selector", "estimator").agg(pl.col("mae").mean()).sort("mae").rows()
    (selector, estimator, least), (worst, other, most) = means[0], means[-1]
    assert message_of(draw_study(SUMMARY, ESTIMATES, "error")) == (
        f"n = 100: {selector} × {estimator} errs least ({100 * least:.1f} points), "
        f"{worst} × {other} most ({100 * most:.1f} points)"
    )


def test_more_panels_than_have_room_for_names_get_a_legend():
    many = make_estimates(splits=("a", "b", "c"), n_models=4)
    (legend,) = draw_study(summarise(many), many, "error").legends
    assert [text.get_text() for text in legend.get_texts()] == [f"{one} × {other}" for one, other in METHODS]


def test_coverage_stands_above_width_with_the_nominal_line():
    figure = draw_study(SUMMARY, ESTIMATES, "coverage", level=0.9)
    assert len(figure.axes) == 4
    for axes in figure.axes[:2]:
        assert any(np.allclose(line.get_ydata(), 90.0) for line in axes.lines)
    rows = SUMMARY.filter(split="k-fold", selector="random", estimator="weighted").sort("budget")
    np.testing.assert_allclose(lines_of(figure.axes[0])[0][:, 1], 100.0 * rows["coverage"])
    np.testing.assert_allclose(lines_of(figure.axes[2])[0][:, 1], 100.0 * rows["half_width"])


def test_spread_shows_every_model_at_one_size():
    figure = draw_study(SUMMARY, ESTIMATES, "spread", size=30.0)
    assert len(figure.axes) == 2 * len(METHODS)
    part = ESTIMATES.filter(split="k-fold", selector="random", estimator="weighted", budget=30.0)
    expected = part.group_by("model_id").agg(
        x=100.0 * pl.col("truth").mean(), y=100.0 * (pl.col("estimate") - pl.col("truth")).mean()
    )
    points = next(line for line in figure.axes[0].lines if line.get_marker() == "o").get_xydata()
    np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(expected["x"].to_numpy()))
    np.testing.assert_allclose(np.sort(points[:, 1]), np.sort(expected["y"].to_numpy()))
    assert message_of(figure).startswith("n = 30: ")
    assert message_of(draw_study(SUMMARY, ESTIMATES, "spread")).startswith("n = 100: ")


def test_budgets_in_cost_are_named():
    words = ("cost_usd ≤", "budget (cost_usd)")
    for kind in ("error", "coverage"):
        assert draw_study(SUMMARY, ESTIMATES, kind, size_words=words).axes[-1].get_xlabel() == words[1]
    assert message_of(draw_study(SUMMARY, ESTIMATES, "spread", size_words=words)).startswith("cost_usd ≤ 100: ")


def test_methods_look_different_and_the_same_in_every_figure():
    style = styles(SUMMARY)
    assert len(set(style.values())) == len(METHODS)
    assert style["random", "gp-irt"][0] == style["random", "weighted"][0] != style["anchor-irt", "gp-irt"][0]
    one_selector = styles(SUMMARY.filter(selector="random"))
    assert one_selector["random", "gp-irt"][0] != one_selector["random", "weighted"][0]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_drawn(kind):
    figure = draw_study(SUMMARY, ESTIMATES, kind)
    figure.draw_without_rendering()
    assert figure.axes


def test_a_figure_can_be_written(tmp_path):
    path = save_figure(draw_study(SUMMARY, ESTIMATES, "error"), tmp_path / "error.png")
    assert path.stat().st_size > 5_000


def test_one_repeat_and_no_estimate_can_be_drawn():
    once = ESTIMATES.filter(repeat=0).with_columns(
        estimate=pl.when(pl.col("estimator") == "weighted").then(float("nan")).otherwise("estimate")
    )
    for kind in KINDS:
        draw_study(summarise(once), once, kind).draw_without_rendering()


def test_what_cannot_be_drawn_says_why():
    with pytest.raises(ParameterError, match="'error', 'rank', 'spread', 'coverage', got 'bars'"):
        draw_study(SUMMARY, ESTIMATES, "bars")
    many = make_estimates(splits=[f"split {k}" for k in range(MOST_PANELS + 1)], methods=METHODS[:1], n_models=3)
    with pytest.raises(ParameterError, match="from 1 to 12 panels, got 13"):
        draw_study(summarise(many), many, "error")


def test_more_methods_than_colours_and_lines_still_look_different():
    pairs = [(f"selector-{number % 9}", f"estimator-{number}") for number in range(27)]
    summary = pl.DataFrame({"selector": [one for one, _ in pairs], "estimator": [other for _, other in pairs]})
    assert len(set(styles(summary).values())) == len(pairs)
