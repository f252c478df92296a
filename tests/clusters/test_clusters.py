"""Local clusters of Dask and Ray take parts of the work by two lines of the user, and find the same to the bit."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.special import expit

from itembank.calibration.calibration_specs import Variational
from itembank.calibration.dimensions import choose_n_dims
from itembank.calibration.fits import FitData
from itembank.calibration.variational import coded_blocks, fit, sections
from itembank.calibration.variational.cells import normal_expectation
from itembank.numerics.parallel import in_parallel
from itembank.progress import silent
from itembank.responses.item_codes import ItemCodes
from itembank.studies.run import run_study
from tests.numerics.test_parallel import dies_once, product, where
from tests.studies.simulated import make_responses, make_spec, numbers

RESPONSES = make_responses()
SPEC = make_spec(selectors=("random", "stratified"), n_items=(6,), repeats=3)


@contextlib.contextmanager
def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="make test-clusters installs Dask")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        yield lambda: client.wait_for_workers(2)


@contextlib.contextmanager
def ray_cluster():
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "300")  # a busy machine is slow to begin; read at import
    ray = pytest.importorskip("ray", reason="make test-clusters installs Ray")
    from ray.util.joblib import register_ray  # noqa: PLC0415

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        with joblib.parallel_config("ray", n_jobs=2):
            yield lambda: None  # starts workers when there is work
    finally:
        ray.shutdown()


@pytest.fixture(scope="module", params=[dask_cluster, ray_cluster], ids=["dask", "ray"])
def started(request):
    with request.param() as wait:
        yield wait


@pytest.fixture
def cluster(started):
    """A cluster with all its workers: work is not shared while the only other one starts again."""
    started()


def test_parts_run_elsewhere_and_are_the_same(cluster):
    assert os.getpid() not in {process for _, process in in_parallel(where, [(1,), (2,)])}
    matrix = np.random.default_rng(0).normal(size=(400, 300))
    parts = [(matrix, scale) for scale in (1.0, 1.5, 2.0)]
    assert dict(in_parallel(product, parts)) == dict(in_parallel(product, parts, n_jobs=1))


def test_a_study_finds_the_same_on_a_cluster(cluster, tmp_path):
    there = run_study(SPEC, tmp_path / "there", responses=RESPONSES)
    here = run_study(SPEC, tmp_path / "here", responses=RESPONSES, n_jobs=1)
    assert numbers(there.estimates).equals(numbers(here.estimates))


def test_candidates_are_tried_on_a_cluster(cluster):
    there = choose_n_dims(RESPONSES, candidates=(1, 2, 3))
    with joblib.parallel_config("sequential"):
        here = choose_n_dims(RESPONSES, candidates=(1, 2, 3))
    np.testing.assert_array_equal(there.errors, here.errors)
    assert there.n_dims == here.n_dims


@dataclass(frozen=True)
class DiesOnce:
    """The rule of a fit, which ends the first process that comes to it and is not this one."""

    folder: Path
    caller: int

    def __call__(self, mean, variance):
        if os.getpid() != self.caller and not (self.folder / "was").exists():
            (self.folder / "was").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return normal_expectation(mean, variance)


def test_one_fit_is_spread_and_a_killed_worker_costs_only_its_section(cluster, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    cells = (rng.random((400, 60)) < expit(rng.normal(size=60) + rng.normal(size=(400, 1)))).astype(np.uint8)
    cells.tofile(tmp_path / "codes")
    codes = ItemCodes(np.memmap(tmp_path / "codes", np.uint8, "r", shape=cells.shape))
    monkeypatch.setattr(coded_blocks, "CELLS_PER_BLOCK", 1000)
    monkeypatch.setattr(sections, "SECTION_ANSWERS", 5000)
    monkeypatch.setattr(fit, "SUBSET_SIZE", 100)
    monkeypatch.setattr(fit, "normal_expectation", DiesOnce(tmp_path, os.getpid()))
    data, spec = FitData.of_codes(codes, np.zeros(400)), Variational("2pl", tolerance=1e-4)
    there = fit.fit_variational(data, spec, progress=silent)
    assert (tmp_path / "was").exists()
    with joblib.parallel_config("sequential"):
        here = fit.fit_variational(data, spec, progress=silent)
    for name in ("loadings", "intercept", "abilities", "item_covariance", "history"):
        np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


def test_a_killed_worker_costs_only_what_it_was_at(cluster, tmp_path):
    parts = [(number, tmp_path) for number in range(4)]
    assert dict(in_parallel(dies_once, parts)) == {number: number for number in range(4)}
