"""Tables of prediction studies of responses between 0 and 1: ``python -m benchmarks.prediction_families SET``.

SET is alpacaeval2 (probabilities, the judge's preferences) or livecodebench (counts of ten attempts). The study is
benchmarks/studies/prediction_SET.toml; it runs in DIR/study (``-o DIR``), and goes on there when it was stopped. The
table has the error of every assessor in points; each is for the most calibration tasks of the study.
"""

import argparse
from pathlib import Path

from benchmarks.prediction import STUDIES, _cells, _markdown
from itembank_studies.run import run_prediction
from itembank_studies.study_files import load_prediction

BASELINES = ("task-mean-eb, random", "ridge, random", "2pl, random")
MODELS = {"alpacaeval2": ("nested", "nested-binary", "binary"), "livecodebench": ("nested", "variational", "agreeing")}
"""Item models of each study, each asked by random items and adaptively."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=list(MODELS))
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    name = f"prediction-{arguments.set}"
    output: Path = arguments.output or Path("benchmarks/results") / name
    spec = load_prediction(STUDIES / f"prediction_{arguments.set}.toml")
    result = run_prediction(spec, output / "study", n_jobs=arguments.jobs)
    most = max(result.curves["n_calibration_tasks"].to_list())
    rows = (*BASELINES, *(f"{one}, {how}" for one in MODELS[arguments.set] for how in ("random", "adaptive v-optimal")))
    table = _markdown(
        _cells(result.curves.filter(n_calibration_tasks=most), "mae", rows), factor=100.0, form=".1f", least=True
    )
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{name}.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
