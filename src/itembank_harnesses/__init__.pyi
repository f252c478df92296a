from .lm_eval.run import HarnessRun as HarnessRun
from .lm_eval.run import Runner as Runner
from .lm_eval.selected import selected as selected
