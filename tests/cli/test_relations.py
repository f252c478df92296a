"""Relations that hold over every verb: what changes no number, and what changes all in a known way.

Order of rows, models and items, other names, a file in parts, copies of models beside them, and wrong for right.
Each is carried through all verbs, and whatever they print is compared with what they print of the tables as they are.
"""

import functools
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl
import pytest

from tests.attacks.running import run_here
from tests.cli.session.loops import FAST
from tests.scaling.simulated_suite import simulated_suite

pytestmark = pytest.mark.usefixtures("few_folds")
TWIN, PAST = "~twin", "new-past"  # Behind the id of a copy, and the id of a copy of a past model
MARK = re.compile("[a-z]{4}~")  # Before renamed ids: letters by chance, so that names sort in another order
IGNORED = {"last_event", "at", "sha256", "verdicts", "notes", "sentence"}
"""Keys of times, of digests, and of texts that name models in the order of their file, or repeat numbers."""
ONE_SIDED = {"note"}
"""Keys of what is said of the best past models alone: the worst ones are not what they are, turned over."""
DIGEST = re.compile("[0-9a-f]{12}")
ORDERED = {"next_items"}  # Keys of lists whose order counts
SESSION = shlex.join(FAST)
SYMMETRIC = ("mean", "weighted", "p-irt", "task-mean", "ridge", "factor")
"""Methods of estimation to which wrong is what right is; the others pool what is seen on a scale of their own."""
BY_METHOD = "estimate bank new.parquet --selection random.json --interval model-based --method "
VERBS = {
    "import": "info past.parquet\ninfo samples.parquet",
    "calibrate": "calibrate past.parquet -o bank --item-model 2pl",
    "info": "info bank",
    "select": "select bank -n 12 -o selection.json\nselect bank -n 12 --method random -o random.json",
    "select, anchors": "select bank -n 12 --method anchor-irt\nselect bank -n 12 --method anchor-correctness",
    "select, v-optimal": "select bank -n 12 --method v-optimal",
    "estimate": "estimate bank new.parquet --selection selection.json",
    "estimate, symmetric": "\n".join(BY_METHOD + method for method in SYMMETRIC),
    "estimate, others": "\n".join(BY_METHOD + method for method in ("gp-irt", "task-mean-eb")),
    "estimate, design": "estimate bank new.parquet --selection random.json --interval design",
    "compare": "compare bank new.parquet --model @new-a --model @new-b --model @new-c --target all",
    "compare, paired": "compare bank new.parquet --selection random.json --method paired --model @new-a --model @new-b",
    "compare, ranking": "compare bank new.parquet --selection random.json --ranking",
    "plan": "plan bank --half-width 0.08",
    "replay": f"replay bank new.parquet --max-items 6 {SESSION}",
    "session": f"""\
session start bank -o run.jsonl --model-id m --max-items 5 {SESSION}
session run run.jsonl --command 'expr {{item_id}} : .*[02468]' --exit-code
session status run.jsonl""",
    "check items": "check bank",
    "check models": "check bank new.parquet\ncheck bank new.parquet --only accuracy -n 12",
    "bank add-models": "bank add-models bank new.parquet --how complete -o grown\ninfo bank grown\ninfo grown",
    "gate": "gate base.parquet cand.parquet --margin 0.1",
    "gate in stages": "gate start base.parquet --margin 0.1 -o gate\ngate next gate cand.parquet",
    "scaling test-time": "scaling test-time samples.parquet --k 1,5,20 --method irsl --method unbiased",
    "scaling pretrain": "scaling pretrain suite.parquet --law sigmoid",
}  # Command lines by name; each may need what those before it wrote. @ stands before ids of models
DRAWN_BY_NAME = ("gate in stages",)
"""Of one model nothing but names tells right answers apart: names of another order draw other items."""
BUT_BY_NAME = tuple(verb for verb in VERBS if verb not in DRAWN_BY_NAME)


def answers(names, abilities, n_items, n_trials=None):
    difficulty, rng = np.random.default_rng(3).normal(size=n_items), np.random.default_rng(len(names))
    chance = 1.0 / (1.0 + np.exp(difficulty - 1.5 * np.asarray(abilities)[:, None]))
    right = rng.binomial(n_trials or 1, chance).ravel()
    scenarios = ["law" if j % 3 else "art" for j in range(n_items)]
    items = pl.DataFrame({"item_id": [f"q{j:03d}" for j in range(n_items)], "scenario": scenarios})
    rows = pl.DataFrame({"model_id": names}).join(items, how="cross", maintain_order="left_right")
    counts = {"n_correct": right, "n_trials": n_trials}
    return rows.with_columns(response=right) if n_trials is None else rows.with_columns(**counts)


