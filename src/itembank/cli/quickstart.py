"""`itembank quickstart`: the whole job on built-in data; `itembank sample-data`: files to begin with."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import itembank as ib
from itembank.cli import options
from itembank.cli.options import typed_command, write_report
from itembank.cli.render import note, working
from itembank.cli.signatures import verb
from itembank.errors import DataWarning, MissingDependencyError, ParameterError, shell_word, shown
from itembank.files.atomic import adding_to_folder

if TYPE_CHECKING:
    from itembank.numerics.arrays import FloatArray

HELD_OUT = 0.25
"""Of the training runs."""


class Strategy(NamedTuple):
    """A way to choose items together with a way to estimate from them."""

    name: str
    selection: str
    method: str
    is_by_chance: bool = False  # Whether the items are


STRATEGIES = (
    Strategy("random sampling", "stratified", "mean", is_by_chance=True),
    Strategy("anchor points", "anchor-irt", "weighted"),
    Strategy("gp-IRT", "anchor-irt", "gp-irt"),
    Strategy("V-optimal", "v-optimal", "auto"),
    Strategy("itembank's default", "auto", "auto", is_by_chance=True),
)
"""The last one's items and estimates are written."""
N_ITEMS = 100
N_DRAWS = 5
"""Of items that are drawn by chance: all models share a draw, and so its luck."""
FILES = ("bank", "selection.json", "new-models.parquet", "estimates.csv")


@verb("quickstart")
def quickstart_command(
    *,
    output: Annotated[Path, options.folder("bank, selection, answers, estimates and pages")] = Path("quickstart"),
    out: options.Out,
) -> None:
    """Run the whole job on built-in data, in less than a minute.

    It takes the answers of 280 language models to 1,820 items of 16 tasks. The models are tiny and our own: five
    checkpoints of each of 56 training runs. A quarter of the runs is held out, with all their checkpoints. The others
    calibrate a bank, 100 items are chosen, and the scores of the held-out models are estimated from these items alone.
    The table says how far each method is from the true scores.

      itembank quickstart
      itembank quickstart -o somewhere --format json
    """
    import polars as pl

    from itembank.bank.bank_files import check_bank_destination

    there = [name for name in FILES if (output / name).exists()]
    if there and len(there) < len(FILES):
        raise ParameterError(
            f"{output} must be a new folder or that of an earlier quickstart, but it holds {shown(there)} of something "
            "else. Choose another folder (-o)."
        )
    check_bank_destination(output / FILES[0], overwrite=True)
    with working("quickstart") as advance:
        past, new = split_runs(ib.load_builtin("bytelms"))
        with warnings.catch_warnings():  # late checkpoints of one run answer alike, as they should
            warnings.filterwarnings("ignore", ".* models answer like another one", DataWarning)
            bank = ib.calibrate(past, progress=advance)
        true = bank.targets.with_overall(bank.targets.scenario_means(new.responses))
        rows = []
        for strategy in STRATEGIES:
            # the last draw is the first one, which is written
            for seed in reversed(range(N_DRAWS if strategy.is_by_chance else 1)):
                chosen = ib.select(bank, N_ITEMS, method=strategy.selection, rng=seed)
                asked = new.take(items=new.item_indices(chosen.item_ids))
                estimates = ib.estimate(bank, asked, selection=chosen, method=strategy.method)
                rows.append(_errors(strategy, chosen.method, estimates, true[:, -1]))
    named = pl.DataFrame(rows).group_by("strategy", "selection", "method", maintain_order=True)
    rows = named.agg(pl.all().mean(), n_draws=pl.len()).to_dicts()
    if out.is_table:
        rows = [_table_row(row) for row in rows]
    title = (
        f"Overall score of {new.n_models} unseen models estimated from {N_ITEMS} of {bank.n_items:,} items; errors in "
        "points"
    )
    out.rows(rows, "quickstart", title=title)
    note(
        f"Items drawn by chance: means over {N_DRAWS} draws, of which the first is written. The models are tiny "
        "language models of our own. No checkpoint of a held-out training run is in the bank."
    )
    _write(output, bank, chosen, asked, estimates=estimates, true=true)


