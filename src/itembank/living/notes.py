"""The verb `note`: a bank's name, and a note in its history; no number changes."""

from itembank.bank.arguments import GivenBank, as_bank
from itembank.bank.bank_views import whole_bank
from itembank.bank.banks import Bank
from itembank.errors import ParameterError
from itembank.living.descendants import Operation, descendant


def note(bank: GivenBank, text: str, *, name: str = "") -> Bank:
    """Write a note into a bank's history, and give it a name where one is given.

    Parameters
    ----------
    bank : Bank or path
    text : str
    name : str
        Of the benchmark. Scores are then called ``name@1``, ``name@2``, ... after the version that first gave them;
        those that have a name already keep it.

    Raises
    ------
    ParameterError
        For an empty text, or a name that is none.

    Examples
    --------
    >>> bank = note(bank, "as published in May", name="mmlu_pro")  # doctest: +SKIP
    """
    bank = as_bank(bank)
    if not text.strip():
        raise ParameterError("a note must say something, got an empty text.")
    arguments = {"name": name} if name else {}
    return descendant(bank, whole_bank(bank), Operation("note", text.strip(), arguments), name=name)
