"""The pages of laws and transfers, which `itembank.show` finds by an entry point."""

from itembank.pages.shown import Shown, begun, of_charts
from itembank_scaling.pages.pass_at_k_page import pass_at_k_page
from itembank_scaling.pages.pretraining_page import pretraining_page
from itembank_scaling.pages.transfer_charts import charts_of_transfer, charts_of_validity
from itembank_scaling.pass_at_k.results import PassAtKLaw
from itembank_scaling.pretraining.law_results import PretrainingLaw
from itembank_scaling.transfers.convergent import ConvergentValidity
from itembank_scaling.transfers.transfers import Transfer

PAGES: dict[type, Shown] = {
    PretrainingLaw: begun(pretraining_page),
    PassAtKLaw: Shown(pass_at_k_page),
    Transfer: of_charts("Transfer", charts_of_transfer),
    ConvergentValidity: of_charts("Convergent validity", charts_of_validity),
}
