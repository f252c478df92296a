"""Scores that lm-evaluation-harness states in the results file of a run."""

from collections.abc import Iterator
from pathlib import Path

from itembank.files.documents import read_json
from itembank.readers.lm_eval_files import RESULTS
from itembank.readers.public.sources import LEADERBOARD_METRICS

PREFERRED = tuple(f"{name},none" for name in LEADERBOARD_METRICS)


def lm_eval_published(folder: Path) -> Iterator[tuple[str, str | None, float]]:
    """Give the score of each task of each run below a folder, in the metric the leaderboard takes."""
    for path in sorted(folder.rglob("results_*.json")):
        if RESULTS.fullmatch(path.name) is None:
            continue
        content = read_json(path)
        results = content.get("results", {}) if isinstance(content, dict) else {}
        model = content.get("model_name") if isinstance(content, dict) else None
        for task, scores in results.items() if model else ():
            metric = next((one for one in PREFERRED if one in scores), None)
            if metric is not None:
                yield str(model), str(task), float(scores[metric])
