"""What `itembank.banks` shows of the data package: histories, and banks of other targets."""

from itembank.data.bank_history import BankHistory, Change, Link
from itembank.data.bank_views import whole_bank, with_target

__all__ = ["BankHistory", "Change", "Link", "whole_bank", "with_target"]
