"""Local clusters of Dask and Ray take parts of the work by two lines of the user, and find the same to the bit."""

import contextlib
import os

import joblib
import numpy as np
import pytest

from itembank.calibration.dimensions import choose_n_dims
from itembank.numerics.parallel import in_parallel
from itembank_studies.run import run_study
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


def test_a_killed_worker_costs_only_what_it_was_at(cluster, tmp_path):
    parts = [(number, tmp_path) for number in range(4)]
    assert dict(in_parallel(dies_once, parts)) == {number: number for number in range(4)}
