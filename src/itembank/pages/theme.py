"""How pictures and pages look: colours, type sizes, how numbers and bands are written. Loads nothing heavy.

Every colour is a pair: the one on white, and the one on the dark background of pages. Pictures in files use the first.
"""

import math
from typing import Any, NamedTuple


class Tone(NamedTuple):
    """A colour as hexadecimal text, for a light and for a dark background."""

    light: str
    dark: str


CATEGORIES = (
    Tone("#0072B2", "#4A92CC"),  # blue
    Tone("#D55E00", "#E0601C"),  # vermilion
    Tone("#009E56", "#58BD78"),  # green
    Tone("#A33B73", "#F79DC3"),  # plum
    Tone("#6B4E00", "#F4D274"),  # bronze
    Tone("#47189A", "#BE7BFF"),  # violet
    Tone("#3896FA", "#3FD2FA"),  # sky
    Tone("#111111", "#EEF2F6"),  # black
)
"""Colours of things without an order, the most important first.

The first two are of Okabe and Ito (2008). The others were searched so that any two differ as much as that palette's
do with every kind of colour vision, and so that each has a contrast of 3 or more with its background (WCAG 2.2,
1.4.11), which yellow and light blue have not.
"""

SEQUENTIAL = (
    Tone("#F2F6FA", "#182430"),
    Tone("#B8D4E8", "#1D4A70"),
    Tone("#5FA3CF", "#27689A"),
    Tone("#0072B2", "#6FB1DD"),
    Tone("#003A61", "#DCEBF7"),
)
"""Stops of a scale from little to much."""
DIVERGING = (
    Tone("#9C3B00", "#F7B58A"),
    Tone("#E79A63", "#C05518"),
    Tone("#F4F4F2", "#2A2E33"),
    Tone("#6FAFD6", "#2F79AE"),
    Tone("#00517F", "#A9D3F0"),
)
"""Stops of a scale from below to above a middle."""

FONTS = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"

COLOURS = {
    "main": CATEGORIES[0],  # of what a picture is about, where one thing is: ours, the estimate, the chosen
    "other": CATEGORIES[1],  # of what it is compared with
    "third": CATEGORIES[2],
    "ink": Tone("#2B2F33", "#E6E9EC"),  # text, axes and lines of reference
    "muted": Tone("#666C73", "#A3ABB3"),  # text of second rank, and marks that are context
    "soft": Tone("#A9AFB5", "#626A72"),  # marks of the past, error bars of context
    "faint": Tone("#E3E6E9", "#2C3137"),  # lines of a grid, areas of context
    "paper": Tone("#FFFFFF", "#15181C"),
    "panel": Tone("#F5F7F9", "#1E2227"),
    "good": Tone("#1B6E3C", "#6FCF97"),
    "bad": Tone("#B3261E", "#F2857C"),
    "warn": Tone("#8A5A00", "#F0B849"),
    "warnpaper": Tone("#FFF5DC", "#33290F"),
    **{f"c{number}": tone for number, tone in enumerate(CATEGORIES)},
}
"""What charts write as "@main", and style sheets as var(--main)."""

ATYPICAL_WORDS = "answered unlike past models"
UNKNOWN = "unknown"


def points(difference: float, *, is_signed: bool = False) -> str:
    """Write a score or a difference of scores, between 0 and 1, in points: 0.014 as '1.4 points'."""
    return f"{_decimals(100.0 * difference, 1, is_signed=is_signed)} points" if math.isfinite(difference) else UNKNOWN


def percent(share: float, decimals: int = 1) -> str:
    """Write a share between 0 and 1 in percent: 0.739 as '73.9 %'."""
    return f"{_decimals(100.0 * share, decimals)} %" if math.isfinite(share) else UNKNOWN


def level_words(level: float) -> str:
    """Write the level of an interval without decimals that say nothing: 0.95 as '95 %'."""
    return f"{100.0 * level:g} %"


def interval_words(low: float, high: float) -> str:
    """Write an interval of scores between 0 and 1 in points: '73.9 to 80.3'."""
    return " to ".join(points(end).removesuffix(" points") for end in (low, high))


def share_interval_words(low: float, high: float) -> str:
    """Write a range of shares between 0 and 1: '93 % to 97 %', one that is a single number as '95 %'."""
    ends = [percent(end, 0) for end in (low, high)]
    return " to ".join(dict.fromkeys(ends))


