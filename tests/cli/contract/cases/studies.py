"""Cases of studies."""

from tests.cli.contract.case import Case, Mode
from tests.cli.contract.cases.reading import PAGES

_RUN = {
    "--output": "-o out/other",
    "--jobs": "--jobs 2",
    "--no-resume": "--no-resume",
    "--report": "--report out/page.html",
}
_STUDY, _PREDICTION = ("study",), ("prediction",)
_COMPARED = ("error", "rank", "spread", "coverage", "width")
_PREDICTED = ("items", "cost", "tasks", "models", "choices")

CASES = {
    "study run": Case(
        modes={"done": Mode("study.toml -o out/study --jobs 1", brings=_STUDY)},
        values=_RUN,
        never={**PAGES, "--jobs": "a study finds the same numbers in any number of processes"},
        stops={("done", "--no-resume"): "is a study already"},
    ),
    "study predict": Case(
        modes={"done": Mode("prediction.toml -o out/prediction --jobs 1", brings=_PREDICTION)},
        values=_RUN,
        never={**PAGES, "--jobs": "a study finds the same numbers in any number of processes"},
        stops={("done", "--no-resume"): "is a study already"},
    ),
    "study table": Case(
        modes={
            "comparison": Mode("study"),
            "comparison, csv": Mode("study --format csv"),
            "ratios": Mode("study --against random weighted"),
            "prediction": Mode("prediction"),
            "prediction, csv": Mode("prediction --format csv"),
            "prediction, tasks": Mode("prediction --show tasks"),
            "prediction, tasks, csv": Mode("prediction --show tasks --format csv"),
            "prediction, cost": Mode("prediction --show cost"),
            "differences": Mode("prediction --against-assessor 'task-mean, random'"),
        },
        values={
            "--metric": "--metric spearman",
            "--against": "--against random gp-irt",
            "--target": "--target part-0",
            "--set": "--set extrapolation",
            "--tasks": "--tasks 3",
            "--show": "--show reach",
            "--against-assessor": "--against-assessor '2pl, random'",
            "--format": "--format json",
        },
        stops={
            (f"prediction, {one}", "--against-assessor"): "--show cannot go" for one in ("tasks", "tasks, csv", "cost")
        },
    ),
    "study plot": Case(
        modes={
            **{kind: Mode(f"study --kind {kind} --figure out/f.png") for kind in _COMPARED},
            **{
                kind: Mode(
                    f"prediction --kind {kind} --figure out/f.png", values={"-n": "-n 1", "--tasks": "--tasks 1"}
                )
                for kind in ("items", "cost", "choices")
            },
            **{
                kind: Mode(
                    f"prediction --kind {kind} --assessor '2pl, random' --assessor 'task-mean, random' "
                    "--figure out/f.png",
                    values={
                        "-n": "-n 1",
                        "--assessor": "--assessor '2pl, adaptive v-optimal'",
                        "--set": "--set interpolation",
                        "--tasks": "--tasks 1",
                    },
                )
                for kind in ("tasks", "models")
            },
            "replacing": Mode(
                "study --kind error --figure out/old.png", brings=("old.png",), codes=(1,), about=("--force",)
            ),
        },
        values={
            "--kind": "--kind rank",
            "--figure": "--figure out/other.png",
            "--target": "--target part-0",
            "--split": "--split random",
            "--selector": "--selector random",
            "--estimator": "--estimator weighted",
            "--set": "--set extrapolation",
            "--tasks": "--tasks 3",
            "--assessor": "--assessor 'task-mean, random' --assessor '2pl, random'",
            "-n": "-n 6",
            "--force": "--force",
        },
        no_effect={
            **{(kind, "--force"): "nothing stands there" for kind in (*_COMPARED, *_PREDICTED)},
            ("rank", "--kind"): "it is this kind already",
        },
        stops={(kind, "--assessor"): "two assessors are compared" for kind in ("tasks", "models")},
    ),
}  # fmt: skip
