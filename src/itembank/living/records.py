"""What `itembank.banks` shows of other packages: histories, banks of other targets, linked items."""

from itembank.bank.bank_history import BankHistory, Change, Link
from itembank.bank.bank_views import whole_bank, with_target
from itembank.living.link_items import link_items
from itembank.living.linked_items import LinkedItems
from itembank.living.new_item_scores import NewItemScores, new_item_scores

__all__ = [
    "BankHistory",
    "Change",
    "Link",
    "LinkedItems",
    "NewItemScores",
    "link_items",
    "new_item_scores",
    "whole_bank",
    "with_target",
]
