"""The scoring example of a published subset: a short program that needs numpy alone."""

from itembank.bank.banks import Bank

P_IRT = '''"""Estimate full-benchmark scores from answers to the items of selected.csv: python score.py results.csv

results.csv holds one model: columns item_id and response (0 to 1). Answers count as they are, the item model predicts
the others (p-IRT, tinyBenchmarks eq. 4.3). `itembank estimate` is more exact and gives intervals. Needs numpy.
"""
import csv, json, sys
from pathlib import Path
import numpy as np

here = Path(__file__).parent
bank = json.loads((here / "bank.json").read_text(encoding="utf-8"))
with open(here / "parameters.csv", encoding="utf-8", newline="") as file:
    items = list(csv.DictReader(file))
with open(sys.argv[1], encoding="utf-8-sig", newline="") as file:
    answers = {row["item_id"]: float(row["response"]) for row in csv.DictReader(file)}

number = lambda name: np.array([float(item[name]) for item in items])
lower, upper, intercept, score_weight = map(number, ["lower_asymptote", "upper_asymptote", "intercept", "score_weight"])
loadings = np.column_stack([number(name) for name in items[0] if name.startswith("loading_")])
seen = np.array([bool(item["weight"]) and item["item_id"] in answers for item in items])
response = np.array([answers.get(item["item_id"], 0.0) for item in items])
threshold = np.array([bank["calibration"]["thresholds"].get(item["scenario"], np.nan) for item in items])
right = np.where(np.isnan(threshold), response, response >= threshold)

mean, precision = np.array(bank["ability_prior"]["mean"]), np.linalg.inv(bank["ability_prior"]["covariance"])
ability = mean.copy()
for _ in range(200):  # Fisher scoring for the most likely ability, the prior among the evidence
    curve = 1.0 / (1.0 + np.exp(-(loadings @ ability + intercept)))
    chance = lower + (upper - lower) * curve
    slope, spread = (upper - lower) * curve * (1.0 - curve), chance * (1.0 - chance)
    pull = loadings.T @ (seen * (right - chance) * slope / spread) - precision @ (ability - mean)
    step = np.linalg.solve((loadings.T * (seen * slope**2 / spread)) @ loadings + precision, pull)
    ability = ability + step / max(1.0, np.linalg.norm(step))

expected, scenario = np.where(seen, response, chance) * score_weight, np.array([item["scenario"] for item in items])
scores = [expected[scenario == name].sum() for name in bank["targets"]["scenarios"]]
for name, score in zip(bank["targets"]["scenarios"], scores):
    print(f"{name}: {score:.6f}")
print(f"overall: {np.dot(scores, bank['targets']['scenario_weights']):.6f}")
'''

BY_ITEMBANK = '''"""Estimate full-benchmark scores from answers to items of selected.csv: python score.py results.csv

results.csv holds columns model_id, item_id and response (0 to 1).
"""
import sys
from pathlib import Path
import itembank as ib

print(ib.estimate(Path(__file__).parent, sys.argv[1]))
'''


def scoring_example(bank: Bank) -> str:
    """Return the program: with numpy where answers are right or wrong, with itembank for the longer families."""
    return P_IRT if bank.parameters.family == "bernoulli" else BY_ITEMBANK
