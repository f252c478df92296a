"""What `itembank.banks` shows of other packages: histories, banks of other targets, linked items."""

from itembank.data.bank_history import BankHistory, Change, Link
from itembank.data.bank_views import whole_bank, with_target
from itembank.linking.link_items import link_items
from itembank.linking.linked_items import LinkedItems

__all__ = ["BankHistory", "Change", "Link", "LinkedItems", "link_items", "whole_bank", "with_target"]
