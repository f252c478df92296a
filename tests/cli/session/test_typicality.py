"""Sessions say how typical a model's answers are, in numbers and in words."""

from tests.cli.session.loops import LIMIT, play


def test_status_and_replay_say_how_typical_the_answers_are(run, fitted_bank, tmp_path, monkeypatch):
    journal = tmp_path / "run.jsonl"
    run.ok("session", "start", fitted_bank, "-o", journal, "--model-id", "new", *LIMIT)
    play(run, journal)
    monkeypatch.setattr("itembank.estimation.estimates.FLAGGED", 0.0)  # so that none is flagged
    found = run.json("session", "status", journal)
    assert 0.0 <= found["typicality"] <= 1.0
    assert {row["typicality"] for row in found["scores"]} == {found["typicality"]}
    assert found["method"] in {"p-irt", "stacked"}
    answers = tmp_path / "answers.parquet"
    run.ok("import", journal, "-o", answers)
    monkeypatch.setattr("itembank.estimation.estimates.FLAGGED", 1.0)  # so that every model is flagged
    told = run("session", "status", journal)
    assert f"{found['typicality']:.4f}" in told.out
    assert "'new': answered unlike nearly all of the" in told.err
    scores = run.json("session", "status", journal)["scores"]
    assert (found["scores"][0]["note"], "by method 'drawn' would settle it" in scores[0]["note"]) == ("", True)
    replayed = run("replay", fitted_bank, answers, *LIMIT)
    assert f"{found['typicality']:.2f}" in replayed.out
    assert "'new': answered unlike nearly all of the" in replayed.err
