from .audit_page import audit_page as audit_page
from .bank_page import bank_page as bank_page
from .blocks import Page as Page
from .estimates_page import estimates_page as estimates_page
from .quickstart_page import quickstart_page as quickstart_page
from .session_page import session_page as session_page
