"""How pages look: the theme of figures as CSS and as the configuration that all charts share."""

from typing import Any

from itembank.pages.theme import (
    BACKGROUND,
    CATEGORIES,
    DIVERGING,
    FAINT,
    FONTS,
    INK,
    MUTED,
    ONE_MAIN,
    OTHER,
    SEQUENTIAL,
    SOFT,
    Tone,
)

COLOURS = {
    "main": ONE_MAIN,
    "other": OTHER,
    "third": CATEGORIES[2],
    "ink": INK,
    "muted": MUTED,
    "soft": SOFT,
    "faint": FAINT,
    "paper": BACKGROUND,
    "panel": Tone("#F5F7F9", "#1E2227"),
    "warn": Tone("#8A5A00", "#F0B849"),
    "warnpaper": Tone("#FFF5DC", "#33290F"),
    **{f"c{number}": tone for number, tone in enumerate(CATEGORIES)},
}
"""What charts write as "@main", and style sheets as var(--main)."""
FONT = FONTS


def chart_config(is_dark: bool) -> dict[str, Any]:
    """Return the Vega-Lite configuration that all charts share."""
    colour = {name: pair[is_dark] for name, pair in COLOURS.items()}
    return {
        "background": "transparent",
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": colour["muted"],
            "titleColor": colour["ink"],
            "titleFontWeight": 500,
            "titleFontSize": 12,
            "labelFontSize": 11,
            "gridColor": colour["faint"],
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
            "titlePadding": 10,
        },
        "axisX": {"grid": False, "domain": True, "domainColor": colour["soft"]},
        "legend": {"labelColor": colour["ink"], "titleColor": colour["ink"], "labelFontSize": 11, "titleFontSize": 11},
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
        f":root{{--font:{FONT};{light};color-scheme:light}}\n"
        f":root[data-looks=dark]{{{dark};color-scheme:dark}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-looks=light]){{{dark};color-scheme:dark}}}}\n"
        f"@media print{{:root,:root[data-looks=dark]{{{light};color-scheme:light}}}}\n"
    )