def count(number: float) -> str:
    """Write a number of things with commas: '14,042'."""
    return f"{number:,.0f}" if math.isfinite(number) else UNKNOWN


def money(amount: float, unit: str) -> str:
    """Write a cost in its unit: '3.20 USD', '12,345 tokens'; small ones keep three digits."""
    if not math.isfinite(amount):
        return UNKNOWN
    size = abs(amount)
    is_whole = size >= 100.0 or amount == round(amount)
    number = f"{amount:,.0f}" if is_whole else f"{amount:.2f}" if size >= 1.0 else f"{amount:.3g}"
    return f"{number} {unit}".rstrip()


def in_words(number: float, decimals: int = 2, *, is_signed: bool = False) -> str:
    """Write a number with a minus sign that is one: '−0.31', '+1.2'; never '−0.0'."""
    rounded = round(number, decimals) + 0.0
    return f"{rounded:{'+' if is_signed else ''}.{decimals}f}".replace("-", "−")


def unit_words(unit: str) -> str:
    """Write the unit of a cost as people do: with a name that a reader would know, without underscores."""
    return {"cost_usd": "USD"}.get(unit, unit.replace("_", " "))


def compute(flops: float) -> str:
    """Write a number of floating-point operations: '3.2e21 FLOP'."""
    return f"{flops:.2g} FLOP".replace("e+", "e")


def shortened(name: str, longest: int = 30) -> str:
    """Take the middle out of a name that is too long for a label, by default one beside a line."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _decimals(number: float, decimals: int, *, is_signed: bool = False) -> str:
    """Round, with commas, and never '-0.0'."""
    text = f"{number:+,.{decimals}f}" if is_signed else f"{number:,.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def chart_config(is_dark: bool) -> dict[str, Any]:
    """Return the Vega-Lite configuration that all charts share."""
    colour = {name: pair[is_dark] for name, pair in COLOURS.items()}
    return {
        "background": "transparent",
        # the format "%" writes 0.739 as 74: scores are in points, and titles of shares say "(%)"
        "locale": {"number": {"decimal": ".", "thousands": ",", "grouping": [3], "currency": ["$", ""], "percent": ""}},
        "font": FONTS,
        "view": {"stroke": None},
        "axis": {
            "labelColor": colour["muted"],
            "titleColor": colour["ink"],
            "titleFontWeight": 500,
            "titleFontSize": 12,
            "labelFontSize": 11,
            "labelLineHeight": 11,
            "gridColor": colour["faint"],
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
            "labelSeparation": 4,
            "titlePadding": 10,
        },
        "axisX": {"grid": False, "domain": True, "domainColor": colour["soft"]},
        "legend": {
            "labelLimit": 300,
            "labelColor": colour["ink"],
            "titleColor": colour["ink"],
            "labelFontSize": 11,
            "titleFontSize": 11,
        },
        "header": {"labelColor": colour["ink"], "titleColor": colour["ink"], "labelFontWeight": 600},
        "title": {"color": colour["ink"], "fontSize": 12, "fontWeight": 600, "anchor": "start"},
        "text": {"color": colour["ink"]},
        "mark": {"color": colour["main"]},
        "point": {"filled": True, "size": 40},
        "line": {"strokeWidth": 2},
        "rule": {"color": colour["muted"]},
        "range": {
            "category": [tone[is_dark] for tone in CATEGORIES],
            "ramp": [tone[is_dark] for tone in SEQUENTIAL],
            "heatmap": [tone[is_dark] for tone in SEQUENTIAL],
            "diverging": [tone[is_dark] for tone in DIVERGING],
        },
    }


def style_variables() -> str:
    """Return the colours as CSS: light, and dark where the reader's system or the button asks for it."""
    light, dark = (";".join(f"--{name}:{pair[k]}" for name, pair in COLOURS.items()) for k in range(2))
    return (
        f":root{{--font:{FONTS};{light};color-scheme:light}}\n"
        f":root[data-looks=dark]{{{dark};color-scheme:dark}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-looks=light]){{{dark};color-scheme:dark}}}}\n"
        f"@media print{{:root,:root[data-looks=dark]{{{light};color-scheme:light}}}}\n"
    )
