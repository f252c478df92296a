"""All options of all commands, as click knows them."""

import click

from itembank.cli.main import cli


def commands():
    return {words: one for words, one in _walk(cli, ()) if not words or not isinstance(one, click.Group)}


def options_of(command):
    """The options of a command by their longest names; hidden ones are those of `itembank` itself."""
    shown = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    return {max(one.opts, key=len): one for one in shown}


def names_of(option):
    """What a message may call an option: any of its names, or that of the argument it becomes in Python."""
    return (*option.opts, *option.secondary_opts, f"{option.name}=", f"{option.name} must")


def _walk(command, path):
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _walk(command.get_command(context, name), (*path, name))