def split_runs(responses: "ib.ResponseMatrix", seed: int = 0) -> "tuple[ib.ResponseMatrix, ib.ResponseMatrix]":
    """Return the models of three quarters of the training runs, and those of the others."""
    import numpy as np

    runs = responses.models["mixture"] + "/" + responses.models["size"]
    names = runs.unique(maintain_order=True)
    order = np.random.default_rng(seed).permutation(len(names))
    is_new = runs.is_in(names.gather(order[: round(HELD_OUT * len(names))]).implode()).to_numpy()
    past, new = (responses.take(models=np.flatnonzero(one)) for one in (~is_new, is_new))
    return past, new


def _errors(strategy: Strategy, selector: str, found: "ib.ScoreEstimates", true: "FloatArray") -> dict[str, Any]:
    """Return how far estimates of the overall score are from the truth, in points."""
    import numpy as np

    from itembank.numerics.ties import spearman

    value, low, high = found.value[:, -1], found.low[:, -1], found.high[:, -1]
    points = 100.0 * np.abs(value - true)
    return {
        "strategy": strategy.name,
        "selection": selector,
        "method": found.method,
        "mean_absolute_error": float(points.mean()),
        "worst_error": float(points.max()),
        "spearman": float(spearman(true[None], value[None])[0]),
        "coverage": float(np.mean((low <= true) & (true <= high))),
        "level": found.level,
    }


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    """Round for reading."""
    return {
        "strategy": row["strategy"],
        "items by": row["selection"],
        "score by": row["method"],
        "mean error": f"{row['mean_absolute_error']:.1f}",
        "worst error": f"{row['worst_error']:.1f}",
        "rank correlation": f"{row['spearman']:.3f}",
        f"inside {100 * row['level']:g} % interval": f"{100 * row['coverage']:.0f} %",
    }


def _write(
    folder: Path,
    bank: "ib.Bank",
    selection: "ib.Selection",
    asked: "ib.ResponseMatrix",
    *,
    estimates: "ib.ScoreEstimates",
    true: "FloatArray",
) -> None:
    """Write what later commands take, and the pages, and say what to try next."""
    import polars as pl

    from itembank.responses.response_files import write_responses

    places = [folder / name for name in FILES]
    with adding_to_folder(folder) as made:
        files = [made / name for name in FILES]
        bank.save(files[0])
        selection.save(files[1])
        write_responses(asked, files[2])
        table = pl.DataFrame(estimates.rows())  # every target of the first model, then of the next, like `true`
        table.insert_column(2, pl.Series("true", true.ravel())).write_csv(files[3])
    note("Written: " + ", ".join(map(str, places)))
    try:
        from itembank.pages import bank_page, estimates_page

        bank, command = ib.load_bank(places[0]), typed_command()  # of its folder, which commands on the pages name
        page = estimates_page(
            *(bank, asked, estimates, selection), files=[str(places[2])], selection_file=str(places[1]), command=command
        )
        write_report(page, folder / "estimates.html")
        write_report(bank_page(bank, command=command), folder / "bank.html")
    except MissingDependencyError as error:
        note(f"No pages were written: {error}")
    own, chosen, results = map(shell_word, places[:3])
    note(f"Next: itembank info {own}")
    note(f"      itembank estimate {own} {results} --selection {chosen}")


@verb("sample-data")
def sample_data_command(
    *, output: Annotated[Path, options.folder("the two files")] = Path("sample"), out: options.Out
) -> None:
    """Write example results of past models and of a new one, to try the commands on.

    past.csv has the answers of 110 small language models to 680 items of five tasks, new-model.csv those of another
    model. The models are tiny, and this project trained them. The columns are those of your own results: model_id,
    item_id, scenario, response.

      itembank sample-data
      itembank import sample/past.csv -o responses.parquet
    """
    from itembank.readers.builtin import NEW, PAST, write_sample_data

    past, new = write_sample_data(output)
    rows = [
        {"file": str(output / name), "models": responses.n_models, "items": responses.n_items}
        for name, responses in ((PAST, past), (NEW, new))
    ]
    title = f"Wrote answers of {past.n_models} past models and of a new one to {past.n_items} items"
    out.rows(rows, "sample-data", title=title)
    note(f"Next: itembank import {shell_word(output / PAST)} -o responses.parquet")
