"""The study files of tests: one small study of each kind, which a test changes where it needs another."""

import json

STUDY = {"name": "small", "selectors": ["random", "anchor-irt"], "estimators": ["weighted", "gp-irt"], "repeats": 2}
STUDY |= {"n_items": [6, 12], "calibration": {"method": "map", "n_dims": 1}}
STUDY |= {"splits": [{"kind": "random"}, {"kind": "ahead", "column": "date"}]}
PREDICTION = {"name": "small", "task": "subscenario", "cost": "tokens", "n_partitions": 2, "n_test": 6, "levels": [0.2]}
PREDICTION |= {"n_calibration_tasks": [1, 3], "n_items": [1, 4]}
PREDICTION |= {"item_models": {"2pl": {"method": "map", "item_model": "2pl", "n_dims": 1}}}
PREDICTION["assessors"] = [
    {"predictor": ["2pl", "task-mean"]},
    {"predictor": "2pl", "paradigm": "adaptation", "selector": "v-optimal"},
]
"""Without `data`, which every test has of its own."""


def write_toml(path, content):
    path.write_text("\n".join(_lines(content, ())) + "\n", encoding="utf-8")


def _lines(content, path):
    """Plain values first, as TOML asks; what is in JSON a list, a string, a number or a flag, is the same in TOML."""
    tables = {key: one for key, one in content.items() if isinstance(one, dict)}
    lists = {key: one for key, one in content.items() if isinstance(one, list) and isinstance(one[0], dict)}
    for key, one in content.items():
        if key not in tables and key not in lists:
            yield f"{key} = {json.dumps(one)}"
    for key, one in tables.items():
        yield f"[{'.'.join((*path, key))}]"
        yield from _lines(one, (*path, key))
    for key, several in lists.items():
        for one in several:
            yield f"[[{'.'.join((*path, key))}]]"
            yield from _lines(one, (*path, key))
