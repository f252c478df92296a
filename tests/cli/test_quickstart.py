import csv
import io
import json
from functools import partial
from importlib import import_module

import pytest

from itembank.calibration.calibration_specs import Variational
from itembank.cli.quickstart import _write_page
from itembank.errors import missing_package
from itembank.pages import quickstart
from tests.bank.few_items import load_few

ARGUMENTS = ("quickstart", "-n", "40", "--repeats", "1", "--seed", "5")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(quickstart, "_spec", lambda _: Variational("2pl", n_dims=1, tolerance=1e-3))
    monkeypatch.setattr(quickstart, "load_builtin", partial(load_few, every_item=14))
    monkeypatch.setattr("itembank.estimation.folds.N_FOLDS_MANY", 3)
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # it takes seconds to bundle


def test_what_was_done_is_said_and_running_again_replaces_the_files(run, tmp_path):
    """A table whose next commands work, and then one row a strategy."""
    outcome = run(*ARGUMENTS, "-o", tmp_path / "out")
    assert outcome.code == 0
    assert "70 unseen models estimated from 40 of 130 items" in outcome.out.replace("\n", " ")
    assert "gp-IRT" in outcome.out
    assert "itembank's default" in outcome.out
    assert "auto: stacked" in outcome.out
    assert "Written" not in outcome.out
    for name in ("bank", "selection.json", "new-models.parquet", "estimates.csv", "predicted-against-true.png"):
        assert str(tmp_path / "out" / name) in outcome.err
        assert (tmp_path / "out" / name).exists()
    assert f"Report: {tmp_path / 'out' / 'report.html'}" in outcome.err
    assert "points off by chance" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    lines = [line.split("itembank ")[1] for line in outcome.err.splitlines() if "itembank " in line]
    assert [line.split()[0] for line in lines] == ["info", "estimate"]
    for line in lines:
        followed = run(*line.split(), "--format", "csv")
        assert followed.code == 0
        assert len(list(csv.DictReader(io.StringIO(followed.out)))) >= 5
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.csv")}
    again = run(*ARGUMENTS, "-o", tmp_path / "out", "--format", "json")
    assert again.code == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.csv")} == before
    rows = json.loads(again.out)
    assert [row["strategy"] for row in rows] == ["random sampling", "anchor points", "gp-IRT", "itembank's default"]
    assert (rows[-1]["selection"], rows[-1]["method"], rows[-1]["methods_used"]) == ("auto", "auto", "stacked")
    for row in rows:
        assert 0.0 < row["mean_absolute_error"] <= row["worst_error"] <= 100.0
        assert f" {row['worst_error']:.1f} " in outcome.out


@pytest.mark.parametrize(("option", "value"), [("-n", "0"), ("--repeats", "0"), ("--seed", "x")])
def test_a_wrong_option_is_a_usage_error(run, tmp_path, option, value):
    outcome = run("quickstart", "-o", tmp_path / "out", option, value)
    assert outcome.code == 2
    assert not (tmp_path / "out").exists()


def test_more_items_than_there_are_fails_with_the_reason(run, tmp_path):
    outcome = run(*ARGUMENTS[:1], "-n", "9999", "--repeats", "1", "-o", tmp_path / "out")
    assert outcome.code == 2
    assert "n_items must be from 16" in outcome.err
    assert outcome.out == ""


def test_without_what_pages_need_one_line_says_so(monkeypatch, tmp_path, capsys):
    def refuse(*_args, **_known):
        raise missing_package("reports need jinja2", "jinja2", ImportError("no module named 'jinja2'"))

    monkeypatch.setattr(import_module("itembank.pages.quickstart"), "quickstart_page", refuse)
    _write_page(None, tmp_path / "report.html")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("The report was left out: reports need jinja2")
    assert "pip install jinja2" in said
    assert not (tmp_path / "report.html").exists()
