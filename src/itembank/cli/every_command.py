"""Options that may stand before a command or after it, and words of advice on names that are nearly right."""

from pathlib import Path
from typing import Any, cast

import click

from itembank.cli.option_types import NamedChoice
from itembank.errors import did_you_mean, quoted

CONFIG_GIVEN = "itembank.config_given"
EPILOG = "--config FILE, --debug and --quiet may stand here too: see itembank --help."


def prepare(command: click.Command, prefix: str) -> None:
    """Give a command, and those below it, the options that all have, and name the environment's variables.

    A variable is named after the option, which its parameter may not be. A command is prepared once.
    """
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            prepare(part, f"{prefix}_{name}")
    if command.epilog == EPILOG:
        return
    for parameter in command.params:
        longest = max(parameter.opts, key=len)
        if isinstance(parameter, click.Option) and longest.startswith("--"):
            parameter.envvar = f"{prefix}{longest[1:]}".replace("-", "_").upper()
        if type(parameter.type) is click.Choice:
            parameter.type = NamedChoice(parameter.type.choices, parameter.type.case_sensitive)
    command.params.extend(shared_options(is_hidden=True))
    command.epilog = EPILOG


def shared_options(*, is_hidden: bool = False) -> list[click.Option]:
    """Make the options that stand before a command or after it; only those of the whole program are in its help."""

    def flag(name: str, text: str) -> click.Option:
        return click.Option(
            [f"--{name}"], is_flag=True, help=text, callback=_keep, expose_value=False, is_eager=True, hidden=is_hidden
        )

    config = click.Option(
        ["--config"],
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=_load_config,
        hidden=is_hidden,
        help="TOML file of defaults, one table a command: [calibrate] dims = 5. Before the command or after it.",
    )
    return [
        config,
        flag("debug", "Show a traceback when something fails. Before the command or after it."),
        flag("quiet", "Show no progress and no notes. Before the command or after it."),
    ]


def _keep(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Switch a flag on for the whole program; where it is absent, it may stand elsewhere."""
    if value:
        ctx.find_root().ensure_object(dict)[parameter.name] = True


def _load_config(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    """Take defaults from a TOML file: one table a command, options with dashes or underscores."""
    if value is None:
        return
    is_typed = ctx.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE
    if is_typed and ctx.meta.get(CONFIG_GIVEN):
        raise click.UsageError("--config must be given once, before the command or after it.", ctx)
    ctx.meta[CONFIG_GIVEN] = is_typed
    from itembank.errors import DataError  # noqa: PLC0415
    from itembank.files.documents import read_toml  # noqa: PLC0415

    try:
        content = read_toml(value)
    except DataError as error:
        raise click.BadParameter(str(error)) from error
    root = ctx.find_root()
    defaults = _defaults(cast("click.Group", root.command), content, str(value))
    for name in _path(ctx):
        defaults = defaults.get(name, {})
    ctx.default_map = defaults


def _path(ctx: click.Context) -> list[str]:
    """Names of the commands down to this one, that of the program left out."""
    return [] if ctx.parent is None else [*_path(ctx.parent), str(ctx.command.name)]


def _defaults(group: click.Group, content: dict[str, Any], where: str) -> dict[str, Any]:
    """Turn tables named after commands, with keys named after options, into click's defaults."""
    defaults: dict[str, Any] = {}
    for name, table in content.items():
        command = group.get_command(click.Context(group), name)
        if command is None:
            known = group.list_commands(click.Context(group))
            raise click.BadParameter(
                f"{where}: tables must be named after commands ({', '.join(known)}), got {name!r}."
                f"{did_you_mean(name, known)}"
            )
        if not isinstance(table, dict):
            raise click.BadParameter(f"{where}: {name} must be a table of options: [{name}].")
        if isinstance(command, click.Group):
            defaults[name] = _defaults(command, table, f"{where}: [{name}]")
        else:
            defaults[name] = dict(_default(command, key, setting, where) for key, setting in table.items())
    return defaults


def _default(command: click.Command, key: str, setting: Any, where: str) -> tuple[str, Any]:
    """Find the option a key of the config file stands for."""
    options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
    for option in options:
        names = {name.lstrip("-").replace("-", "_") for name in (*option.opts, option.name or "")}
        if key.replace("-", "_") in names:
            _check_setting(option, setting, f"{where}: [{command.name}] {key}")
            is_one_of_many = option.multiple and not isinstance(setting, list)
            return option.name or key, _as_typed([setting] if is_one_of_many else setting)
    known = [option.opts[-1].lstrip("-") for option in options]
    raise click.BadParameter(
        f"{where}: [{command.name}] has no option {key!r}; it has {', '.join(known)}.{did_you_mean(key, known)}"
    )


def _as_typed(setting: Any) -> Any:
    """Make numbers text, so that they are read as on the command line: 2.5 is no number of items, and inf neither."""
    if isinstance(setting, list):
        return [_as_typed(value) for value in setting]
    return setting if isinstance(setting, bool | str) else str(setting)


def _check_setting(option: click.Option, setting: Any, where: str) -> None:
    """Refuse what no command line could give: tables, dates, and lists where one value is asked for."""
    is_list = isinstance(setting, list) and (option.multiple or option.nargs > 1)
    values = setting if is_list else [setting]
    if not all(isinstance(value, str | int | float) for value in values):
        raise click.BadParameter(f"{where} must be a text, a number or true or false, got {quoted(setting)}.")
