"""The `itembank` command: loads a subcommand's module only when it is called."""

import errno
import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

COMMANDS = {
    "import": ("itembank.cli.import_results", "Turn per-item results into a response file."),
    "calibrate": ("itembank.cli.calibrate", "Fit item parameters and write a bank."),
    "info": ("itembank.cli.info", "Say what a bank holds."),
    "select": ("itembank.cli.select", "Choose the items to run on a new model."),
    "estimate": ("itembank.cli.estimate", "Estimate full-benchmark scores from some responses."),
    "study": ("itembank.cli.study", "Compare selections and estimates by leaving models out."),
    "compare": ("itembank.cli.compare", "Say which of two models, or of many, is better."),
    "plan": ("itembank.cli.plan", "Say how many items a question needs."),
    "session": ("itembank.cli.session", "Test a model adaptively: ask for items, tell the answers."),
    "replay": ("itembank.cli.replay", "Send recorded models through adaptive sessions."),
    "scaling": ("itembank.cli.scaling", "Say what more compute, or more samples, will buy."),
    "simulate": ("itembank.cli.simulate", "Make responses of known truth."),
    "diagnose": ("itembank.cli.diagnose", "Say what responses tell of the benchmark itself."),
    "quickstart": ("itembank.cli.quickstart", "See the whole job on built-in data."),
}


EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_IMPRECISE = 3
EXIT_INTEGRITY = 4


class LazyGroup(click.Group):
    """A group that knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Names in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name][0]).command
        _name_environment(command, f"ITEMBANK_{cmd_name}")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands from the table above, importing none."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _name_environment(command: click.Command, prefix: str) -> None:
    """Name each option's environment variable after the option, which its parameter may not be."""
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            _name_environment(part, f"{prefix}_{name}")
    for parameter in command.params:
        longest = max(parameter.opts, key=len)
        if isinstance(parameter, click.Option) and longest.startswith("--"):
            parameter.envvar = f"{prefix}{longest[1:]}".replace("-", "_").upper()


def _load_config(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    """Take defaults from a TOML file: one table a command, options with dashes or underscores."""
    if value is None:
        return
    from itembank.data.documents import read_toml  # noqa: PLC0415
    from itembank.errors import DataError  # noqa: PLC0415

    try:
        content = read_toml(value)
    except DataError as error:
        raise click.BadParameter(str(error)) from error
    ctx.default_map = _defaults(cli, content, str(value))


def _defaults(group: click.Group, content: dict[str, Any], where: str) -> dict[str, Any]:
    """Turn tables named after commands, with keys named after options, into click's defaults."""
    defaults: dict[str, Any] = {}
    for name, table in content.items():
        command = group.get_command(click.Context(group), name)
        if command is None:
            known = ", ".join(group.list_commands(click.Context(group)))
            raise click.BadParameter(f"{where}: tables must be named after commands ({known}), got {name!r}.")
        if not isinstance(table, dict):
            raise click.BadParameter(f"{where}: {name} must be a table of options: [{name}].")
        if isinstance(command, click.Group):
            defaults[name] = _defaults(command, table, f"{where}: [{name}]")
        else:
            defaults[name] = dict(_default(command, key, setting, where) for key, setting in table.items())
    return defaults


def _default(command: click.Command, key: str, setting: Any, where: str) -> tuple[str, Any]:
    """Find the option a key of the config file stands for."""
    for parameter in command.params:
        names = {option.lstrip("-").replace("-", "_") for option in (*parameter.opts, parameter.name or "")}
        if isinstance(parameter, click.Option) and key.replace("-", "_") in names:
            _check_setting(parameter, setting, f"{where}: [{command.name}] {key}")
            is_one_of_many = parameter.multiple and not isinstance(setting, list)
            return parameter.name or key, _as_typed([setting] if is_one_of_many else setting)
    options = ", ".join(
        parameter.opts[-1].lstrip("-") for parameter in command.params if isinstance(parameter, click.Option)
    )
    raise click.BadParameter(f"{where}: [{command.name}] has no option {key!r}; it has {options}.")


def _as_typed(setting: Any) -> Any:
    """Make numbers text, so that they are read as on the command line: 2.5 is no number of items, and inf neither."""
    if isinstance(setting, list):
        return [_as_typed(value) for value in setting]
    return setting if isinstance(setting, bool | str) else str(setting)


def _check_setting(option: click.Option, setting: Any, where: str) -> None:
    """Refuse what no command line could give: tables, dates, and lists where one value is asked for."""
    from itembank.errors import quoted  # noqa: PLC0415

    is_list = isinstance(setting, list) and (option.multiple or option.nargs > 1)
    values = setting if is_list else [setting]
    if not all(isinstance(value, str | int | float) for value in values):
        raise click.BadParameter(f"{where} must be a text, a number or true or false, got {quoted(setting)}.")


@click.group(
    cls=LazyGroup,
    context_settings={"auto_envvar_prefix": "ITEMBANK", "help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="itembank", message="%(package)s %(version)s")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_load_config,
    help="TOML file of defaults, one table a command: [calibrate] dims = 5.",
)
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
@click.option("--quiet", is_flag=True, help="Show no progress and no notes.")
@click.pass_context
def cli(ctx: click.Context, *, debug: bool, quiet: bool) -> None:
    """Know a model's full-benchmark score from a handful of items.

    The usual order: import past results, calibrate a bank, select items, run them on the
    new model with your own harness, estimate.

    \b
      itembank import table results.csv -o responses.parquet
      itembank calibrate responses.parquet -o bank
      itembank select bank -n 100 -o selection.json
      itembank estimate bank new-model.csv --selection selection.json

    Or see it all at once: itembank quickstart
    """  # noqa: D301 (click's \b keeps the block's lines)
    ctx.obj = {"debug": debug, "quiet": quiet}


def main() -> None:
    """Run the command line; exit 0 done, 1 failed, 2 usage, 3 precision not reached, 4 integrity check failed."""
    debug = "--debug" in sys.argv or os.environ.get("ITEMBANK_DEBUG", "") not in {"", "0", "false"}
    try:
        code = cli.main(standalone_mode=False)  # what a command exits with (ctx.exit) comes back as a number
    except click.Abort:
        click.echo("Aborted.", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        if debug:
            raise
        _fail(error)
    else:
        if isinstance(code, int) and code:
            sys.exit(code)


def _fail(error: Exception) -> None:
    """Print one error, without a traceback, and exit 1."""
    from itembank.errors import IntegrityError, ItembankError, ParameterError  # noqa: PLC0415

    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        text = (
            "there is not enough memory for this. Check that model_id and item_id are those columns, take fewer models "
            f"or items, or use a larger machine{f' ({error})' if str(error) else ''}."
        )
    elif isinstance(error, ItembankError | OSError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error} (run with --debug for the traceback)"
    click.echo(f"Error: {text}", err=True)
    if isinstance(error, IntegrityError):
        sys.exit(EXIT_INTEGRITY)
    sys.exit(EXIT_USAGE if isinstance(error, ParameterError) else EXIT_FAILED)
