"""`build_ready`: from a recipe to a bank that everybody can name, ``bank:name``."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from itembank.bank.bank_files import check_bank_destination, load_bank, save_bank
from itembank.bank.bank_places import BESIDE_BANK, built_folder
from itembank.bank.banks import Bank
from itembank.calibration.build import calibrate
from itembank.calibration.calibration_specs import CalibrationSpec
from itembank.calibration.dimensions import with_suitable_dims
from itembank.errors import DataError, DataWarning, remedy, shown, warn
from itembank.files.atomic import replacing_folder, write_text
from itembank.files.documents import read_document
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix
from itembank_harnesses.public.fetch import fetch_public, fetched_state, hub_models, public_folder
from itembank_harnesses.public.read_public import PublicResponses, read_public
from itembank_harnesses.public.sources import Fetched
from itembank_living.publishing.publishable import for_publication, question_columns
from itembank_living.publishing.recipes import Recipe, find_recipe, read_recipe
from itembank_living.publishing.without_responses import has_simple_curves, without_responses


@dataclass(frozen=True, slots=True)
class ReadyBank:
    """What was built.

    Attributes
    ----------
    name : str
        Without its ``bank:``.
    folder : Path
    bank : Bank
        Without past models' responses.
    fetched : Fetched or None
        The state of the source; None if files of another origin were read.
    left_out : tuple of str
        Models that were read and are not in the bank.
    """

    name: str
    folder: Path
    bank: Bank
    fetched: Fetched | None
    left_out: tuple[str, ...]


def build_ready(
    recipe: str | Path,
    *,
    files: str | Path | None = None,
    into: str | Path | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = silent,
) -> ReadyBank:
    """Build the bank of a recipe: fetch past results, read and check them, calibrate, and keep it without responses.

    Parameters
    ----------
    recipe : str or path
        The name of a recipe of the package, or a TOML file (`Recipe`); the bank gets the file's name.
    files : path or None
        A folder with the source's files, in place of fetching them.
    into : path or None
        Where to put what is fetched. None: a folder of the user's cache. What was interrupted goes on there.
    overwrite : bool
        Replace the bank of this name that was built before.
    progress : function

    Returns
    -------
    ReadyBank
        That `load_bank` and every command take as ``bank:name`` from here on.

    Raises
    ------
    BankError
        When the bank is there already.
    DataError
        When the results cannot be fetched or read, or too few models and items are left.
    ParameterError
        When there is no such recipe, or the file is not one.
    IntegrityError
        When a file is not the one that the recipe names by its SHA-256.
    MissingDependencyError
        For files of the Hugging Face Hub, when huggingface_hub is not installed.
    """
    name, path = find_recipe(recipe)
    known = read_recipe(path)
    source = known.public(name)
    folder = built_folder() / name
    check_bank_destination(folder, overwrite=overwrite)
    if files is None:
        target, report = public_folder(source.name) if into is None else Path(into), part_of(progress, 0.0, 0.3)
        try:
            models = known.models or (hub_models(source, known.n_models) if known.n_models else ())
            files = fetch_public(source, target, models=models, progress=report)
        except DataError as error:
            how = remedy("files='FOLDER'", "--from FOLDER")
            raise DataError(
                f"{error} A bank is built without a connection from files that were fetched elsewhere ({how}: "
                f"{source.layout}), and banks that are built need none."
            ) from error
    state = fetched_state(Path(files))
    if state is not None and known.revision and state.revision != known.revision:
        raise DataError(
            f"{files} must hold the state of {source.address} that {path} names, {known.revision}, got "
            f"{state.revision or 'an unknown one'}. Fetch it; or take another revision into a recipe of your own."
        )
    spec = replace(ReadingSpec(), **source.choices)
    found = read_public(source, files, spec=spec, progress=part_of(progress, 0.3, 0.4))
    responses = _checked(known, found)
    left_out = tuple(sorted(set(found.responses.model_ids) - set(responses.model_ids)))
    if left_out:
        warn(f"{len(left_out)} of {found.responses.n_models} models are left out: {shown(left_out)}.", DataWarning)
    bank = ready_bank(known, responses, progress=part_of(progress, 0.4, 1.0))
    with replacing_folder(folder) as new:
        save_bank(bank, new)
        # the recipe, with the state of the source that was read
        read = replace(state or Fetched(), address=source.address, licence=source.licence)
        told = [f"{name} = {json.dumps(value)}" for name, value in asdict(read).items()]
        text = read_document(path).partition("\n[fetched]")[0].rstrip()
        write_text(new / BESIDE_BANK, "\n".join([text, "", "[fetched]", *told, ""]))
    return ReadyBank(name, folder, load_bank(folder), state, left_out)


def ready_bank(
    recipe: Recipe, responses: ResponseMatrix, *, excluded: Collection[str] = (), progress: ProgressCallback = silent
) -> Bank:
    """Calibrate a bank as a recipe says, and return it without responses, with the recipe's numbers of items to run.

    Items that are `excluded` count in the score and are not among those to run.
    """
    spec: CalibrationSpec = recipe.calibrate
    dims = recipe.dims if spec.n_dims == 1 else spec.n_dims
    if dims == "auto":
        spec, _ = with_suitable_dims(responses, spec, progress=part_of(progress, 0.0, 0.25))
    elif dims > spec.n_dims:
        spec = replace(spec, item_model="mirt", n_dims=dims)
    report = part_of(progress, 0.25, 0.5)
    whole = calibrate(responses, spec, within=recipe.within, across=recipe.across, progress=report)
    kept = for_publication(whole, dropped=question_columns(whole))
    fewest = kept.targets.n_scenarios
    sizes = [size for size in recipe.sizes if fewest <= size < kept.n_items]
    if len(sizes) < len(recipe.sizes):
        sizes = sizes or [max(fewest, kept.n_items // 2)]
        warn(
            f"of the recipe's sizes, {', '.join(map(str, recipe.sizes))}, those from {fewest} to {kept.n_items - 1} "
            f"can be chosen: errors are measured for {', '.join(map(str, sizes))} items.",
            DataWarning,
        )
    chosen = []
    for number, size in enumerate(sizes):
        progress("choosing items", 0.5 + 0.3 * number / len(sizes))
        chosen.append(select(kept, size, rng=0, excluded=excluded))
    # a smaller one has all items, so that other numbers of items can be chosen, too
    only_chosen = kept.n_items > 1000 and has_simple_curves(kept.parameters)
    report = part_of(progress, 0.8, 1.0)
    return without_responses(
        kept, selections=chosen, only_chosen=only_chosen, keep_scores=True, keep_names=recipe.names, progress=report
    )


def _checked(recipe: Recipe, found: PublicResponses) -> ResponseMatrix:
    """Leave out models that answered too little, that the recipe names, or whose score is not the published one."""
    responses = found.responses
    doubtful = set() if found.check is None else {one.model_id for one in found.check.differing}
    answered = np.concatenate([part.observed.mean(axis=1) for part in responses.parts()])
    kept = [
        row
        for row, (name, fraction) in enumerate(zip(responses.model_ids, answered, strict=True))
        if fraction >= recipe.least_answered
        and name not in doubtful
        and not any(fnmatchcase(name, pattern) for pattern in recipe.exclude_models)
    ]
    for what, n_found, least in (
        (f"models with answers to {100.0 * recipe.least_answered:.0f} % of the items", len(kept), recipe.least_models),
        ("items", responses.n_items, recipe.least_items),
    ):
        if n_found < least:
            raise DataError(
                f"the results must have at least {least} {what}, got {n_found} (of {responses.n_models} models and "
                f"{responses.n_items} items that were read). The source is not what the recipe was written for: look "
                "at its files, and write a recipe of your own."
            )
    return responses if len(kept) == responses.n_models else responses.take(models=np.array(kept))
