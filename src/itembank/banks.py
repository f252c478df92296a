"""Banks that begin without past results, banks compared, other scores of a bank, its history."""

from itembank.bank.bank_diff import BankDiff, diff
from itembank.bank.bank_history import BankHistory, Change, Link
from itembank.bank.bank_views import whole_bank, with_target
from itembank.calibration.starting import start

__all__ = ["BankDiff", "BankHistory", "Change", "Link", "diff", "start", "whole_bank", "with_target"]