@functools.cache
def tables():
    """Past models, of which many have the same score, new ones, two runs of a model, samples and training runs."""
    rng = np.random.default_rng(37)
    suite = simulated_suite(np.random.default_rng(3), n_recipes=2, n_items=12, n_sizes=4, n_checkpoints=1)
    items = suite.probability.items.select("item_id", "scenario")
    runs = pl.DataFrame({"model_id": suite.probability.model_ids}).join(items, how="cross", maintain_order="left_right")
    return {
        "past": answers([f"past-{i:02d}" for i in range(22)], rng.normal(size=22), 25),
        "new": answers(["new-a", "new-b", "new-c"], [-0.4, 0.3, 1.0], 25),
        "base": answers(["model"], [0.5], 241),
        "cand": answers(["model-int8"], [0.45], 241),
        "samples": answers([f"s-{i}" for i in range(5)], rng.normal(size=5), 22, n_trials=6),
        "suite": runs.with_columns(response=pl.Series(suite.probability.responses.ravel())),
    }, suite.models


def shuffled(frame):
    """Rows by chance but the first two: scenarios count in the order in which they first appear."""
    return [pl.concat([frame[:2], frame[2:].sample(fraction=1.0, shuffle=True, seed=4)])]


def from_the_last(column):
    return lambda frame: [frame.sort(column, descending=True, maintain_order=True)]


def in_parts(frame):
    place = pl.Series(np.random.default_rng(1).integers(0, 3, frame.height) * (np.arange(frame.height) > 1))
    return [frame.filter(place == part) for part in range(3)]


def longer_names(frame):
    return [frame.with_columns(("name~" + pl.col(one)).alias(one) for one in ("model_id", "item_id", "scenario"))]


def renamed(frame):
    names = [pl.Series(one, map(new_name, frame[one])) for one in ("model_id", "item_id")]
    return [frame.with_columns(*names, scenario="name~" + pl.col("scenario"))]


def new_name(name):
    """Name of a model or an item after it was renamed: none is the name of another one before."""
    letters = np.random.default_rng(list(name.encode())).integers(26, size=4)
    return "".join(chr(ord("a") + letter) for letter in letters.tolist()) + "~" + name


NAME = re.compile(r"\b(q\d{3}|past-\d\d|new-[abc]|s-\d)\b")  # Names that change places among those that begin alike


@functools.cache
def other_places():
    """Who has whose name, and the reverse."""
    numbered = [f"q{j:03d}" for j in range(241)], [f"past-{i:02d}" for i in range(22)], [f"s-{i}" for i in range(5)]
    kinds = [*numbered[:2], ["new-a", "new-b", "new-c"], numbered[2]]
    rng = np.random.default_rng(41)
    there = {one: other for kind in kinds for one, other in zip(kind, rng.permutation(kind).tolist(), strict=True)}
    return there, {other: one for one, other in there.items()}


def exchanged(name):
    return other_places()[0].get(name, name)


def in_other_places(frame):
    return [frame.with_columns(pl.Series(one, map(exchanged, frame[one])) for one in ("model_id", "item_id"))]


def turned(frame):
    right = {"response": 1 - pl.col("response")} if "response" in frame.columns else {}
    return [frame.with_columns(**right)]


def with_twin(frame):
    """A copy of the first new model after all others, and a new one that is a past one; others stay alone."""
    twin = frame.filter(pl.col("model_id") == "new-a").with_columns(pl.col("model_id") + TWIN)
    past = tables()[0]["past"].filter(pl.col("model_id") == "past-03").with_columns(model_id=pl.lit(PAST))
    return [pl.concat([frame, twin, past]) if twin.height else frame]


@dataclass(frozen=True)
class Relation:
    """How every table changes, the verbs that it is about, and what then becomes of what they print."""

    change: Callable[[pl.DataFrame], list[pl.DataFrame]]
    verbs: tuple[str, ...] = tuple(VERBS)
    expected: Callable = lambda plain: plain
    found: Callable = lambda printed: printed
    name: Callable[[str], str] = str  # What a model is called afterwards
    read: Callable[[str], str] = str  # What is printed, with names as they were


OTHER_END = {"low": "high", "lower_bound": "upper_bound", "only_a_right": "only_b_right"}
OTHER_END |= {"right_to_wrong": "wrong_to_right", "joint_low": "joint_high"}
OTHER_END |= {other: name for name, other in OTHER_END.items()}
OF_DIFFERENCE = {"difference", "raw_difference", "lower_bound", "upper_bound", "joint_low", "joint_high"}
OF_SCORE = {"estimate", "probability_b_better", "baseline_score", "candidate_score", "baseline", "candidate"}


def walked(of_rows, of_object):
    """A function of results that makes others of all lists in them, and of all objects."""

    def walk(value):
        if isinstance(value, list):
            return of_rows([walk(one) for one in value])
        return of_object({key: walk(one) for key, one in value.items()}) if isinstance(value, dict) else value

    return walk


def turned_over(found):
    """Scores from the other end, differences with the other sign, and ends of intervals in each other's place."""
    found, ends = {name: found[OTHER_END.get(name, name)] for name in found}, {"low", "high"}
    signed = OF_DIFFERENCE | (ends if "difference" in found else set())
    from_one = (OF_SCORE | ends) - signed
    numbers = {name: one for name, one in found.items() if isinstance(one, float)}
    of_sign = {name: -one for name, one in numbers.items() if name in signed}
    unlike = dict.fromkeys(found.keys() & ONE_SIDED)
    return found | of_sign | {name: 1.0 - one for name, one in numbers.items() if name in from_one} | unlike


