import numpy as np
import pytest

from tests.bank.banks import make_bank


@pytest.mark.parametrize("n_dims", [1, 3])
def test_items_are_a_table_of_their_parameters(n_dims):
    bank = make_bank(n_dims=n_dims)
    table = bank.items
    assert table["item_id"].to_list() == bank.item_ids
    for k in range(n_dims):
        np.testing.assert_array_equal(table[f"loading_{k + 1}"], bank.parameters.loadings[:, k])
        np.testing.assert_allclose(
            table[f"loading_{k + 1}_error"] ** 2, bank.calibration.item_covariance[:, k, k], rtol=1e-12
        )
    np.testing.assert_array_equal(table["intercept"], bank.parameters.intercept)
    np.testing.assert_allclose(table["mean_response"], np.nanmean(bank.responses.responses, axis=0))
    assert ("difficulty" in table.columns) == (n_dims == 1)


def test_the_difficulty_is_where_half_succeed():
    bank = make_bank(n_dims=1)
    table = bank.items.filter(~bank.items["is_degenerate"])
    known = table.filter(table["loading_1_error"] < 0.2 * table["loading_1"].abs())
    logits = known["loading_1"] * known["difficulty"] + known["intercept"]
    assert known.height > 5
    np.testing.assert_allclose(logits, 0.0, atol=0.25)
