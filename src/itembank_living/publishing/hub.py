"""Banks pushed to the Hugging Face Hub with their card, and pulled into folders."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_files import check_bank_destination, load_bank, save_bank
from itembank.bank.bank_records import BESIDE, is_file_of_bank
from itembank.bank.banks import Bank
from itembank.errors import BankError, DataError, ParameterError, shown
from itembank.files.atomic import replacing_folder
from itembank.files.hub import KIND, HubName, hub_client, hub_errors, is_hub_name, parse_hub_name
from itembank.planning.select import select
from itembank.progress import ProgressCallback, part_of, silent
from itembank_living.publishing.cards import CardOptions, card
from itembank_living.publishing.publishable import file_sizes, for_publication, left_out
from itembank_living.publishing.without_responses import CrossValidatedScores, cross_validated_scores, without_responses

CARD = "README.md"


@dataclass(frozen=True, slots=True)
class PushSpec:
    """Choices of `push`.

    Attributes
    ----------
    private : bool
        Make the repository private if it is new.
    with_responses : bool
        Whether past models, and their responses, go along; `without_responses` says what works without.
    license : str
        Identifier as the Hub has it: `cc-by-4.0`.
    include_columns : tuple of str
        Columns of items that may be published although they look like questions or answers, and columns of models
        beside those that are known to be needed.
    drop_columns : tuple of str
        Columns of items and models that stay here.
    message : str
        Of the commit.
    """

    private: bool = False
    with_responses: bool = True
    license: str = ""
    include_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()
    message: str = "Push a bank of itembank"


@dataclass(frozen=True, slots=True)
class Pushed:
    """A bank that was pushed.

    Attributes
    ----------
    name : str
        ``hf:owner/name@commit``.
    address : str
        Of its page.
    bank_id : str
    files : mapping of str to int
        Bytes of each file that went.
    columns, left_out : tuple of str
        Columns of models that went, and of any table that stayed.
    """

    name: str
    address: str
    bank_id: str
    files: Mapping[str, int]
    columns: tuple[str, ...]
    left_out: tuple[str, ...]


def push(bank: GivenBank, place: str, spec: PushSpec | None = None, *, progress: ProgressCallback = silent) -> Pushed:
    """Push a bank to ``hf:owner/name`` of the Hugging Face Hub, which anyone can then name instead of a folder.

    The card is written here, with cross-validated errors on past models. What `publish_tiny` wrote is pushed as it
    is, with the card that is there.

    Parameters
    ----------
    bank : Bank or path
    place : str
        ``hf:owner/name``, or with ``@branch`` to push to that branch.
    spec : PushSpec, optional
    progress : ProgressCallback

    Raises
    ------
    ParameterError
        When the name is not one of the Hub, or a choice does not fit.
    DataError
        When a column of the items looks like questions or answers, one of the models holds secrets, or a file beside a
        published subset is a link.
    MissingDependencyError
        When huggingface_hub is not installed.
    BankError
        When the Hub refuses, or cannot be reached.
    """
    name, spec = parse_hub_name(place), PushSpec() if spec is None else spec
    api = hub_client().HfApi()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "bank"
        given = as_bank(bank)
        staged = stage(given, folder, name, spec, progress=progress)
        with hub_errors(name, "pushed to"):
            address = api.create_repo(name.repository, repo_type=KIND, private=spec.private, exist_ok=True)
            if name.revision is not None:
                api.create_branch(name.repository, repo_type=KIND, branch=name.revision, exist_ok=True)
            done = api.upload_folder(  # all files in one commit
                repo_id=name.repository,
                repo_type=KIND,
                folder_path=str(folder),
                revision=name.revision,
                commit_message=spec.message,
                delete_patterns=["cache/*"],  # of an earlier push
            )
        return Pushed(
            str(HubName(name.repository, done.oid)),
            str(address),
            staged.bank_id,
            file_sizes(folder),
            tuple(staged.responses.models.columns),
            left_out(given, staged),
        )


def stage(bank: Bank, folder: Path, name: HubName, spec: PushSpec, *, progress: ProgressCallback = silent) -> Bank:
    """Write the folder that is pushed, and return the bank in it."""
    kept = for_publication(bank, spec.include_columns, spec.drop_columns)
    old = bank.cache.folder
    has_card = bank.published is not None and old is not None and (old / CARD).is_file()
    if has_card and spec.license:
        raise ParameterError(f"the license must be in {CARD}, which exists already. Write it there, not here.")
    cross_validated = [] if bank.published else measured(kept, (30, 100), progress=progress)
    staged = kept if spec.with_responses or bank.published else without_responses(kept)
    save_bank(staged, folder)
    if has_card and old is not None:
        # What is beside a bank with the items to run goes along; the Hub's client keeps links.
        is_of_hub = is_hub_name(bank.cache.source)
        found = [one for one in BESIDE if (old / one).exists() or (old / one).is_symlink()]
        links = [one for one in found if (old / one).is_symlink() and not is_of_hub]
        if links:
            raise DataError(
                f"files that are pushed must be no links, got {shown(links)} in {old}. Put the files there."
            )
        for one in (one for one in found if (old / one).is_file()):
            shutil.copyfile(old / one, folder / one)
    else:
        options = CardOptions(name.repository.partition("/")[2], str(HubName(name.repository)), spec.license)
        (folder / CARD).write_text(card(staged, options, cross_validated, left_out(bank, staged)), encoding="utf-8")
    return staged


def measured(bank: Bank, sizes: Sequence[int], *, progress: ProgressCallback = silent) -> list[CrossValidatedScores]:
    """Find the cross-validated errors for some numbers of items that the bank can choose."""
    found = []
    fitting = [n for n in sizes if bank.targets.n_scenarios <= n <= bank.n_items // 2]
    for number, n_items in enumerate(fitting):
        report = part_of(progress, number / len(fitting), (number + 1) / len(fitting))
        found.append(cross_validated_scores(bank, select(bank, n_items, rng=0, progress=report)))
    return [one for one in found if one is not None]


def pull_bank(place: str | Path, folder: str | Path, *, overwrite: bool = False) -> Bank:
    """Copy the bank ``hf:owner/name[@revision]`` into a folder, after all its files were checked.

    Returns
    -------
    Bank
        Whose `cache.source` says the commit it is of.

    Raises
    ------
    ParameterError
        When the name is not one of the Hub, or nothing can be written at `folder`.
    BankError, IntegrityError, MissingDependencyError
        As `load_bank`; and when `folder` exists.
    """
    folder = Path(folder)
    check_bank_destination(folder, overwrite=overwrite)
    parse_hub_name(place)
    bank = load_bank(place)
    came_to = bank.cache.folder
    if came_to is None:
        raise BankError(f"{place} was not fetched into a folder of this machine. Pull it again.")
    with replacing_folder(folder) as new:
        for path in sorted(one for one in came_to.rglob("*") if is_file_of_bank(one.relative_to(came_to).as_posix())):
            target = new / path.relative_to(came_to)
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, target)  # through the client's links: what is in the folder is ordinary files
    return bank
