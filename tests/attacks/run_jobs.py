"""Runs inside harnesses that are killed: what they need, and what must be the same of what they leave."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from itembank.bank.bank_files import save_bank
from itembank.gating.running import KIND as OF_GATE
from itembank.responses.response_files import write_responses
from itembank_harnesses.inspect.command import last_run
from itembank_harnesses.readers.inspect_samples import content_hash
from tests.attacks.jobs import FAST, answers_of_session, job
from tests.attacks.judging import contents
from tests.attacks.running import run_well
from tests.harnesses.inspect.conftest import simulated_bank

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CALLS = "calls.txt"
"""Every request of a model, one a line."""
IN_FLIGHT = 4
"""Items that a run asks at once; a multiple-choice question takes four requests."""


def make_run_workplace(folder: Path) -> None:
    import simulated_lm  # noqa: PLC0415 (of the examples)

    simulated_lm.write_tasks(folder / "tasks")
    places = ("--include_path", str(folder / "tasks"), "--tasks", "quiz", "--output_path", str(folder / "logs"))
    simulated_lm.run_family(10, places)
    toy = (EXAMPLES / "inspect_toy.py").read_text(encoding="utf-8")
    line = "skill = float("
    noted = f'open("{CALLS}", "a").write(f"{{state.sample_id}}\\n")\n        {line}'
    (folder / "toy.py").write_text(toy.replace(line, noted, 1), encoding="utf-8")
    numbers = [(37 * k % 89, 53 * k % 97) for k in range(1, 121)]
    hashes = [content_hash(f"What is {a} + {b}?", str(a + b)) for a, b in numbers]
    bank = simulated_bank(hashes, [f"sum-{a}-{b}" for a, b in numbers], task="toy")
    save_bank(bank, folder / "toy-bank")
    write_responses(bank.responses.take(models=np.array([20])), folder / "toy-base.parquet")
    for line in (
        "import logs -o past.parquet",
        "calibrate past.parquet -o bank --method map --dims 1 --no-folds",
        "gate start logs/sim-4 --margin 0.12 -o gate",
        "gate start toy-base.parquet --margin 0.15 -o toy-gate",
    ):
        run_well(line.split(), folder)


def left_by_run(path: Path) -> object:
    """What was asked and kept: requests without the few that may be asked twice, answers, samples and logs."""
    if path.name == CALLS:
        asked = Counter(path.read_text(encoding="utf-8").splitlines())
        n_twice = asked.total() - len(asked)
        return sorted(asked) if n_twice <= 4 * IN_FLIGHT else f"{n_twice} requests were sent twice"
    if (path / "task.json").is_file():
        run = last_run(path)
        if run is None:
            return None
        scores = sorted((str(one.id), one.scores) for one in run.samples.values())
        return json.loads(json.dumps([run.is_finished, scores], default=str))
    journals = {one.name: one for one in path.glob("*.jsonl")}
    kinds = {"gate.jsonl": (OF_GATE,)}
    kept = [json.loads(line) for file in path.glob("*.rows") for line in file.read_text("utf-8").splitlines()]
    logged = [one for file in path.rglob("samples_*.jsonl") for one in map(json.loads, file.open(encoding="utf-8"))]
    return {
        "answers": {name: sorted(answers_of_session(one, *kinds.get(name, ()))) for name, one in journals.items()},
        "kept": sorted([one["item_id"], one["rows"]] for one in kept if "item_id" in one),
        "logged": sorted([one["doc_hash"], one["filter"]] for one in logged),
        "results": len(list(path.rglob("results_*.json"))),
        "selection": contents(path).get("selection.json"),
    }


MODEL = f"--model simulated --model_args skill=0.6,seed=99,model=new,calls={CALLS},delay=0.005 --include_path tasks"
LM_EVAL = f"run lm-eval bank {{}} -o out --batch {IN_FLIGHT} --import simulated_lm --format json -- {MODEL}"
INSPECT = (
    "run inspect toy-bank toy.py {} -o out --format json -- "
    f"--model mockllm/skill-0.4 --display none --max-samples {IN_FLIGHT}"
)
WAYS = {"selection": "-n 16", "session": f"--adaptive --max-items 16 {FAST}", "gate": "--gate {}gate"}
RUN_JOBS = {
    f"{harness}, {way}": job(line.format(words.format(prefix)), needs, f"out {CALLS}", read=left_by_run, goes_on=True)
    for harness, line, prefix, needs in (
        ("lm-eval", LM_EVAL, "", "tasks bank gate"),
        ("inspect", INSPECT, "toy-", "toy.py toy-bank toy-gate"),
    )
    for way, words in WAYS.items()
}
