"""Items chosen one at a time for each test model, by adaptive sessions (P2 6.2 'adaptation')."""

from collections.abc import Mapping

import numpy as np

from itembank.adaptive.session import AdaptiveSession
from itembank.adaptive.settings import Budget
from itembank.data.banks import Bank
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.selection.constraints import Constraints
from itembank.studies.prediction.designs import Pool, criterion_of
from itembank.studies.prediction.prepared import Known, TestModels
from itembank.studies.prediction.specs import Assessor


def choose_adaptively(
    assessor: Assessor, known: Known, new: TestModels, pool: Pool, budgets: tuple[int, ...], *, unit: str
) -> Mapping[int, IntArray]:
    """Run one session for each test model; a smaller budget's items are the first of a larger one's.

    Items that a model has no response to are asked, fail, and count for nothing.

    Returns
    -------
    mapping of budget to (n_test, n)
        Columns in the order of asking; -1 where a session ended before.
    """
    columns = np.concatenate([pool.items, pool.targets])
    bank = known.bank(assessor.design_model, columns, unit)
    place = {item_id: column for item_id, column in zip(bank.item_ids, columns.tolist(), strict=True)}
    most = min(max(budgets), pool.items.size)
    asked = np.full((len(new.model_ids), most), -1, dtype=np.int64)
    for row in range(asked.shape[0]):
        session = _session(assessor, bank, known, pool, most, unit)
        for step, item_id in enumerate(_asked(session, new.responses[row], place, most)):
            asked[row, step] = place[item_id]
    return {n: asked[:, :n] for n in budgets}