def without_twin(rows):
    """Rows of the twin must be those of the first model, and are left out."""
    rows = [one for one in rows if not (isinstance(one, dict) and one.get("model_id") == PAST)]
    twins = [one for one in rows if is_of_twin(one)]
    renamed_back = [{**one, "model_id": one["model_id"].removesuffix(TWIN)} for one in twins]
    assert all(any(not differences(one, other) for other in rows) for one in renamed_back)
    return [one for one in rows if one not in twins]


def is_of_twin(row):
    return isinstance(row, dict) and str(row.get("model_id")).endswith(TWIN)


RELATIONS = {
    "rows in another order": Relation(shuffled),
    "models from the last": Relation(from_the_last("model_id")),
    "items from the last": Relation(from_the_last("item_id")),
    "longer names": Relation(longer_names, DRAWN_BY_NAME, name="name~{}".format),
    "other names": Relation(renamed, BUT_BY_NAME, name=new_name),
    "names in other places": Relation(
        in_other_places, BUT_BY_NAME, name=exchanged, read=partial(NAME.sub, lambda found: other_places()[1][found[0]])
    ),
    "files in parts": Relation(in_parts),
    "all at once": Relation(
        lambda frame: in_parts(shuffled(renamed(from_the_last("item_id")(frame)[0])[0])[0]), BUT_BY_NAME, name=new_name
    ),
    "a copy beside": Relation(
        with_twin,
        tuple(verb for verb in VERBS if verb.startswith(("estimate", "compare", "replay")) and "ranking" not in verb),
        found=walked(without_twin, dict),
    ),
    "wrong for right": Relation(
        turned,
        ("select, anchors", "estimate, symmetric", "estimate, design", "compare, paired", "gate"),
        expected=walked(list, turned_over),
        found=walked(list, lambda found: found | dict.fromkeys(found.keys() & ONE_SIDED)),
    ),
}
QUICK = ("all at once", "a copy beside", "wrong for right")


def carried_through(folder, relation):
    """Write the tables, changed, and return what each verb prints, by verb."""
    frames, models = tables()
    for name, frame in frames.items():
        for part, changed in enumerate(relation.change(frame)):
            changed.write_csv(folder / f"{name}-{part}.csv")
        files = sorted(path.name for path in folder.glob(f"{name}-?.csv"))
        about = ("--models", "models.csv") if name == "suite" else ()
        names = pl.Series("model_id", map(relation.name, models["model_id"]))
        models.with_columns(names).write_csv(folder / "models.csv")
        printed(folder, ("import", *files, *about, "-o", f"{name}.parquet"))
    found = {}
    for verb, lines in VERBS.items():
        named = re.sub("@([^ ]+)", lambda found: relation.name(found[1]), lines)
        texts = [printed(folder, shlex.split(line), relation.read) for line in named.splitlines()]
        found[verb] = [canonical(text) for text in texts]
    return found


def printed(folder, words, read=str):
    """Run a command that must succeed, or judge; return what it says as JSON, with names as they were."""
    has_forms = words[:2] != ["session", "start"] and words[0] != "import"
    done = run_here((*words, *(("--format", "json") if has_forms else ())), folder=folder)
    assert done.code in {0, 3} or words[0] == "gate", f"{words}: {done.err}{done.escaped}"
    return json.loads(read(done.out)) if has_forms else None


def canonical(value, key=""):
    """Say the same with names as they were, and rows and names in order."""
    if isinstance(value, dict):
        return {MARK.sub("", one): canonical(value[one], one) for one in value if one not in IGNORED}
    if isinstance(value, list):
        rows = [canonical(one) for one in value]
        is_sorted = rows and isinstance(rows[0], dict | str) and key not in ORDERED
        return sorted(rows, key=names_in) if is_sorted else rows
    return DIGEST.sub("digest", MARK.sub("", value)) if isinstance(value, str) else value


def names_in(row):
    return [row] if isinstance(row, str) else [str(one) for one in row.values() if isinstance(one, str)]


def differences(one, other, place=""):
    """Where two results differ. Sums in another order differ by 1e-12 or less, and fits pass that on."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for key in one for found in differences(one[key], other[key], f"{place}.{key}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return [found for number, pair in enumerate(pairs) for found in differences(*pair, f"{place}[{number}]")]
    if isinstance(one, float) and isinstance(other, float):
        is_same = np.isclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)
        return [] if is_same else [f"{place}: {one} became {other}"]
    return [] if one == other else [f"{place}: {one} became {other}"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory, few_folds):
    return carried_through(tmp_path_factory.mktemp("plain"), Relation(lambda frame: [frame]))


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one not in QUICK)) for one in RELATIONS]
)
def test_every_number_is_as_the_relation_says(plain, tmp_path, name):
    relation = RELATIONS[name]
    found = carried_through(tmp_path, relation)
    for verb in relation.verbs:
        assert differences(relation.expected(plain[verb]), relation.found(found[verb])) == [], verb
