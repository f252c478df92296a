"""`itembank run`: run chosen items inside an evaluation harness."""

import click

from itembank.cli.command import Group
from itembank.cli.run_inspect import run_inspect_command
from itembank.cli.run_lm_eval import run_lm_eval_command


@click.group("run", cls=Group)
def run_command() -> None:
    """Run chosen items inside an evaluation harness, and estimate the full-benchmark score.

    \b
      itembank run lm-eval bank -n 100 -o runs/m1 -- --model hf --model_args pretrained=org/m1
      itembank run inspect bank mytask.py -n 100 -o runs/m1 -- --model openai/gpt-5
    """  # noqa: D301 (click's \b keeps the block's lines)


run_command.add_command(run_lm_eval_command)
run_command.add_command(run_inspect_command)
