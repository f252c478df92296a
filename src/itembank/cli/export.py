"""`itembank export`: write what other tools read."""

import click

from itembank.cli.command import Group
from itembank.cli.export_eee import export_eee_command
from itembank.cli.export_lm_eval import export_lm_eval_command


@click.group("export", cls=Group)
def export_command() -> None:
    """Write chosen items or estimates in the form that another tool reads.

    \b
      itembank export lm-eval-tasks bank --selection selection.json -o tasks --name tiny
    """  # noqa: D301 (click's \b keeps the block's lines)


export_command.add_command(export_lm_eval_command)
export_command.add_command(export_eee_command)
