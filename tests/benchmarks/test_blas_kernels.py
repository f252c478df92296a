import pytest

from benchmarks import blas_kernels as kernels

CODES = [("Prescott", "Katmai"), ("Haswell", "Haswell"), ("Zen", "Haswell"), ("SkylakeX", None)]


def test_kernels_of_one_code_run_once_and_those_that_crash_never():
    assert list(kernels.distinct(CODES)) == ["Prescott", "Haswell"]
    assert kernels.code_of(None)


@pytest.mark.parametrize(
    ("default", "other"), [("Haswell", "Prescott"), ("SkylakeX", "Haswell"), ("Katmai", "Haswell")]
)
def test_the_second_kernel_is_the_newest_that_is_not_the_default(default, other):
    assert kernels.second(CODES, default) == other
    assert kernels.second([("Haswell", "Haswell"), ("Zen", "Haswell")], "Haswell") is None
