"""`itembank scaling`: what more training compute, or more samples of each item, will buy.

Each law has its file; the modules imported here load click alone, the libraries load when a command runs.
"""

import click


@click.group("scaling")
def command() -> None:
    """Say what more training compute, or more samples of each item, will buy.

    \b
      itembank scaling --help
    """  # noqa: D301
