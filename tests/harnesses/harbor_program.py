"""A stand-in for Harbor: `harbor run -c FILE -a AGENT -m MODEL` on folders of tasks, with job folders in its layout.

In place of a file it takes the options of a recipe, `-d NAME@VERSION -i TASK -o FOLDER`.
A task is a folder with `task.toml`: its `difficulty`, and a name with an organisation. The name of a model ends in its
skill. HARBOR_TROUBLE is JSON: tasks by the exception that their trials end in, `stop_after` so many trials, and `most`,
the reward `tests` of a right answer beside another.
"""

import hashlib
import json
import os
import sys
import tomllib
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path


def chance(*parts):
    return int(hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:8], 16) / 2**32


def value(words, *names):
    return next((words[number + 1] for number, word in enumerate(words) if word in names), None)


def options(words, names):
    """The job that the options alone make."""
    name, _, version = value(words, "-d").partition("@")
    data_set = {"name": name, "version": version, "task_names": names}
    return {"job_name": "2026-11-10__12-00-00", "jobs_dir": value(words, "-o"), "n_attempts": 1, "datasets": [data_set]}


def task_ids(data_set):
    """Folders of tasks that a data set's patterns choose; those of a named one are in the folder `registry`."""
    folder = Path(data_set["path"]) if "path" in data_set else Path("registry", data_set["name"])
    return [one for one in sorted(folder.iterdir()) if any(fnmatch(one.name, name) for name in data_set["task_names"])]


def write_trial(job, folder, number, *, agent, llm, dataset, multiplier, most, error):
    """Run a trial, of which a file tells the result; broken, cancelled or cut off where `error` says so."""
    text = (folder / "task.toml").read_text()
    about = tomllib.loads(text)
    broke = error not in {None, "AgentTimeoutError"}
    is_right = chance(llm, folder.name, number) < 0.5 + float(llm.rpartition("-")[2]) - about["difficulty"]
    provider, _, name = llm.partition("/")
    times = {"started_at": "2026-11-10T12:00:00Z", "finished_at": "2026-11-10T12:01:00Z"}
    rewards = {"reward": float(is_right)} if most is None else {"style": 0.0, "tests": most * is_right}
    result = {
        "task_name": about["task"]["name"],
        "trial_name": f"{folder.name}__{number:07d}",
        "source": dataset,
        "task_checksum": hashlib.sha256(text.encode()).hexdigest(),
        "config": {"agent": {"name": agent, "model_name": llm, "kwargs": {}}, "timeout_multiplier": multiplier},
        "agent_info": {
            "name": agent,
            "version": "unknown" if broke else "1.0",
            "model_info": {"name": name, "provider": provider},
        },
        "agent_result": None if broke else {"n_input_tokens": 100, "n_output_tokens": 10, "cost_usd": 0.5},
        "verifier_result": None if broke else {"rewards": rewards},
        "exception_info": error and {"exception_type": error, "exception_message": "x"},
        "started_at": f"2026-11-10T12:00:{number:02d}Z",
        "finished_at": "2026-11-10T12:09:00Z",
        "agent_execution": None if broke else times,
    }
    place = job / result["trial_name"]
    (place / "agent").mkdir(parents=True)
    content = json.dumps(result)
    (place / "result.json").write_text(content[:40] if error == "cut off" else content)


def main(words):
    assert words[0] == "run"
    path, names = value(words, "-c"), [after for word, after in pairwise(words) if word == "-i"]
    config = json.loads(Path(path).read_text()) if path else options(words, names)
    trouble = json.loads(os.environ.get("HARBOR_TROUBLE", "{}"))
    job = Path(config["jobs_dir"], config["job_name"])
    (data_set,) = config["datasets"]
    found = task_ids(data_set)
    if job.exists() or not found:
        sys.exit(f"No tasks matched {data_set['task_names']}, or {job} is there.")
    told = (config.get("agents") or [{}])[0]
    about = {
        "agent": value(words, "-a", "--agent") or told["name"],
        "llm": value(words, "-m", "--model") or told["model_name"],
        "dataset": data_set.get("name") or Path(data_set["path"]).name,
        "multiplier": float(value(words, "--timeout-multiplier") or 1.0),
        "most": trouble.get("most"),
    }
    trials = [(folder, number) for number in range(config["n_attempts"]) for folder in found]
    for n_done, (folder, number) in enumerate(trials):
        if n_done == trouble.get("stop_after"):
            write_trial(job, folder, number, error="CancelledError", **about)
            write_trial(job, trials[n_done + 1][0], number + 50, error="cut off", **about)
            sys.exit(130)
        write_trial(job, folder, number, error=trouble.get(folder.name), **about)
    (job / "config.json").write_text(json.dumps(config))
    stats = {"evals": {}, "n_errored_trials": 0}
    (job / "result.json").write_text(json.dumps({"n_total_trials": len(trials), "stats": stats}))
    sys.stdout.write("the mean of the chosen tasks, which is no estimate\n")


if __name__ == "__main__":
    main(sys.argv[1:])
