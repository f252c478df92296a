from .audit_page import audit_page as audit_page
from .bank_page import bank_page as bank_page
from .blocks import Page as Page
