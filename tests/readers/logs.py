"""Makes logs as lm-evaluation-harness writes them."""

import json
from dataclasses import replace
from functools import partial

from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec

DATE = "2025-03-01T10-00-00.000001"


def sample(doc_id, *, doc=None, filter_name="none", metrics=None, **values):
    """Make one line of a samples file; `metrics=False` leaves out the names, as releases before 0.4.6 did."""
    row = {
        "doc_id": doc_id,
        "doc": {"question": doc or f"question {doc_id}", "deep": {"list": [1, {"x": None}]}},
        "target": "A",
        "arguments": {"gen_args_0": {"arg_0": "Question: ...", "arg_1": " A"}},
        "resps": [[["-1.5", "False"]]], "filtered_resps": [["-1.5", "False"]], "doc_hash": f"hash of {doc or doc_id}",
        "prompt_hash": "p", "target_hash": "t",
    }  # fmt: skip
    if metrics is not False:
        row |= {"filter": filter_name, "metrics": list(values)}
    return row | values


def answers(*values, metric="acc", **more):
    """Make one sample a value, of documents counted from 0."""
    return [sample(number, **{metric: float(value)}, **more) for number, value in enumerate(values)]


def write_run(
    folder,
    model,
    tasks,
    *,
    date=DATE,
    sizes=None,
    lower=(),
    filters=None,
    groups=None,
    results=True,
    arguments=None,
    suffix="jsonl",
    stated=None,
    **more,
):
    """Write one run: `tasks` maps task to its samples, `more` stands in the results. Returns the model's folder."""
    place = folder / model.replace("/", "__")
    place.mkdir(parents=True, exist_ok=True)
    for task, rows in tasks.items():
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (place / f"samples_{task}_{date}.{suffix}").write_text(text, encoding="utf-8")
    if results:
        content = {
            "results": stated or {task: {"alias": task, "acc,none": "N/A"} for task in tasks},
            "group_subtasks": groups or {},
            "configs": {task: {"task": task, "filter_list": [{"name": n} for n in filters or ()]} for task in tasks},
            "versions": dict.fromkeys(tasks, 1.0),
            "higher_is_better": {task: dict.fromkeys(lower, False) for task in tasks},
            "n-samples": {task: {"original": size, "effective": _sizes(tasks).get(task, size)} for task,
                size in (sizes or _sizes(tasks)).items()},
            "config": {"model": "hf", "model_args": arguments or f"pretrained={model}", "limit": None},
            "model_name": model, **more,
        }  # fmt: skip
        (place / f"results_{date}.json").write_text(json.dumps(content), encoding="utf-8")
    return place


def _sizes(tasks):
    return {task: len({row["doc_id"] for row in rows}) for task, rows in tasks.items()}


def read_as(source, paths, *, spec=None, **arguments):
    """Read the results of one program, whatever else the files could be."""
    return read_responses(paths, spec=replace(spec or ReadingSpec(), format=source), **arguments)


read_lm_eval, read_inspect = partial(read_as, "lm-eval"), partial(read_as, "inspect")
