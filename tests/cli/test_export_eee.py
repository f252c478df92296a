import json


def test_estimates_go_out_as_records(run, tmp_path):
    row = {"model_id": "org/a", "target": "gsm8k", "estimate": 0.5, "low": 0.4, "high": 0.6, "level": 0.95}
    row |= {"standard_error": 0.05, "interval": "design", "n_items": 3, "n_total": 9, "method": "mean", "bank": "b"}
    (tmp_path / "e.json").write_text(json.dumps({"schema_version": "itembank.estimate/1", "rows": [row]}))
    command = ("export", "eee", tmp_path / "e.json", "-o", tmp_path / "records", "--organization", "us")
    outcome = run(*command, "--format", "json")
    assert outcome.code == 0
    (said,) = json.loads(outcome.out)["rows"]
    assert (said["model_id"], said["n_results"]) == ("org/a", 1)
    (path,) = (tmp_path / "records").iterdir()
    assert str(path) == said["file"]
    assert "deployed" in outcome.err


def test_a_table_is_no_estimates(run, tmp_path):
    (tmp_path / "e.json").write_text('{"a": 1}')
    outcome = run("export", "eee", tmp_path / "e.json", "-o", tmp_path / "records", "--organization", "us")
    assert (outcome.code, outcome.out) == (1, "")
    assert "itembank estimate ... --format json" in outcome.err
    assert not (tmp_path / "records").exists()
