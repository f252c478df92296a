"""A sample of the kills that `make attack` makes by the thousand; a fresh process, as forks need one."""

import json
import subprocess
import sys


def test_killed_commands_spoil_nothing(tmp_path):
    log = tmp_path / "log"
    words = ["tells=1", "kills=8", "--quick", "--jobs", "1", "-o", str(log)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.attacks", *words], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(line) for line in (log / "kills.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(records) == 8
    assert sum(record["n_killed"] for record in records) > 3
    (told,) = (json.loads(line) for line in (log / "tells.jsonl").read_text(encoding="utf-8").splitlines())
    assert told["n_told"] == 20
    assert told["n_killed"] > 0
    assert told["problem"] == ""
