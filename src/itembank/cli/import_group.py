"""`itembank import` with all its commands: those of `import_results`, and those that have a file of their own."""

from itembank.cli import import_json, import_names, import_public
from itembank.cli.import_results import command

__all__ = ["command"]

for one in (import_json.command, import_public.command, import_names.command):
    command.add_command(one)
