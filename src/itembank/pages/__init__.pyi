from .bank_page import bank_page as bank_page
from .comparison_page import comparison_page as comparison_page
from .estimates_page import estimates_page as estimates_page
from .render import Page as Page
from .session_page import session_page as session_page
