import pytest

from tests.attacks.hostile import make_hostile, problems

pytestmark = pytest.mark.usefixtures("few_folds")


def test_no_name_drives_a_terminal_a_browser_or_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr("itembank.pages.render.chart_script", lambda: "")  # to bundle it takes seconds
    make_hostile(tmp_path)
    assert problems(tmp_path) == []
