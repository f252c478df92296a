"""Parts run the same in this process and in others; what goes wrong there reaches the caller."""

import os
import signal
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import LokyBackend
from threadpoolctl import threadpool_info, threadpool_limits

from itembank.errors import DataWarning, ParameterError, warn
from itembank.numerics.parallel import in_parallel, jobs, one_blas_thread, parts_with_progress

MATRIX = np.random.default_rng(0).normal(size=(400, 300))


def product(matrix, scale):
    return scale * float(np.linalg.svd(matrix, compute_uv=False)[0])


def where(_number):
    return os.getpid()


def warned(number):
    warn("the same in every part.", DataWarning)
    return number


def told(number, progress):
    progress("half", 0.5)
    return number


def nested(number):
    return number, [os.getpid(), *(found for _, found in in_parallel(where, [(1,), (2,)]))]


def dies_once(number, folder):
    marker = folder / f"{number}"
    if number == 1 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def always_dies(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_results_are_the_same_in_any_number_of_processes_and_of_parts_at_a_time():
    parts = [(MATRIX, scale) for scale in (1.0, 1.5, 2.0)]
    assert dict(in_parallel(product, parts)) == dict(in_parallel(product, parts, n_jobs=2))
    for _, (_, processes) in in_parallel(nested, [(0,), (1,)], n_jobs=2):
        assert len(set(processes)) == 1


def test_joblibs_own_configuration_is_heeded():
    assert {pid for _, pid in in_parallel(where, [(1,), (2,)])} == {os.getpid()}
    with joblib.parallel_config(n_jobs=2):
        assert os.getpid() not in {pid for _, pid in in_parallel(where, [(1,), (2,)])}
    with jobs(2):
        assert os.getpid() not in {pid for _, pid in in_parallel(where, [(1,), (2,)])}
    with joblib.parallel_config("sequential"):
        assert {pid for _, pid in in_parallel(where, [(1,), (2,)])} == {os.getpid()}


def test_warnings_of_other_processes_reach_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert dict(in_parallel(warned, [(0,), (1,)], n_jobs=2)) == {0: 0, 1: 1}
    assert [str(one.message) for one in caught] == ["the same in every part."] * 2


def test_a_killed_worker_costs_only_what_it_was_at(tmp_path):
    parts = [(number, tmp_path) for number in range(4)]
    assert dict(in_parallel(dies_once, parts, n_jobs=2)) == {number: number for number in range(4)}


class AllAtOnce(LokyBackend):
    """A backend that gives back all results at once, as Ray's does."""

    supports_return_generator = False


def test_a_backend_that_gives_back_all_results_at_once_gets_a_few_parts_at_a_time():
    with joblib.parallel_config(AllAtOnce(), n_jobs=2):
        assert dict(in_parallel(abs, [(-number,) for number in range(20)])) == {number: number for number in range(20)}


def test_a_part_that_kills_every_worker_ends_the_work(monkeypatch):
    monkeypatch.setattr("itembank.numerics.parallel.MOST_RESTARTS", 1)
    with pytest.raises(joblib.externals.loky.process_executor.TerminatedWorkerError):
        list(in_parallel(always_dies, [(0,), (1,)], n_jobs=2))


@pytest.mark.parametrize(
    ("n_jobs", "texts"), [(1, ["part 1 of 2", "part 2 of 2"]), (2, ["part, 1 of 2 done", "part, 2 of 2 done"])]
)
def test_progress_is_that_of_the_whole(n_jobs, texts):
    said = []
    with jobs(n_jobs):
        found = dict(parts_with_progress(told, [(0,), (1,)], lambda *one: said.append(one), "part"))
    assert found == {0: 0, 1: 1}
    assert said == list(zip(texts, (0.25, 0.75) if n_jobs == 1 else (0.5, 1.0), strict=True))


def test_joblib_is_not_loaded_for_work_that_runs_here():
    code = (
        "import sys; from itembank.numerics.parallel import in_parallel;"
        "assert dict(in_parallel(abs, [(-1,), (2,)])) == {0: 1, 1: 2}; assert 'joblib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("n_jobs", [0, -2])
def test_numbers_of_processes_that_cannot_be_and_threads_are_refused(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs must be -1"):
        list(in_parallel(abs, [(1,)], n_jobs=n_jobs))
    with joblib.parallel_config("threading", n_jobs=2), pytest.raises(ParameterError, match="backend of processes"):
        list(in_parallel(where, [(1,), (2,)]))


def n_blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_what_it_had_outside():
    assert np.ones((2, 2)).sum() == 4.0
    with threadpool_limits(limits=2, user_api="blas"):
        before = n_blas_threads()
        with one_blas_thread():
            with one_blas_thread():  # one within another leaves the outer one as it was
                assert n_blas_threads() == {1}
            assert n_blas_threads() == {1}
        assert n_blas_threads() == before
        with one_blas_thread():
            assert n_blas_threads() == {1}
        assert n_blas_threads() == before
    assert one_blas_thread()(n_blas_threads)() == {1}


def test_a_blas_that_is_loaded_within_has_one_thread_there_and_as_many_as_numpys_afterwards():
    program = """
import os
from threadpoolctl import threadpool_info, threadpool_limits
from itembank.numerics.parallel import one_blas_thread

def n_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

threadpool_limits(2, user_api="blas")
with one_blas_thread():
    import scipy.linalg
    assert n_threads() == {1}
assert n_threads() == {2}
with one_blas_thread():
    assert n_threads() == {1}
assert n_threads() == {2}
assert os.environ["OPENBLAS_NUM_THREADS"] == "2"
"""
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "2"})
