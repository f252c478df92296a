"""What the reader of every program must hold: nothing, half a file, other content, copies and odd names."""

import itertools
import json
import shutil
import warnings
import zipfile
from contextlib import suppress

import numpy as np
import polars as pl
import pytest

from itembank.errors import DataError
from itembank.readers.collecting import laid_out
from itembank.readers.read import read_responses
from itembank.readers.sources import sources
from tests.readers import (
    inspect_writing,
    logs,
    test_evalscope,
    test_every_eval_ever,
    test_harbor,
    test_helm,
    test_lighteval,
    test_lost_answers,
    test_opencompass,
    test_store_readers,
    test_terminal_bench,
    test_trials,
)
from tests.readers.public import stores
from tests.readers.reading import put, refuses
from tests.readers.reading import read as read_file

TOKENS = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
PLAIN = ("x", "y")
"""Items of the one model of each program: the first answer is right, the second wrong."""


def py_irt(folder, ids):
    line = {"subject_id": "m", "responses": dict(zip(ids, (1, 0), strict=True))}
    stores.write(folder / "r.jsonl", [line], lines=True)


def promptfoo(folder, _ids):
    results = test_lost_answers.promptfoo(*test_lost_answers.PROMPTFOO[:2])
    stores.write(folder / "out.json", {"evalId": "e", "results": {"version": 3, "results": results}})


def tau2(folder, ids):
    runs = [test_trials.simulation(k, float(k == 0)) | {"task_id": one} for k, one in enumerate(ids)]
    file = test_trials.results(runs)
    file["tasks"] = [{"id": one, "description": {"purpose": one}} for one in ids]
    stores.write(folder / "m.json", file)


def harbor(folder, ids):
    trials = [test_harbor.trial(one, float(k == 0), number=k) for k, one in enumerate(ids)]
    place = test_harbor.write_job(folder / "job", [{**one, "task_name": f"t{k}"} for k, one in enumerate(trials)])
    for k, one in enumerate(trials):
        put(place / f"t{k}__{k:07d}" / "result.json", one)


def terminal_bench(folder, ids):
    trials = [test_terminal_bench.trial(one, k == 0) | {"trial_name": f"t{k}"} for k, one in enumerate(ids)]
    test_terminal_bench.write_run(folder / "run", [{**one, "task_id": f"t{k}"} for k, one in enumerate(trials)])
    for k, own in enumerate(trials):
        stores.write(folder / "run" / f"t{k}" / f"t{k}" / "results.json", own)
    stores.write(folder / "run" / "results.json", test_terminal_bench.results(trials))


def swe_bench(folder, ids):
    content = {"submitted_ids": [*ids], "resolved_ids": [ids[0]], "unresolved_ids": [ids[1]], "total_instances": 2}
    stores.write(folder / "m.run.json", content)


def inspect(folder, ids):
    samples = [inspect_writing.sample(one, "CI"[k]) for k, one in enumerate(ids)]
    inspect_writing.write_eval(folder / "m.eval", samples, inspect_writing.header(n_items=2))


def mmlu_pro(folder, ids):
    answers = [{"question_id": one, "category": "law", "answer": "A", "pred": "AB"[k]} for k, one in enumerate(ids)]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "model_outputs_m_5shots.zip", "w") as archive:
        archive.writestr("a.json", json.dumps(answers))


def open_eval(folder, _ids):
    scores = [{"metric": [{"name": "acc"}], "value": [float(k == 0)]} for k in range(2)]
    ids = [f"b_20240101T000000Z_{k}_m_0" for k in range(2)]
    (folder / "response").mkdir(parents=True)
    frame = pl.DataFrame({"response_id": ids, "model": [{"name": "m"}] * 2, "scores": scores})
    frame.write_parquet(folder / "response" / "b.parquet")


def lighteval(folder, _ids):
    test_lighteval.write(folder / "details_org__m" / test_lighteval.DATE, "harness|arc|25", test_lighteval.OLD)


def opencompass(folder, _ids):
    content = {"accuracy": 50.0, "details": test_opencompass.details(True, False)}
    test_opencompass.write(folder, "results", "m", "d", content)


def evalplus(folder, ids):
    """The second item as old releases wrote it."""
    new = test_store_readers.new_style({ids[0]: [("pass", "pass")]})
    old = test_store_readers.old_style({ids[1]: [("pass", "fail")]})
    stores.write(folder / "m_eval_results.json", {"eval": {**new, **old}, "pass_at_k": {}})


