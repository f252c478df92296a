from functools import partial

import polars as pl
import pytest

from benchmarks.code_used import ROOT, files_used
from benchmarks.kept_parts import kept_folder, run_parts

PANEL = ROOT / "benchmarks" / "panel"


def made(calls, name):
    calls.append(name)
    return pl.DataFrame({"name": [name]})


def parts(calls, *names):
    return {name: partial(made, calls, name) for name in names}


def test_what_is_kept_is_not_made_again_also_after_a_stop(tmp_path):
    calls = []
    run_parts(tmp_path, parts(calls, "a", "b"))
    (tmp_path / "b.parquet").write_bytes(b"damaged")
    found = run_parts(tmp_path, parts(calls, "a", "b", "c"))
    assert calls == ["a", "b", "b", "c"]
    assert [table["name"].item() for table in found] == ["a", "b", "c"]

    def stopped():
        raise KeyboardInterrupt

    calls = []
    with pytest.raises(KeyboardInterrupt):
        run_parts(tmp_path / "stopped", {**parts(calls, "a"), "b": stopped, **parts(calls, "c")})
    (found,) = run_parts(tmp_path / "stopped", parts(calls, "a", "b", "c"), only_kept=True)
    assert calls == ["a"]
    assert found["name"].item() == "a"


def test_other_code_settings_and_data_have_other_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("ITEMBANK_KEPT", str(tmp_path))
    monkeypatch.setenv("ITEMBANK_SHARED", str(tmp_path / "shared"))
    settings = tmp_path / "settings.toml"
    settings.write_text("repeats = 1")
    (tmp_path / "shared" / "data" / "set").mkdir(parents=True)
    data = tmp_path / "shared" / "data" / "set" / "items.csv"
    data.write_text("item_id")

    def folder(code=PANEL / "floor.py"):
        return kept_folder("study", [code], data=["set"], settings=[settings])

    first = folder()
    assert first == folder()
    assert first.parent == tmp_path / "study"
    seen = {first, folder(PANEL / "untouched.py")}
    settings.write_text("repeats = 2")
    seen.add(folder())
    data.write_text("item_id,scenario")
    seen.add(folder())
    assert len(seen) == 4


def test_code_used_follows_imports_kernels_named_by_text_and_lazy_packages(tmp_path):
    names = {str(path.relative_to(ROOT)) for path in files_used(PANEL)}
    assert {
        "benchmarks/panel/table.py",  # itself
        "src/itembank_studies/comparison_study.py",  # imported
        "src/itembank_studies/splits.py",  # by what is imported
        "src/itembank/estimation/point_methods.py",  # a kernel, named by text
        "src/itembank/planning/select.py",  # by another name in the file
    } <= names
    never = ("src/itembank/cli/", "src/itembank/harnesses/", "src/itembank_harnesses/")
    assert not any(name.startswith(never) for name in names)
    code = tmp_path / "study.py"
    code.write_text("import itembank as ib")
    assert ROOT / "src" / "itembank" / "estimation" / "estimate.py" in files_used(code)  # a name of `ib`
