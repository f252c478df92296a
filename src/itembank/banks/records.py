"""What `itembank.banks` shows of other packages: histories, banks of other targets, linked items."""

from itembank.data.bank_history import BankHistory, Change, Link
from itembank.data.bank_views import whole_bank, with_target
from itembank.linking.link_items import link_items
from itembank.linking.linked_items import LinkedItems
from itembank.linking.new_item_scores import NewItemScores, new_item_scores

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
