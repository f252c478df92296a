"""Colours can be told apart by everyone (simulated as Machado, Oliveira and Fernandes, 2009), and numbers read well."""

import math
import subprocess
import sys

import numpy as np
import pytest

from itembank.pages import theme

VISIONS = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_CONES = np.array([
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
])  # fmt: skip
TO_OKLAB = np.array([
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
])  # fmt: skip
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def linear(colour):
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def least_distance(colours, vision):
    seen = np.clip(np.array([linear(one) for one in colours]) @ np.array(VISIONS[vision]).T, 0.0, 1.0)
    places = np.cbrt(seen @ TO_CONES.T) @ TO_OKLAB.T
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return distances[np.triu_indices(len(colours), 1)].min()


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_categories_are_as_far_apart_as_okabe_and_ito_with_every_colour_vision(mode):
    colours = [getattr(tone, mode) for tone in theme.CATEGORIES]
    worst = min(least_distance(OKABE_ITO, vision) for vision in VISIONS)
    assert min(least_distance(colours, vision) for vision in VISIONS) > 0.95 * worst


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_marks_and_text_stand_out_from_the_background(mode):
    back = getattr(theme.COLOURS["paper"], mode)
    assert min(contrast(getattr(tone, mode), back) for tone in theme.CATEGORIES) >= 3.0
    assert contrast(getattr(theme.COLOURS["ink"], mode), back) >= 7.0
    assert contrast(getattr(theme.COLOURS["muted"], mode), back) >= 4.5
    panel = getattr(theme.COLOURS["panel"], mode)
    for verdict in ("good", "bad", "warn"):
        assert contrast(getattr(theme.COLOURS[verdict], mode), panel) >= 4.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (theme.points(0.0137), "1.4 points"),
        (theme.points(-0.0002), "0.0 points"),
        (theme.points(0.02, is_signed=True), "+2.0 points"),
        (theme.points(math.nan), "unknown"),
        (theme.percent(0.7386), "73.9 %"),
        (theme.percent(0.5, 0), "50 %"),
        (theme.level_words(0.95), "95 %"),
        (theme.level_words(0.999), "99.9 %"),
        (theme.interval_words(0.739, 0.803), "73.9 to 80.3"),
        (theme.share_interval_words(0.93, 0.97), "93 % to 97 %"),
        (theme.share_interval_words(0.95, 0.95), "95 %"),
        (theme.count(14042), "14,042"),
        (theme.money(3.2, "USD"), "3.20 USD"),
        (theme.money(12345.4, "tokens"), "12,345 tokens"),
        (theme.money(0.004567, "USD"), "0.00457 USD"),
        (theme.money(7.0, "items"), "7 items"),
    ],
)
def test_numbers_are_written_as_people_say_them(text, words):
    assert text == words


def test_a_long_name_loses_its_middle():
    assert theme.shortened("meta-llama/Llama-3.1-405B-Instruct-Turbo", 15) == "meta-ll…t-Turbo"
    assert theme.shortened("arc", 15) == "arc"


def test_the_theme_loads_nothing_heavy():
    program = "import sys, itembank.pages.theme; print({'numpy', 'polars'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
