"""Kills of runs inside harnesses, in a fresh process."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("lm_eval")
pytest.importorskip("inspect_ai")

from tests.attacks.conftest import SEED, TIMES
from tests.attacks.run_jobs import EXAMPLES
from tests.harnesses.inspect.test_command_line import environment  # noqa: F401 (a fixture)

pytestmark = pytest.mark.harness


def test_killed_runs_lose_nothing_and_ask_nothing_twice(environment, tmp_path):  # noqa: F811
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path)}
    path = os.pathsep.join((environment["PYTHONPATH"], str(EXAMPLES)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks", str(4 * TIMES), "0", str(5 + SEED), "1"],
        env={**environment, **offline, "TQDM_DISABLE": "1", "PYTHONPATH": path},
        cwd=EXAMPLES.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=600 * TIMES,
    )
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    n_killed = sum(one["was_killed"] for one in kills)
    sys.stdout.write(f"killed runs: {n_killed}\n")
    assert n_killed > 1
