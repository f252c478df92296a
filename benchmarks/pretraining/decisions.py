"""Decision accuracy on the built-in suite: the six methods of IRSL 4.2 and ours, by share of the target's compute."""

import sys
from pathlib import Path

import polars as pl

from itembank.readers.builtin import load_builtin
from itembank_scaling.compute import training_compute
from itembank_scaling.inputs import builtin_bits_per_byte
from itembank_scaling.pages.pretraining_charts import decision_chart
from itembank_scaling.pretraining.decision_study import EVERY_METHOD, decision_curves, mean_over_splits

ALL_TASKS = "mean of all tasks"


def run(n_splits: int, output: Path | None, figure: Path | None) -> None:
    """Print and keep the table, and draw every task."""
    accuracy = load_builtin("bytelms", response="correct")
    responses = {"accuracy": accuracy, "probability": load_builtin("bytelms", response="probability")}
    compute = training_compute(accuracy.models, accuracy.model_ids)
    curves = decision_curves(
        responses,
        compute,
        methods=EVERY_METHOD,
        loss=builtin_bits_per_byte(),
        n_splits=n_splits,
        progress=lambda text, share: print(f"{share:4.0%} {text}", file=sys.stderr),
    )
    by_task = mean_over_splits(curves)
    over_tasks = mean_over_splits(curves, by=("law",))
    for scenario in (ALL_TASKS, *by_task["scenario"].unique(maintain_order=True)):
        own = over_tasks if scenario == ALL_TASKS else by_task.filter(scenario=scenario)
        print(f"\n{scenario}: decision accuracy by share of the target's FLOP\n\n{_table(own)}")
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / "decisions.md").write_text(_table(over_tasks), encoding="utf-8")
        by_task.write_csv(output / "decisions.csv", float_precision=5)
    if figure:
        decision_chart(by_task).save(figure)


def _table(decisions: pl.DataFrame) -> str:
    """One line a method, one column a share."""
    laws = decisions["law"].unique(maintain_order=True).to_list()
    points = decisions.select("share_of_target", "decision_accuracy", "law").sort("share_of_target")
    found = {law: points.filter(law=law).drop("law").rows() for law in laws}
    shares = [share for share, _ in found[laws[0]]]
    lines = ["| method, share of the target's FLOP | " + " | ".join(f"{100 * share:.2g} %" for share in shares) + " |"]
    lines += ["|---|" + "---|" * len(shares)]
    lines += [f"| {law} | " + " | ".join(f"{value:.2f}" for _, value in found[law]) + " |" for law in laws]
    return "\n".join(lines)
