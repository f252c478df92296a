"""What the responses say about the benchmark itself."""

from itembank.auditing.bank_check import BankCheck, check_bank
from itembank.auditing.check import Checks, check_models
from itembank.auditing.differential_items import DifferentialItems, differential_items
from itembank.auditing.duplicates import Duplicates, find_duplicates
from itembank.auditing.info import Info
from itembank.auditing.item_audit import ItemAudit, audit_items
from itembank.auditing.item_drift import ItemDrift, item_drift
from itembank.auditing.outlook import Outlook, outlook
from itembank.auditing.person_fit import FitCheck, check_fit

__all__ = [
    "BankCheck",
    "Checks",
    "DifferentialItems",
    "Duplicates",
    "FitCheck",
    "Info",
    "ItemAudit",
    "ItemDrift",
    "Outlook",
    "audit_items",
    "check_bank",
    "check_fit",
    "check_models",
    "differential_items",
    "find_duplicates",
    "item_drift",
    "outlook",
]
