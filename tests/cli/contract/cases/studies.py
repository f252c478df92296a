"""Cases of studies."""

from tests.cli.contract.case import Case, Mode, options

_STUDY, _PREDICTION = ("study",), ("prediction",)
_SOME = ("--metric", "--target", "--against", "--figure", "--kind", "--set")
_OF_PREDICTION = ("--set", "--tasks", "--show", "--against", "--assessor", "--figure", "--format", "--metric")
_DRAWN = ("--kind", "--figure", "--target", "--assessor")
_DRAWN_PREDICTION = ("--kind", "--figure", "--set", "--tasks", "--assessor")
_BOTH = "--assessor '2pl, random' --assessor 'task-mean, random'"
_VALUES = options(
    "--metric spearman --against random/gp-irt --target part-0 "
    "--set extrapolation --tasks 3 --show reach --figure out/other.png --kind rank --format json"
) | {"--assessor": "--assessor '2pl, random'"}
_PREDICTED = {
    "--against": "--against '2pl, random'",
    "--tasks": "--tasks 1",
    "--kind": "--kind cost",
    "--figure": "--figure out/p.png",
}


def _only(about):
    """Values for prediction studies of these options."""
    return {name: value for name, value in _PREDICTED.items() if name in about}


CASES = {
    "study run": Case(
        modes={
            "done": Mode("study.toml -o out/study --jobs 1", brings=_STUDY),
            "prediction, done": Mode("prediction.toml -o out/prediction --jobs 1", brings=_PREDICTION),
        },
        values=options("--output out/other --jobs 2"),
        never={"--jobs": "a study finds the same numbers in any number of processes"},
    ),
    "study table": Case(
        modes={
            "comparison": Mode("study", about=(*_SOME, "--format")),
            "comparison, csv": Mode("study --format csv", about=_SOME),
            "ratios": Mode("study --against random/weighted", about=("--against", "--metric", "--target")),
            **{
                name: Mode(f"prediction {words}", about=_OF_PREDICTION, values=_only(_OF_PREDICTION))
                for name, words in {
                    "prediction": "",
                    "prediction, csv": "--format csv",
                    "prediction, tasks": "--show tasks",
                    "prediction, cost": "--show cost",
                    "differences": "--against 'task-mean, random'",
                }.items()
            },
            **{
                f"figure of {kind}": Mode(f"study --kind {kind} --figure out/f.png", about=_DRAWN)
                for kind in ("error", "rank", "spread", "coverage", "width")
            },
            **{
                f"figure of {kind}": Mode(
                    f"prediction --kind {kind} --figure out/f.png{more}",
                    about=_DRAWN_PREDICTION,
                    values={**_only(_DRAWN_PREDICTION), "--kind": f"--kind {other}"},
                )
                for kind, other, more in (
                    ("items", "cost", ""),
                    ("cost", "items", ""),
                    ("tasks", "models", f" {_BOTH}"),
                    ("models", "tasks", f" {_BOTH}"),
                )
            },
        },
        values=_VALUES,
        no_effect={("figure of rank", "--kind"): "it is this kind already"},
        stops={**{(f"figure of {kind}", "--assessor"): "two assessors are compared" for kind in ("tasks", "models")}},
    ),
}
