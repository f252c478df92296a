"""`itembank run`: run chosen items inside an evaluation harness; each harness has a file."""

import click

from itembank.cli.command import Group
from itembank_harnesses.cli.run_harbor import run_harbor_command
from itembank_harnesses.cli.run_inspect import run_inspect_command
from itembank_harnesses.cli.run_lm_eval import run_lm_eval_command


@click.group("run", cls=Group)
def run_command() -> None:
    """Run chosen items inside an evaluation harness, and estimate the full-benchmark score.

    itembank run lm-eval bank -n 100 -o runs/m1 -- --model hf --model_args pretrained=org/m1
    itembank run inspect bank mytask.py -n 100 -o runs/m1 -- --model openai/gpt-5
    itembank run harbor bank terminal-bench@2.0 -n 30 -o runs/a1 -- -a terminus-2 -m openai/gpt-5
    itembank run lm-eval bank --gate gate -o runs/int8 -- --model hf --model_args pretrained=org/m1-int8
    """


for one in (run_lm_eval_command, run_inspect_command, run_harbor_command):
    run_command.add_command(one)
