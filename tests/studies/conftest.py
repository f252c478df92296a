import pytest


@pytest.fixture
def study_file(tmp_path):
    """A function that writes the text of a study file and returns its path."""

    def write(text):
        path = tmp_path / "study.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
