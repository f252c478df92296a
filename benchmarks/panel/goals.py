"""What the panel was to reach, and what it reaches."""

from benchmarks.panel.table import NAMES
from benchmarks.resampling import geometric_mean

ONE_BATCH, WITH_STAGES, SWEBENCH = 0.75, 0.70, 0.80
COVERAGE = (0.93, 0.97)
BEST = "best quarter"


def markdown(records: list[dict[str, object]]) -> str:
    """Return a line for each goal, and the mean over the cells whose new models are the best ones."""
    best = [row for row in records if row["split"] == BEST]
    records = [row for row in records if row["split"] != BEST]
    return "\n".join(
        [
            f"{mean_ratio(records, 'ratio', 'in one batch')} (goal {ONE_BATCH:.2f}).",
            f"{mean_ratio(records, 'stages', 'in two stages')} (goal {WITH_STAGES:.2f}).",
            _swebench(records),
            *(_worse(records, name, words) for name, words in (("ratio", "one batch"), ("stages", "two stages"))),
            _covered(records),
            f"{mean_ratio(best, 'ratio', 'in one batch, best quarter')}." if best else "",
        ]
    )


def without_goals(records: list[dict[str, object]]) -> str:
    """Return the means over cells."""
    return f"{mean_ratio(records, 'ratio', 'in one batch')}.\n{mean_ratio(records, 'stages', 'in two stages')}."


def mean_ratio(records: list[dict[str, object]], name: str, words: str) -> str:
    """Say the geometric mean of a ratio over the cells."""
    mean = geometric_mean([row[name] for row in records])
    return f"- Geometric mean of the errors over IRT++'s {words}: {mean}, {len(records)} cells"


def _swebench(records: list[dict[str, object]]) -> str:
    """Say how far SWE-bench is from its goal, cell by cell."""
    own = [f"{_place(row)}: {row['stages']}" for row in records if row["study"] == "swebench_verified"]
    return f"- SWE-bench, two stages (goal: at most {SWEBENCH:.2f} in every cell): {'; '.join(own) or 'not run'}."


def _worse(records: list[dict[str, object]], name: str, words: str) -> str:
    """Name the cells that lose to IRT++ by more than the standard error."""
    lost = [f"{_place(row)}: {row[name]}" for row in records if row[name].value > 1.0 + row[name].error]
    return f"- Above 1.0 by more than the standard error, {words} (goal: none): {'; '.join(lost) or 'none'}."


def _covered(records: list[dict[str, object]]) -> str:
    """Name the cells whose intervals hold too seldom or too often."""
    outside = [
        f"{_place(row)}: {row['coverage']:.3f}" for row in records if not COVERAGE[0] <= row["coverage"] <= COVERAGE[1]
    ]
    low, high = COVERAGE
    return f"- Coverage outside {low} to {high} (goal: none of models like past ones): {'; '.join(outside) or 'none'}."


def _place(row: dict[str, object]) -> str:
    return f"{NAMES[row['study']]} {row['split']} {row['budget']:.0f}"
