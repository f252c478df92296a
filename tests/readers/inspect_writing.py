"""Logs as Inspect writes them, small."""

import json
import zipfile


def header(task="toy", model="lab/a", created="2026-01-02T03:04:05+00:00", *, task_id=None, n_items=3, **more):
    about = {
        "task": task, "task_id": task_id or f"{task}-{model}", "created": created, "model": model,
        "dataset": {"samples": n_items}, "packages": {"inspect_ai": "0.3.285"},
    }  # fmt: skip
    return {"version": 2, "status": "success", "eval": {**about, **more}, "results": {}}


def sample(sample_id, value="C", *, epoch=1, scorer="match", **more):
    scores = None if value is None else {scorer: {"value": value}}
    return {"id": sample_id, "epoch": epoch, "input": f"Question {sample_id}", "target": "x", "scores": scores, **more}


def write_eval(path, samples, about=None, *, method=zipfile.ZIP_DEFLATED, finished=True):
    """Write an archive; of a run that was killed it holds the journal only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    about = about or header()
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": about["eval"], "plan": {}}))
        for number, part in enumerate((samples[:2], samples[2:]), start=1):
            archive.writestr(f"_journal/summaries/{number}.json", json.dumps(part))
        if finished:
            archive.writestr("summaries.json", json.dumps(samples))
            archive.writestr("header.json", json.dumps(about))
    return path


def write_json(path, samples, about=None):
    path.write_text(json.dumps({**(about or header()), "samples": samples}, indent=2), encoding="utf-8")
    return path
