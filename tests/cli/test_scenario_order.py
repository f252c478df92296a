"""Neither the order of scenarios in a file nor that of its rows decides what is chosen, drawn or estimated."""

import functools

import numpy as np
import polars as pl
import pytest

from tests.cli import test_relations as relations

pytestmark = pytest.mark.usefixtures("few_folds")
PLAIN_TABLES = relations.tables
OF_SCENARIOS = ("import", "calibrate", "select", "estimate", "compare, ranking", "check models", "scaling test-time")
VERBS = {name: lines for name, lines in relations.VERBS.items() if name.startswith(OF_SCENARIOS)} | {
    "dimensions": "calibrate past.parquet -o many --dims auto\ninfo many",
    "select, more": "\n".join(
        f"select bank --method {method}"
        for method in ("stratified -n 9", "drawn -n 2 --per-scenario", "anchor-irt -n 7")
    ),
    "gate": "gate start whole.parquet --bank bank --margin 0.1 -o gate\ngate next gate whole.parquet",
    "replay": "\n".join(
        f"replay bank new.parquet --max-items 7 --criterion {name}" for name in ("drawn", "random", "uniform", "fisher")
    ),
}


@functools.cache
def tables():
    """The tables of the other relations, with five scenarios of unequal size that begin in no order."""
    frames, models = PLAIN_TABLES()
    names = np.random.default_rng(8).choice(["law", "art", "zoo", "bio", "gym"], 241, p=(0.3, 0.25, 0.2, 0.15, 0.1))
    scenario = pl.col("item_id").replace_strict({f"q{j:03d}": name for j, name in enumerate(names)}, default=None)
    frames = {name: frames[name].with_columns(scenario=scenario) for name in ("past", "new", "samples")}
    return frames | {"whole": frames["new"].filter(pl.col("model_id") == "new-a")}, models


def from_the_last(frame):
    return [frame.sample(fraction=1.0, shuffle=True, seed=4).sort("scenario", descending=True, maintain_order=True)]


def test_every_number_is_the_same_whatever_the_order_of_scenarios(tmp_path, monkeypatch):
    monkeypatch.setattr(relations, "tables", tables)
    monkeypatch.setattr(relations, "VERBS", VERBS)
    found = []
    for name, change in (("plain", lambda frame: [frame]), ("turned", from_the_last)):
        (tmp_path / name).mkdir()
        found.append(relations.carried_through(tmp_path / name, relations.Relation(change)))
    plain, turned = found
    differing = {verb: relations.differences(plain[verb], turned[verb])[:3] for verb in VERBS}
    assert not any(differing.values()), differing
