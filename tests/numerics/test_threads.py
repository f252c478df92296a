import subprocess
import sys

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from itembank.numerics.parallel import one_blas_thread


def n_blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_one_thread_inside_and_what_it_had_outside():
    assert np.ones((2, 2)).sum() == 4.0
    with threadpool_limits(limits=2, user_api="blas"):
        before = n_blas_threads()
        with one_blas_thread():
            assert n_blas_threads() == {1}
        assert n_blas_threads() == before


def test_one_within_another_leaves_the_outer_one_as_it_was():
    with threadpool_limits(limits=2, user_api="blas"):
        before = n_blas_threads()
        with one_blas_thread():
            with one_blas_thread():
                assert n_blas_threads() == {1}
            assert n_blas_threads() == {1}
        assert n_blas_threads() == before
        with one_blas_thread():
            assert n_blas_threads() == {1}


def test_it_can_be_a_decorator():
    assert one_blas_thread()(n_blas_threads)() == {1}


def test_no_blas_is_loaded_later_whose_threads_it_does_not_see():
    program = """
from threadpoolctl import threadpool_info
from itembank.numerics.parallel import one_blas_thread

with one_blas_thread():
    before = len(threadpool_info())
    import scipy.linalg
    assert len(threadpool_info()) == before
"""
    subprocess.run([sys.executable, "-c", program], check=True)
