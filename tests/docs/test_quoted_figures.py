"""Figures in prose are those of the tables they come from."""

import pytest

from benchmarks.quoted_figures import wrong_figures

TABLES = """
## Sizes

<!-- table: errors -->
| data | items | ours | theirs | held |
|---|---|---|---|---|
| Set | 30 | **1.49 ± 0.04** | 2.70 | 0.950 |
| | 100 | 0.97 | 1,234 | -0.35 |

- Mean of both: 0.75 ± 0.02, two cells.
<!-- end of table -->
"""


@pytest.fixture
def wrong(tmp_path):
    """Write a page and what it quotes, and compare."""
    tables = tmp_path / "benchmarks" / "tables"
    tables.mkdir(parents=True)
    (tables / "tables.md").write_text(TABLES, encoding="utf-8")

    def compare(text, phrase, *sources):
        (tmp_path / "page.md").write_text(text, encoding="utf-8")
        quoted = tmp_path / "quoted.toml"
        quoted.write_text(f"['page.md']\n{phrase!r} = {list(sources)!r}\n", encoding="utf-8")
        return wrong_figures(quoted, tmp_path)

    return compare


def test_every_figure_that_is_listed_is_its_tables():
    assert wrong_figures() == []


@pytest.mark.parametrize(
    ("text", "phrase", "source"),
    [
        ("Off by 1.5\npoints.", "Off by {} points", "errors | Set | 30 | ours"),
        ("Off by 1.49 ± 0.04.", "Off by {}.", "errors | Set | 30 | ours"),
        ("held 95 %", "held {%} %", "errors | Set | 30 | held"),
        ("of 1,234 models", "of {} models", "errors | Set | 100 | theirs"),
        ("less by .4", "less by {}", "errors | Set | 100 | held"),
        ("1.0 and 1,234 here", "{} and {} here", "errors | Set | 100 | ours; theirs"),
        ("is 0.75.", "is {}.", "errors | Mean of both:"),
        ("± 0.02", "± {}", "errors | Mean of both: 0.75 ±"),
        ("0.04 off", "{} off", "errors | Set | 30 | ours #2"),
        ("with 2.7", "with {}", "tables.md#sizes | Set | 30 | theirs"),
    ],
)
def test_figures_are_compared_at_the_digits_printed(wrong, text, phrase, source):
    assert wrong(text, phrase, source) == []


@pytest.mark.parametrize(
    ("text", "source", "said"),
    [
        ("Off by 1.4.", "errors | Set | 30 | ours", "says 1.4; errors | Set | 30 | ours has 1.49 ± 0.04"),
        ("Off by 1.49 ± 0.05.", "errors | Set | 30 | ours", "says 1.49 ± 0.05"),
        ("Off by +.35.", "errors | Set | 100 | held", "says +.35"),
        ("Not there.", "errors | Set | 30 | ours", "stands 0 times"),
        ("Off by 1.5. Off by 1.5.", "errors | Set | 30 | ours", "stands 2 times"),
        ("Off by 1.5.", "errors | Set | 31 | ours", "there must be one of the cells errors | Set | 31 | ours"),
        ("Off by 1.5.", "errors | Set | 30 | his", "there are 0"),
        ("Off by 1.5.", "errors | Set | ours", "there are 2"),
        ("Off by 1.5.", "error | Set | 30 | ours", "there is no table error"),
        ("Off by 1.5.", "errors | Set | 30 | ours; theirs", "has 1 figures and 2 cells"),
    ],
)
def test_what_differs_or_cannot_be_found_is_said(wrong, text, source, said):
    (line,) = wrong(text, "Off by {}.", source)
    assert line.startswith("page.md: ")
    assert said in line
