"""What callers give to the verbs: a bank, responses or a selection, or the path of one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from itembank.bank.bank_files import load_bank
from itembank.bank.bank_places import is_bank_name
from itembank.bank.bank_records import RECORD
from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.errors import DataError, ParameterError, remedy, shown
from itembank.irt.family_names import COUNTS
from itembank.numerics.arrays import FloatArray
from itembank.responses.error_kinds import Errors
from itembank.responses.how_read import HowRead
from itembank.responses.responses import ResponseMatrix
from itembank.responses.sizes import with_usual_sizes

ONE_MODEL = "model"
"""Id of a model whose answers are given without one."""
GivenBank: TypeAlias = Bank | str | Path
"""A bank, the path of its folder, or its name: ``bank:name`` of a ready bank, ``hf:owner/name`` of one on the Hub."""
GivenResponses: TypeAlias = ResponseMatrix | str | Path | Sequence[str | Path] | Any
"""Responses, the path or paths of files and log folders that `read_responses` reads, or a table in memory."""
NewResponses: TypeAlias = GivenResponses | Mapping[str, float] | Sequence[float] | FloatArray
"""Or, in memory: one model's ``{item_id: response}``, or its responses in the order of a selection."""
GivenSelection: TypeAlias = Selection | str | Path
"""A selection, or the path of its file."""


def as_bank(bank: GivenBank) -> Bank:
    """Return the bank itself, or load the one at a path."""
    if isinstance(bank, Bank):
        return bank
    if isinstance(bank, str | Path):
        return load_bank(bank)
    raise ParameterError(
        f"bank must be a Bank or the path of a bank's folder, got {_kind(bank)}. Make one with calibrate(responses), "
        "or load one with load_bank('bank')."
    )


def as_responses(responses: GivenResponses, errors: Errors | None = None) -> ResponseMatrix:
    """Return the responses themselves, or read those at a path or several, or in a table.

    Lost answers count as `errors` says, or else as they did.
    """
    if isinstance(responses, ResponseMatrix):
        return responses.with_errors(errors)
    from itembank.readers.read import read_responses  # noqa: PLC0415 (a session reads no results)
    from itembank.readers.reading_specs import ReadingSpec  # noqa: PLC0415

    return read_responses(responses, spec=ReadingSpec(errors=errors))


def as_new_responses(
    bank: Bank,
    responses: NewResponses,
    selection: Selection | None = None,
    *,
    same_content: bool = True,
    allow_mixed_prompts: bool = False,
    errors: Errors | None = None,
) -> ResponseMatrix:
    """Return responses of new models themselves, or read them as the bank's items were read.

    One model's may be ``{item_id: response}``, or in the order of the selection, or of the bank's own. Of files, only
    the items of the selection are kept where there is one, and must be those of the bank; with `same_content` their
    content, too, and their prompts unless `allow_mixed_prompts`. Lost answers count as `errors` says.
    """
    choices = {"same_content": same_content, "allow_mixed_prompts": allow_mixed_prompts}
    return read_new(bank, responses, selection, errors=errors, **choices)[1]


def read_new(
    bank: Bank,
    responses: NewResponses,
    selection: Selection | None = None,
    *,
    same_content: bool = True,
    allow_mixed_prompts: bool = False,
    errors: Errors | None = None,
) -> tuple[ResponseMatrix, ResponseMatrix]:
    """Return all responses of new models, and what `as_new_responses` makes of them."""
    given = responses if isinstance(responses, ResponseMatrix) else _in_memory(bank, responses, selection)
    if given is not None:
        given = _sized(bank, given.with_errors(errors or HowRead(bank.responses.items).lost_as))
        return given, given
    from itembank.readers import agreement  # noqa: PLC0415 (most verbs are given responses, or none)
    from itembank.readers.read import paths_of  # noqa: PLC0415
    from itembank.readers.reading_specs import ReadingSpec  # noqa: PLC0415
    from itembank.responses.prompts import how_to_mix  # noqa: PLC0415

    spec = ReadingSpec(allow_mixed_prompts=allow_mixed_prompts, errors=errors)
    whole = agreement.read_new_responses(paths_of(responses), bank.responses.items, spec=spec)
    matrix = whole = _sized(bank, whole)
    if selection is not None:
        matrix, _ = agreement.only_items(matrix, selection.item_ids)
    if same_content:
        agreement.check_same_content(matrix.items, bank.responses.items)
        advice = "To take them anyway, give what read_responses(...) returns in place of the path."
        agreement.check_same_prompts(
            matrix.items, bank.responses.items, advice=remedy(advice, how_to_mix()), is_ignored=allow_mixed_prompts
        )
    return whole, matrix


def _sized(bank: Bank, responses: ResponseMatrix) -> ResponseMatrix:
    """Let scores without a number of trials count as many as past models', where the bank's family counts trials."""
    return with_usual_sizes(responses, bank.responses) if bank.parameters.family in COUNTS else responses


