"""Print what one item came to, for `itembank session run`, from results of any program that itembank reads.

    python print_answer.py RESULTS          {"response": 1.0, "costs": {"cost_usd": 0.31}}

RESULTS is a file or folder of one model and one item; trials of it are averaged. Without a verdict only the costs are
printed, and the exit code is 1: the item failed, and its answer was not wrong.
"""

import json
import math
import sys

import itembank as ib

# read as a wrong answer, an item without a verdict is not left out
found = ib.read_responses(sys.argv[1], spec=ib.ReadingSpec(repeats="mean", errors="wrong")).with_errors("missing")
if found.responses.shape != (1, 1):
    sys.exit(f"{sys.argv[1]}: there must be one model and one item, got {found.model_ids} and {found.item_ids}.")
response = found.responses.item()
costs = {unit: cost.item() for unit, cost in found.costs.items() if not math.isnan(cost.item())}
if math.isnan(response):
    print(json.dumps({"costs": costs}))
    sys.exit(f"no verdict: {found.lost.in_words if found.lost else 'no answer'}")
print(json.dumps({"response": response, "costs": costs}))
