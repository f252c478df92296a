"""`itembank export lm-eval-tasks`: chosen items as tasks of lm-evaluation-harness."""

from pathlib import Path

import click

from itembank.cli.command import Command
from itembank.cli.options import ANY_PATH, EXISTING_FOLDER, FILE, bank_argument, option, refuse_unused
from itembank.cli.publishing_options import include_data_option, note_columns, note_files, note_tasks
from itembank.cli.render import note, progress, warnings_as_notes


@click.command("lm-eval-tasks", cls=Command)
@bank_argument
@option("--selection", "The items to export.", FILE, required=True)
@option("-o --output DIR", "The folder to make; it must be new or empty.", ANY_PATH, required=True)
@option("--name", "Name of the group of tasks.", default="tiny")
@option(
    "--include-path DIR",
    "Folder of the original tasks, where lm_eval does not bring them. What the chosen tasks need of it is copied.",
    EXISTING_FOLDER,
)
@include_data_option
def export_lm_eval_command(
    *, bank: Path, selection: Path, output: Path, name: str, include_path: Path | None, include_data: bool
) -> None:
    """Write chosen items as tasks that lm_eval runs by itself, with the estimate among its metrics.

    For launchers that you cannot change. Prompts are those of the full run. The bank goes into the folder with the
    responses of its models, so publish it only where you may publish these.

    \b
      itembank export lm-eval-tasks bank --selection selection.json -o tasks --name tiny
      lm_eval --model hf --model_args pretrained=... --include_path tasks --tasks tiny --log_samples --output_path out
      itembank estimate bank out --selection selection.json
    """  # noqa: D301
    from itembank.bank.bank_files import load_bank  # noqa: PLC0415
    from itembank.bank.selections import Selection  # noqa: PLC0415
    from itembank.harnesses.lm_eval.export import export_tasks  # noqa: PLC0415

    chosen = Selection.load(selection)
    refuse_unused(("include_data", include_path is not None, "--include-path"))
    with warnings_as_notes(), progress("export") as report:
        done = export_tasks(
            load_bank(bank),
            chosen,
            output,
            name=name,
            include_path=include_path,
            include_data=include_data,
            progress=report,
        )
    note_files(done.files)
    note_columns((), done.left_out)
    note_tasks(done.notes)
    note(f"{chosen.n_items} items in {len(done.tasks)} tasks of the group {name!r} written to {output}.")
    note(f"Next: lm_eval --include_path {output} --tasks {name} --log_samples --output_path out --model ...")