def _in_memory(bank: Bank, responses: NewResponses, selection: Selection | None) -> ResponseMatrix | None:
    """Make responses of a mapping, an array of one model's or a table; None of anything else."""
    series: Any = responses
    is_series = hasattr(series, "reset_index") and series.ndim == 1
    # only a plain range is no ids: pandas 3 has ids that are a range as one, with a name, or backwards
    if is_series and repr(series.index) != f"RangeIndex(start=0, stop={len(series)}, step=1)":
        names = [name or "item_id" for name in series.index.names]  # a Series of pandas, whose index has the item ids
        responses = series.rename_axis(names).reset_index(name="response")
    is_list = isinstance(responses, list | tuple) and any(
        not isinstance(one, str | Path | Mapping) for one in responses
    )
    if isinstance(responses, Mapping):
        ids, values = [str(item) for item in responses], [*responses.values()]
    elif is_list or len(getattr(responses, "shape", ())) == 1:
        values = [*cast("Sequence[float]", responses)]
        if selection is None:  # the bank's own of so many items, else its usual one, of which the length is then told
            own = (one for one in bank.own_selections if one.n_items == len(values))
            selection = next(own, bank.items_to_run)
        if selection is None:
            raise ParameterError(
                "an array of one model's responses goes by the order of a selection, got none: give the selection, or "
                "{item_id: response}."
            )
        ids = [*selection.item_ids]
        if len(values) != len(ids):
            raise ParameterError(
                f"an array of one model's responses must have one for each of the {len(ids)} items of the selection, "
                f"in its order, got {len(values)}. Where some are missing, give {{item_id: response}}."
            )
    else:
        from itembank.readers.agreement import spec_like  # noqa: PLC0415
        from itembank.readers.read import is_table, read_responses, to_polars  # noqa: PLC0415
        from itembank.readers.reading_specs import ReadingSpec  # noqa: PLC0415
        from itembank.readers.table import of_one_model  # noqa: PLC0415

        if not is_table(responses):
            return None
        table, spec = to_polars(responses), spec_like(bank.responses.items, ReadingSpec())
        return read_responses(table, spec=of_one_model(Path(ONE_MODEL), table.columns, spec))
    try:
        numbers = np.array([[np.nan if value is None else float(value) for value in values]])
    except (TypeError, ValueError) as error:
        kinds = shown(sorted({type(value).__name__ for value in values}))
        raise DataError(
            f"responses of one model must be numbers in [0, 1], or None where one is missing, got {kinds}. Give "
            "several models as a table with the columns model_id, item_id and response."
        ) from error
    return ResponseMatrix.create(numbers, model_ids=[ONE_MODEL], item_ids=ids)


def as_selection(selection: GivenSelection | None, *, may_be_later: bool = False) -> Selection | None:
    """Return the selection itself, or load the one at a path; None stays None.

    Unless `may_be_later`, one of a later stage is refused, whose items are one model's.
    """
    if isinstance(selection, str | Path):
        selection = Selection.load(selection)
    if selection is not None and not isinstance(selection, Selection):
        raise ParameterError(
            f"selection must be a Selection or the path of its file, got {_kind(selection)}. Make one with "
            "select(bank, n)."
        )
    if selection is not None and selection.earlier is not None and not may_be_later:
        raise DataError(
            "a selection that is the same for all models is needed, got one of a later stage, whose items were chosen "
            "for one model. Take one batch; or estimate each model by itself."
        )
    return selection


def as_whole_selection(selection: GivenSelection | None) -> Selection | None:
    """Return the items of all stages up to that of a selection (`Selection.whole`), as estimates take them."""
    given = as_selection(selection, may_be_later=True)
    return None if given is None else given.whole


def as_bank_or_none(source: object) -> Bank | None:
    """Return a bank if one is given or at the path; None of anything else."""
    if isinstance(source, Bank):
        return source
    is_place = isinstance(source, str | Path) and (is_bank_name(source) or (Path(source) / RECORD).is_file())
    return load_bank(cast("str | Path", source)) if is_place else None


def as_bank_or_responses(source: Bank | GivenResponses) -> Bank | ResponseMatrix:
    """Return a bank or responses, whichever is given or is at the path."""
    bank = as_bank_or_none(source)
    return as_responses(cast("GivenResponses", source)) if bank is None else bank


def bank_and_results(sources: Sequence[Any]) -> tuple[Bank | None, list[Any]]:
    """Return the bank that the first of the sources is, if it is one, and the others: results to compare."""
    bank = as_bank_or_none(sources[0]) if sources else None
    results = [*sources] if bank is None else [*sources[1:]]
    if not results:
        how = remedy("compare('old.csv', 'new.csv')", "itembank compare old.csv new.csv")
        raise ParameterError(f"results to compare must be given{'' if bank is None else ' after the bank'}: {how}.")
    return bank, results


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{name} {value!r}" if isinstance(value, int | float | bool) or value is None else name
