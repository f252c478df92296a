"""`itembank scaling`: forecasts of scores with more training compute, or with more samples of each item.

Each law has its file; the modules imported here load click alone, the libraries load when a command runs.
"""

import click

from itembank.cli.command import Group
from itembank_scaling.cli.scaling_pretrain import pretrain_command
from itembank_scaling.cli.scaling_test_time import test_time_command
from itembank_scaling.cli.scaling_transfer import transfer_command


@click.group("scaling", cls=Group)
def scaling_command() -> None:
    """Forecast scores with more training compute, or with more samples of each item.

    itembank scaling pretrain responses.parquet --target-flops 1e21
    itembank scaling test-time samples.parquet --k 1,10,100,1000
    itembank scaling transfer responses.parquet --source arc_easy --target arc_challenge
    """


scaling_command.add_command(pretrain_command)
scaling_command.add_command(test_time_command)
scaling_command.add_command(transfer_command)
