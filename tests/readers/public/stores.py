"""Small folders in the layout of public stores, with results of our own."""

import json


def write(path, content, *, lines=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, content)) if lines else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def write_alpaca_eval(folder, preferences, *, judge="weighted_alpaca_eval_gpt4_turbo", baseline="base", win_rates=()):
    """Annotations of some models; `preferences` has those of each, `win_rates` what the leaderboard says."""
    for model, values in preferences.items():
        records = [
            {
                "instruction": f"say {k}",
                "output_1": "...",
                "generator_1": baseline,
                "dataset": "first" if k % 2 == 0 else "second",
                "output_2": "...",
                "generator_2": model,
                "annotator": judge,
                "preference": value,
                "raw_completion": {"logprobs": {"content": []}},
            }
            for k, value in enumerate(values)
        ]
        write(folder / "results" / model / judge / "annotations.json", records)
    if win_rates:
        rows = "".join(f"{model},{rate},1.2\n" for model, rate in dict(win_rates).items())
        table = folder / "src" / f"{judge}_leaderboard.csv"
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text(f",win_rate,standard_error\n{rows}")


def write_bfcl(folder, wrong, *, n_items=4, category="simple", is_old=False):
    """Score and result files of some models; `wrong` has the places of each model's failures."""
    for model, places in wrong.items():
        results = [
            {"id": f"{category}_{k}", "result": "f()", "input_token_count": 10, "output_token_count": 0, "latency": 0.5}
            for k in range(n_items)
        ]
        failures = [
            {"id": k + 1 if is_old else f"{category}_{k}", "valid": False, "error": ["..."], "prompt": {"q": "..."}}
            for k in places
        ]
        n_correct = n_items - len(places)
        header = {"accuracy": n_correct / n_items, "correct_count": n_correct, "total_count": n_items}
        before = ("", "gorilla_openfunctions_v1_test_") if is_old else ("BFCL_v4_", "BFCL_v4_")
        below = () if is_old else ("non_live",)
        score = folder.joinpath("score", model, *below, f"{before[0]}{category}_score.json")
        write(score, [header, *failures], lines=True)
        write(folder.joinpath("result", model, *below, f"{before[1]}{category}_result.json"), results, lines=True)


def write_live_code_bench(folder, graded, *, stated=None):
    """Graded problems of some models, and the pass@1 that is stated of them."""
    for model, problems in graded.items():
        records = [
            {
                "question_id": name,
                "question_title": "...",
                "difficulty": "easy",
                "platform": "p",
                "contest_date": "2024-01-06T00:00:00",
                "code_list": ["..."] * len(samples),
                "graded_list": samples,
                "pass@1": sum(samples) / max(len(samples), 1),
            }
            for name, samples in problems.items()
        ]
        place = folder / model / "Scenario.codegeneration_2_0.2_eval_all.json"
        write(place, records)
        if stated is not None:
            write(place.with_name("Scenario.codegeneration_2_0.2_eval.json"), [{"pass@1": stated}, {}, []])
