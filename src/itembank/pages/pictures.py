"""Charts as pictures that stand still, for notebooks: the same specifications, drawn by the same library."""

import base64
import json
from typing import Any

from itembank.errors import missing_package
from itembank.pages.blocks import Chart
from itembank.pages.looks import COLOURS, chart_config
from itembank.pages.plain import plain_columns, plain_spec
from itembank.pages.runtime import PACKAGES

WIDTH = 640


def picture(chart: Chart) -> str:
    """Return a chart as SVG in a data address, which runs nothing.

    Raises
    ------
    MissingDependencyError
        When vl-convert is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 (optional)
    except ImportError as error:
        raise missing_package("pictures of reports need vl-convert-python", PACKAGES, error) from error
    svg = vl_convert.vegalite_to_svg(json.dumps(_whole(chart)), config=chart_config(False), allowed_base_urls=[])
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _whole(chart: Chart) -> dict[str, Any]:
    """Return the specification with its data, a width and the colours on white."""
    spec = coloured(plain_spec({"data": {"name": chart.data[0].name}, "background": "white", **chart.spec}))
    if spec.get("width") == "container":
        spec["width"] = WIDTH
    for part in spec.get("vconcat", ()):
        part.setdefault("width", WIDTH)
    records = {}
    for data in chart.data:
        columns = plain_columns(data)
        records[data.name] = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {**spec, "datasets": records}


def coloured(part: Any) -> Any:
    """Put colours in the place of their names, as `assets/page.js` does."""
    if isinstance(part, dict):
        return {name: coloured(one) for name, one in part.items()}
    if isinstance(part, list | tuple):
        return [coloured(one) for one in part]
    if isinstance(part, str) and part.startswith("@") and part[1:] in COLOURS:
        return COLOURS[part[1:]].light
    return part
