import sys
from types import SimpleNamespace

import pytest

from itembank.errors import MissingDependencyError, ParameterError
from itembank.numerics.devices import open_device


def torch_of(n_gpus):
    """What is asked of torch."""
    return SimpleNamespace(
        __name__="torch", cuda=SimpleNamespace(is_available=lambda: n_gpus > 0, device_count=lambda: n_gpus)
    )


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:1"])
def test_without_a_library_the_extra_is_named(monkeypatch, name):
    for library in ("torch", "cupy"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=rf"device='{name}' needs .*pip install array-api-compat torch"):
        open_device(name)


@pytest.mark.parametrize(("n_gpus", "words"), [(0, "torch finds none"), (1, "torch finds 1 of them")])
def test_a_gpu_that_is_not_there_is_refused(monkeypatch, n_gpus, words):
    monkeypatch.setitem(sys.modules, "torch", torch_of(n_gpus))
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ParameterError, match=f"device must be a GPU that is there, got 'cuda:1': {words}"):
        open_device("cuda:1")


def test_without_a_working_cupy_and_torch_none_is_found(monkeypatch):
    class NoDriverError(RuntimeError):
        pass

    def count():
        raise NoDriverError

    runtime = SimpleNamespace(getDeviceCount=count, CUDARuntimeError=NoDriverError)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(__name__="cupy", cuda=SimpleNamespace(runtime=runtime)))
    with pytest.raises(ParameterError, match="cupy finds none"):
        open_device("cuda")


def test_torch_without_the_wrapper_names_the_extra(monkeypatch):
    torch = torch_of(1)
    torch.device = lambda name: SimpleNamespace(type=name.partition(":")[0])
    monkeypatch.setitem(sys.modules, "torch", torch)
    for module in ("array_api_compat", "array_api_compat.torch"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependencyError, match=r"array-api-compat.*pip install array-api-compat torch"):
        open_device("cuda")
