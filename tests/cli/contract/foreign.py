"""Results of other tools: reports of SWE-bench, JSON of a shape of its own, and a public store."""

import json

from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl, write_live_code_bench

IDS = [f"owner__tool-{k}" for k in range(4)]


def make_files(folder):
    for name, n_resolved in (("a.run", 1), ("b.run", 2)):
        content = {"submitted_ids": IDS, "resolved_ids": IDS[:n_resolved], "unresolved_ids": IDS[2:3]}
        write(folder / "reports" / f"{name}.json", {**content, "error_ids": IDS[3:], "total_instances": 4})
    write(folder / "twice" / "a.run1.json", {"submitted_ids": IDS, "resolved_ids": IDS[:1], "unresolved_ids": IDS[1:]})
    write(folder / "twice" / "a.run2.json", {"submitted_ids": IDS, "resolved_ids": IDS[1:], "unresolved_ids": IDS[:1]})
    rows = [{"doc": {"id": f"q{k}"}, "marks": {"acc": k % 2, "other": 0.5}} for k in range(4)]
    (folder / "deep.json").write_text(json.dumps({"name": "a", "rows": rows, "more": rows[:2]}), encoding="utf-8")
    (folder / "fewer.json").write_text(json.dumps({"name": "b", "rows": rows[:3]}), encoding="utf-8")
    again = [*rows, {"doc": {"id": "q0"}, "marks": {"acc": 1, "other": None}}, {"doc": {"id": "q9"}, "marks": {}}]
    (folder / "again.json").write_text(json.dumps({"name": "a", "rows": again}), encoding="utf-8")
    write_alpaca_eval(folder / "alpaca", {"a": [1.25, 2.0], "b": [1.0, 1.5]})
    write_alpaca_eval(folder / "alpaca", {"a": [1.5, 1.0], "b": [2.0, 1.0]}, judge="other")
    write_bfcl(folder / "bfcl", {"a": [0]})
    write_bfcl(folder / "bfcl-more", {"a": [0, 1]})
    samples = [{"base_status": "pass", "plus_status": one} for one in ("pass", "fail")]
    write(folder / "evalplus" / "a_eval_results.json", {"eval": {"HumanEval/0": samples, "HumanEval/1": samples}})
    write_live_code_bench(folder / "livecodebench", {"a": {"p": [True, False], "q": [True, True]}})
    name = "evaluation/verified/20240101_a/results/results.json"
    write(folder / "swe" / name, {"resolved": IDS[:1], "no_generation": IDS[1:3], "no_logs": IDS[3:]})
    (folder / "reports.csv").write_text("model_id,size\na,1\nb,2\n")
    (folder / "deep-items.csv").write_text("item_id,hours\n" + "".join(f"q{k},{k}\n" for k in range(4)))
    known = [{"item_id": one, "hours": k} for k, one in enumerate(IDS)]
    (folder / "instances.jsonl").write_text("\n".join(map(json.dumps, known)), encoding="utf-8")
    known = [{"item_id": one, "hours": 2 * k} for k, one in enumerate(IDS)]
    (folder / "instances-2.jsonl").write_text("\n".join(map(json.dumps, known)), encoding="utf-8")
