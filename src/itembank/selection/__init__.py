"""Which items to run.

- `select`: any method of `selector_specs`, from the items of each scenario (`pools`)
- `random_items`, `anchors`: drawn by chance, or one for each cluster of similar items
- `v_optimal`: for all models alike, by the linear-Gaussian factor model; `later_stages`: for one, from its answers
- `criteria` (names), `item_worth` (formulas), `greedy` (one item after the other, within constraints): by what an item
  tells of ability in the item model, as sessions choose; `optimal_design`: the same before any answer
"""