def eee(folder, ids):
    more = {"token_usage": TOKENS, "performance": {"latency_ms": 3}}
    lines = [test_every_eval_ever.line(one, float(k == 0), **more) for k, one in enumerate(ids)]
    test_every_eval_ever.write(folder, 1, lines)


def helm(folder, ids):
    entries = [test_helm.entry(one, exact_match=float(k == 0), num_prompt_tokens=3) for k, one in enumerate(ids)]
    test_helm.write_run(folder, "b:model=m", entries, questions={one: f"question {one}" for one in ids})


def evalscope(folder, _ids):
    """The second item as old releases wrote it."""
    output = {"usage": TOKENS, "time": 1.5, "error": None}
    old = {**test_evalscope.old_review(0, False), "usage": TOKENS}
    test_evalscope.write(folder, "reviews", "m", "t_x", [test_evalscope.review(0, {"acc": 1.0}, status="success")])
    test_evalscope.write(folder, "predictions", "m", "t_x", [{"index": 0, "model_output": output}])
    test_evalscope.write(folder, "reviews", "m", "t_y", [old])


def live_code_bench(folder, ids):
    stores.write_live_code_bench(folder, {"m": {one: [k == 0] for k, one in enumerate(ids)}})


MADE = {
    "py-irt": py_irt,
    "promptfoo": promptfoo,
    "verifiers": lambda folder, _ids: test_trials.write("verifiers", folder, [[1.0], [0.0]]),
    "tau-bench": lambda folder, _ids: test_trials.write("tau-bench", folder, [[1.0], [0.0]]),
    "lm-eval": lambda folder, _ids: logs.write_run(folder, "m", {"arc": logs.answers(1, 0)}),
    "alpaca-eval": lambda folder, _ids: stores.write_alpaca_eval(folder, {"m": [2.0, 1.0]}),
    "bfcl": lambda folder, _ids: stores.write_bfcl(folder, {"m": [1]}, n_items=2),
    "harbor": harbor, "tau2": tau2, "terminal-bench": terminal_bench, "inspect": inspect, "helm": helm, "eee": eee,
    "evalscope": evalscope, "lighteval": lighteval, "opencompass": opencompass, "swe-bench": swe_bench,
    "evalplus": evalplus, "livecodebench": live_code_bench, "mmlu-pro": mmlu_pro, "open-eval": open_eval,
}  # fmt: skip
UNNAMED = {
    *("promptfoo", "verifiers", "tau-bench", "lm-eval", "evalscope", "lighteval", "opencompass", "bfcl", "open-eval"),
    "alpaca-eval",
}
"""Programs whose items are numbers, or hold one, or are digests."""
EVERY = pytest.mark.parametrize("program", sources())


def read(program, place):
    """Read what a program left at a place; whatever is said aloud beside."""
    files = sorted(path for path in place.rglob("*") if path.is_file())
    is_walked = bool(sources()[program].files)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = read_file(place if is_walked else results(files), format=program)
    return found, [str(one.message) for one in said]


def results(files):
    """Those of a program's files that hold results, where it walks no folders."""
    return [one for one in files if one.name not in {"metadata.json", "eval.json"}]


@EVERY
def test_results_are_read_alone_and_told_by_themselves(program, tmp_path):
    MADE[program](tmp_path, PLAIN)
    found, _ = read(program, tmp_path)
    assert (found.n_models, sorted(found.responses[0].tolist(), reverse=True)) == (1, [1.0, 0.0])
    if program == "open-eval":  # whose tables are told by nothing but the folder's name
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = read_responses(tmp_path)
    assert (again.model_ids, again.item_ids) == (found.model_ids, found.item_ids)
    np.testing.assert_array_equal(again.responses, found.responses)


@EVERY
def test_an_empty_folder_is_refused_by_its_name(program, tmp_path):
    (tmp_path / "none").mkdir()
    refuses(r"none", read_file, tmp_path / "none", format=program)


@EVERY
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_cut_file_is_refused_or_its_loss_is_said(program, share, tmp_path):
    MADE[program](tmp_path, PLAIN)
    whole, _ = read(program, tmp_path)
    for number, file in enumerate(sorted(path for path in tmp_path.rglob("*") if path.is_file())):
        place = tmp_path.with_name(f"{tmp_path.name}-{number}")
        shutil.copytree(tmp_path, place)
        cut = place / file.relative_to(tmp_path)
        cut.write_bytes(cut.read_bytes()[: int(share * file.stat().st_size)])
        try:
            found, said = read(program, place)
            refused = ""
        except DataError as error:
            refused = str(error)
        if refused:
            # of EvalScope a task with predictions and an empty file of reviews is named, and no file
            assert str(place) in refused or "task 't_x' has no metric" in refused
            continue
        n_lost = 0 if found.lost is None else int(found.lost.n.sum())
        assert np.isin(found.responses[~np.isnan(found.responses)], whole.responses).all()
        assert found.observed.sum() + n_lost == 2 or said


