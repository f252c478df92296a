"""The studies of the panel by name, and where their parts are kept."""

from pathlib import Path

from benchmarks.kept_parts import kept_folder
from benchmarks.panel import work
from benchmarks.rivals.plug_in import METHODS, check_installed
from itembank.responses.responses import ResponseMatrix
from itembank_studies.study_files import load_data, load_study
from itembank_studies.study_specs import StudySpec

STUDIES = ("openllm1_core", "swebench_verified", "bfcl_v1", "alpacaeval2", "mmlu_pro")
HERE = Path(__file__).parent


def panel_study(name: str) -> StudySpec:
    """Return the settings of a study of the panel, whose rivals must be installed."""
    check_installed()
    return load_study(HERE / f"{name}.toml")


def open_study(name: str, *, kept_as: str) -> tuple[StudySpec, ResponseMatrix, Path]:
    """Return a study, its responses, and the folder of its parts in a benchmark."""
    settings, spec = HERE / f"{name}.toml", panel_study(name)
    data = Path(spec.data.responses[0]).parent.name
    folder = kept_folder(f"{kept_as}-{name}", [Path(work.__file__), METHODS], data=[data], settings=[settings])
    return spec, load_data(spec.data), folder
