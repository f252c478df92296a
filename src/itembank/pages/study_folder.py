"""The page of a study's folder, of either kind."""

from pathlib import Path

from itembank.pages.prediction_study_page import prediction_study_page
from itembank.pages.render import Page
from itembank.pages.study_page import study_page
from itembank.studies.engine import PREDICTION, read_manifest
from itembank.studies.results import PredictionResult, StudyResult


def study_folder_page(folder: Path, *, title: str = "", command: str = "") -> Page:
    """Return the page of a finished study.

    Raises
    ------
    DataError
        When the folder is not a study's, the study is not finished, or a table is not what was written.
    """
    if read_manifest(folder).kind == PREDICTION.name:
        return prediction_study_page(PredictionResult.load(folder), title=title, command=command)
    return study_page(StudyResult.load(folder), title=title, command=command)