OTHERS = ("[]", "{}", '""', "null", "3", "[[]]", '[{"a": 1}]', '{"results": []}', "true\n", '{"eval": {}}')


@EVERY
@pytest.mark.parametrize("other", OTHERS)
def test_other_content_is_refused_or_said(program, other, tmp_path):
    MADE[program](tmp_path, PLAIN)
    for file in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        file.write_text(other)
    with pytest.raises(DataError):
        read(program, tmp_path)


ODD = (None, True, 0, -1, 1e308, float("nan"), "", "x", [], [None], [[1]], {}, {"x": 1}, 2**70, [{}], 10**400)


def places(value, path=()):
    """Every place in a document but the document itself."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from places(part, (*path, key))


def changed(value, path, odd):
    """The document with something else in a place."""
    if not path:
        return odd
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], odd)
    return copy


def documents(folder):
    """Each document of JSON below a folder, with a function that writes it again."""
    for file in sorted(path for path in folder.rglob("*") if path.suffix in {".json", ".jsonl"}):
        for layout in (str.splitlines, lambda text: [text]):
            with suppress(ValueError):
                yield [json.loads(part) for part in layout(file.read_text())], file.write_text
                break
    for file in sorted(path for path in folder.rglob("*") if path.suffix in {".eval", ".zip"}):
        with zipfile.ZipFile(file) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        for name, own in members.items():

            def write(text, name=name, file=file, members=members):
                with zipfile.ZipFile(file, "w") as archive:
                    for other, content in members.items():
                        archive.writestr(other, text if other == name else content)

            yield [json.loads(own)], write


@EVERY
@pytest.mark.parametrize("first", [0, 5, 10])
def test_an_odd_value_anywhere_gives_responses_or_a_clear_error(program, first, tmp_path):
    MADE[program](tmp_path, PLAIN)
    odd = itertools.cycle(ODD[first:] + ODD[:first])
    for content, write in documents(tmp_path):
        for place in [*places(content)][1:]:
            write("\n".join(map(json.dumps, changed(content, place, next(odd)))))
            with suppress(DataError):  # any other error fails
                found, _ = read(program, tmp_path)
                known = found.responses[~np.isnan(found.responses)]
                assert ((known >= 0.0) & (known <= 1.0)).all()
        write("\n".join(map(json.dumps, content)))


def test_an_error_names_the_file_and_the_layout(tmp_path):
    with (
        pytest.raises(DataError, match=r"x.json: must be laid out as theirs, .*KeyError"),
        laid_out(tmp_path / "x.json", "theirs"),
    ):
        {}["a"]


@EVERY
def test_results_that_were_copied_count_once_or_are_refused(program, tmp_path):
    MADE[program](tmp_path / "one", PLAIN)
    once, _ = read(program, tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    try:
        found, said = read(program, tmp_path)
    except DataError:
        return
    trials = np.ones_like(once.responses) if once.n_trials is None else once.n_trials
    assert found.model_ids == once.model_ids
    np.testing.assert_array_equal(found.responses, once.responses)
    np.testing.assert_array_equal(np.ones_like(trials) if found.n_trials is None else found.n_trials, trials)
    assert said or program in {"terminal-bench", "inspect"}  # whose runs have ids: a copy is no other run


@pytest.mark.parametrize("program", [one for one in sources() if one not in UNNAMED])
@pytest.mark.parametrize("ids", [
    ("../../etc", "/root"), ("a\nb", "a\tb"), ("<script>", "=1+1"), ("\u202ecba", "\U0001f642"), ("X", "x"),
    ("1", "1.0"),
], ids=ascii)  # fmt: skip
def test_odd_names_stay_as_they_are(program, ids, tmp_path):
    MADE[program](tmp_path, ids)
    found, _ = read(program, tmp_path)
    for one, response in zip(ids, (1.0, 0.0), strict=True):
        (column,) = [k for k, name in enumerate(found.item_ids) if name == one or name.endswith(f"/{one}")]
        assert found.responses[0, column] == response
