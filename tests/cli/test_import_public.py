from itembank.readers.public.sources import stores
from itembank.readers.read import read_responses
from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl


def test_the_list_says_what_each_source_is(run):
    outcome = run.json("download")
    rows = outcome["rows"]
    assert [row["name"] for row in rows] == list(stores())
    assert all(row["holds"] and row["licence"] and row["address"] for row in rows)
    told = {row["name"]: (row["version"], row["most_gigabytes"]) for row in rows}
    assert told["bfcl"] == ("refs/heads/main", 4)
    assert told["every-eval-ever"] == ("refs/heads/main", 20)
    assert told["evalplus"] == (None, None)
    table = run("download")
    assert table.out.count("refs/heads/main") == sum(version is not None for version, _ in told.values())
    assert "A download takes the newest commit" in table.err


def test_a_source_is_read_and_compared(run, tmp_path):
    write_bfcl(tmp_path / "bfcl", {"a": [0], "b": []})
    outcome = run.ok("download", "bfcl", "--from", tmp_path / "bfcl", "-o", tmp_path / "r.parquet")
    assert "Published scores: 2 compared, 0 differ; largest difference 0." in outcome.err
    assert read_responses(tmp_path / "r.parquet").responses.tolist() == [[0, 1, 1, 1], [1, 1, 1, 1]]


def test_scores_that_differ_are_told(run, tmp_path):
    write_alpaca_eval(tmp_path / "a", {"m": [1.0, 2.0]}, win_rates={"m": 75.0})
    outcome = run.ok("download", "alpaca-eval", "--from", tmp_path / "a", "-o", tmp_path / "r.parquet")
    assert "1 compared, 1 differ; largest difference 0.25." in outcome.err
    assert "'m' on alpaca_eval: 0.5000, published 0.7500" in " ".join(outcome.err.split())


def test_a_folder_without_published_scores_says_so(run, tmp_path):
    write_alpaca_eval(tmp_path / "a", {"m": [1.0, 2.0]})
    outcome = run("download", "alpaca-eval", "--from", tmp_path / "a", "-o", tmp_path / "r.parquet")
    assert "no published scores to compare with" in outcome.err


def test_swe_bench_says_what_errors_count_as(run, tmp_path):
    content = {"submitted_ids": ["o__t-1", "o__t-2"], "resolved_ids": ["o__t-1"], "error_ids": ["o__t-2"]}
    report = write(tmp_path / "agent.run.json", content)
    output = tmp_path / "r.parquet"
    outcome = run.ok("import", report, "-o", output)
    said = "count as missing, not wrong: 1 of 'agent' (1 error). To count them otherwise: --errors wrong or bounds."
    assert said in " ".join(outcome.err.split())
    run("import", report, "--errors", "wrong", "-o", output)
    assert read_responses(output).responses.tolist() == [[1.0, 0.0]]
