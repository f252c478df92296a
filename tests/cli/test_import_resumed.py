"""An import of many logs that was killed goes on after the files it had read, and its result is the same to the bit."""

import os

import pytest

from itembank.readers import inspect_logs, kept_parts, lm_eval
from tests.readers.inspect_writing import header, write_eval
from tests.readers.inspect_writing import sample as inspect_sample
from tests.readers.logs import answers, write_run

N_LOGS = 6
N_BEFORE_DEATH = 4


class Killed(BaseException):
    """What nobody catches."""


def lm_eval_logs(folder):
    for k in range(N_LOGS):
        rows = answers(k % 2, 1, 0.25) + answers(1, 0, 1, filter_name="strict", metric="acc_norm")
        write_run(
            folder, f"org/m{k}", {"arc": rows, "nan": answers(float("nan") if k else 1, k % 3 == 0)}, sizes={"arc": 9}
        )


def inspect_logs_(folder):
    for k in range(N_LOGS):
        samples = [
            inspect_sample(1, "C", model_usage={"m": {"input_tokens": 10 + k, "output_tokens": 5}}, working_time=0.1),
            inspect_sample("two", "I" if k % 2 else "C", epoch=2),
            inspect_sample("three", None, error={"message": "lost"}) if k else inspect_sample("three"),
        ]
        write_eval(folder / f"{k}.eval", samples, header(model=f"lab/m{k}"))


KINDS = {
    "lm-eval": (lm_eval_logs, lm_eval, "read_samples", 2 * N_LOGS),
    "inspect": (inspect_logs_, inspect_logs, "read_log", N_LOGS),
}


@pytest.fixture
def reading(monkeypatch):
    """Count what is read; die after some files where asked."""

    class Reading:
        n_read, dies_after = 0, None

        def watch(self, module, name):
            read = getattr(module, name)

            def counted(*arguments, **choices):
                if self.n_read == self.dies_after:
                    raise Killed
                self.n_read += 1
                return read(*arguments, **choices)

            monkeypatch.setattr(module, name, counted)

        def begin(self, dies_after=None):
            self.n_read, self.dies_after = 0, dies_after

    monkeypatch.setattr(kept_parts, "KEEP_AFTER", 0.0)
    return Reading()


def hidden(folder):
    return [one for one in folder.iterdir() if one.name.startswith(".")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_import_that_was_killed_goes_on(run, tmp_path, reading, kind):
    make, module, name, n_files = KINDS[kind]
    make(tmp_path / "logs")
    reading.watch(module, name)
    whole, output = tmp_path / "whole.parquet", tmp_path / "output.parquet"
    words = ("import", tmp_path / "logs", "-o")
    expected = run(*words, whole)
    assert expected.code == 0, expected.err
    assert (reading.n_read, hidden(tmp_path)) == (n_files, [])

    reading.begin(N_BEFORE_DEATH)
    with pytest.raises(Killed):
        run(*words, output)
    (place,) = hidden(tmp_path)
    parts = sorted(place.iterdir())
    assert len(parts) == N_BEFORE_DEATH
    parts[0].write_bytes(parts[0].read_bytes()[:-30])  # one was half written
    flipped = bytearray(parts[1].read_bytes())
    flipped[len(flipped) // 2] ^= 1
    parts[1].write_bytes(flipped)  # and one is not what was written

    reading.begin()
    outcome = run(*words, output)
    assert reading.n_read == n_files - N_BEFORE_DEATH + 2
    assert output.read_bytes() == whole.read_bytes()
    note = f"{N_BEFORE_DEATH - 2} files were read by an import that did not end, and were not read again."
    assert note in outcome.err
    without = [line for line in outcome.err.splitlines() if "import: reading" not in line and note not in line]
    assert without == [
        line.replace("whole.parquet", "output.parquet")
        for line in expected.err.splitlines()
        if "import: reading" not in line
    ]
    assert hidden(tmp_path) == []


def test_what_changed_since_is_read_again(run, tmp_path, reading):
    lm_eval_logs(tmp_path / "logs")
    reading.watch(lm_eval, "read_samples")
    output = tmp_path / "output.parquet"
    words = ("import", tmp_path / "logs", "-o", output)

    def killed(*options, after):
        reading.begin(after)
        with pytest.raises(Killed):
            run(*words, *options)
        return reading.n_read

    killed(after=N_BEFORE_DEATH)
    killed("--response", "probability", after=3)  # read in another way, so that nothing counts
    changed = tmp_path / "logs" / "org__m0"
    for log in changed.glob("samples_arc_*"):
        os.utime(log, (1.0, 1.0))  # another time
    reading.begin()
    run(*words)
    assert reading.n_read == 2 * N_LOGS - N_BEFORE_DEATH + 1
    assert hidden(tmp_path) == []


def test_a_log_that_grows_while_it_is_read_does_not_count(run, tmp_path, reading, monkeypatch):
    lm_eval_logs(tmp_path / "logs")
    read = lm_eval.read_samples

    def read_while_it_grows(file, **choices):
        part = read(file, **choices)
        if file.model_id == "org/m1":
            with file.path.open("a") as log:
                log.write("\n")
        return part

    monkeypatch.setattr(lm_eval, "read_samples", read_while_it_grows)
    reading.watch(lm_eval, "read_samples")
    words = ("import", tmp_path / "logs", "-o", tmp_path / "output.parquet")
    reading.begin(2 * N_LOGS - 1)
    with pytest.raises(Killed):
        run(*words)
    reading.begin()
    assert run(*words).code == 0
    assert reading.n_read == 1 + 2


def test_a_refused_import_keeps_what_was_read_until_the_log_is_mended(run, tmp_path, reading):
    lm_eval_logs(tmp_path / "logs")
    reading.watch(lm_eval, "read_samples")
    output = tmp_path / "output.parquet"
    words = ("import", tmp_path / "logs", "-o", output)
    log = next((tmp_path / "logs" / "org__m3").glob("samples_arc_*"))
    good = log.read_text()
    log.write_text(good[:-20])
    refused = run(*words)
    assert refused.code == 1
    assert f"What was read stays in {hidden(tmp_path)[0]}" in refused.err
    log.write_text(good)
    reading.begin()
    outcome = run(*words, "--drop-empty")  # a choice that does not matter to the reading of a log
    assert (outcome.code, reading.n_read) == (0, 1)


def test_a_short_import_keeps_nothing(run, tmp_path, reading, monkeypatch):
    monkeypatch.setattr(kept_parts, "KEEP_AFTER", 60.0)
    lm_eval_logs(tmp_path / "logs")
    reading.watch(lm_eval, "read_samples")
    reading.begin(N_BEFORE_DEATH)
    with pytest.raises(Killed):
        run("import", tmp_path / "logs", "-o", tmp_path / "output.parquet")
    assert hidden(tmp_path) == []
