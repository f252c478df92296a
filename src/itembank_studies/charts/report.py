"""The page of a study's folder, for `itembank report`."""

from dataclasses import replace
from pathlib import Path

import itembank as ib
from itembank.pages.render import Page
from itembank_studies.engine import FILE_NAME, PREDICTION, read_manifest
from itembank_studies.results import PredictionResult, StudyResult


def page_of(folder: Path) -> Page | None:
    """Return the page of a study's folder; None of another one."""
    if not (folder / FILE_NAME).is_file():
        return None
    manifest = read_manifest(folder)
    kind = PredictionResult if manifest.kind == PREDICTION.name else StudyResult
    return replace(ib.show(kind.load(folder)), title=f"Study {manifest.study['name']}")
