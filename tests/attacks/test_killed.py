import json
import subprocess
import sys

from tests.attacks.conftest import SEED, TIMES


def test_killed_commands_spoil_nothing():
    words = [sys.executable, "-m", "tests.attacks", str(8 * TIMES), str(TIMES), str(5 + SEED)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600 * TIMES)
    assert done.returncode == 0, done.stdout + done.stderr
    *kills, told = [json.loads(line) for line in done.stdout.splitlines()]
    n_killed = sum(int(one.get("was_killed", 0)) + one.get("n_killed", 0) for one in (*kills, told))
    sys.stdout.write(f"killed processes: {n_killed}\n")
    assert sum(one.get("was_killed", False) for one in kills) > 3
    assert told["n_told"] == 20
    assert told["n_killed"] > 0
