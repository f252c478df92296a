import numpy as np
import polars as pl

from itembank.scaling.pretraining.decision_means import mean_over_splits


def test_the_same_share_of_every_split_goes_into_one_mean():
    table = pl.DataFrame(
        {
            "split": [0, 0, 1, 1],
            "scenario": ["easy"] * 4,
            "law": ["irsl"] * 4,
            "share_of_target": [0.4, 0.1, 0.9, 0.1],
            "decision_accuracy": [1.0, np.nan, 0.5, np.nan],
        }
    )
    two = pl.concat([table, table.with_columns(scenario=pl.lit("hard"), decision_accuracy=0.25)])
    means = mean_over_splits(two).filter(scenario="easy").sort("share_of_target")
    np.testing.assert_allclose(means["share_of_target"], [0.1, 0.6])  # the geometric mean of 0.4 and 0.9
    np.testing.assert_array_equal(means["decision_accuracy"], [np.nan, 0.75])  # of what is known
    assert means["n"].to_list() == [2, 2]
    over_scenarios = mean_over_splits(two, by=("law",)).sort("share_of_target")
    np.testing.assert_allclose(over_scenarios["decision_accuracy"], [0.25, (1.0 + 0.5 + 0.25 + 0.25) / 4])
    assert over_scenarios["n"].to_list() == [4, 4]
