"""Which files of a folder of tasks go with chosen tasks."""

import pytest

from itembank.errors import DataError
from itembank.harnesses.lm_eval.export import copy_files, needed_files

pytestmark = pytest.mark.harness


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("yaml")
    made = tmp_path / "outer" / "tasks"
    (made / "deep").mkdir(parents=True)
    (tmp_path / "outer" / "common.yaml").write_text("num_fewshot: 1\n")
    (tmp_path / "outer" / "secret.py").write_text("def f(): pass\n")
    (made / "other.yaml").write_text("task: other\n")
    (made / "broken.yaml").write_text("task: [\n")
    return made


def paths(needed):
    return [path.as_posix() for path in needed.files]


def test_includes_functions_and_their_imports_go_and_nothing_else(folder):
    (folder / "deep" / "one.yaml").write_text(
        "task: one\ninclude: [../base.yml, more]\nmetric_list:\n  - {metric: !function 'code.metric.score'}\n"
        "doc_to_text: !function json.dumps\n"
    )
    (folder / "base.yml").write_text("include: base2.yaml\n")
    (folder / "base2.yaml").write_text("output_type: generate_until\n")
    (folder / "deep" / "more").write_text("a: 1\n")
    (folder / "deep" / "code").mkdir()
    (folder / "deep" / "code" / "metric.py").write_text("import os\nfrom . import near\nfrom .near2 import x\n")
    for name in ("near.py", "near2.py", "far.py"):
        (folder / "deep" / "code" / name).write_text("")
    needed = needed_files(folder, ["one", "not there"])
    assert paths(needed) == [
        *("base.yml", "base2.yaml", "deep/code/metric.py", "deep/code/near.py", "deep/code/near2.py"),
        *("deep/more", "deep/one.yaml"),
    ]
    assert needed.data == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("include: ../common.yaml", "common.yaml"),
        ("include: linked.yaml", "linked.yaml"),
        ("include: .hidden.yaml", ".hidden.yaml"),
        ("include: absent.yaml", "absent.yaml"),
        ("doc_to_text: !function linked.f", "linked.py"),
        ("doc_to_text: !function folder.secret.f", "folder/secret.py"),
    ],
)
def test_what_lies_outside_or_is_linked_is_refused(folder, text, named):
    (folder / "linked.yaml").symlink_to(folder.parent / "common.yaml")
    (folder / "linked.py").symlink_to(folder.parent / "secret.py")
    (folder / "folder").symlink_to(folder.parent)
    (folder / ".hidden.yaml").write_text("a: 1\n")
    (folder / "one.yaml").write_text(f"task: one\n{text}\n")
    with pytest.raises(DataError, match=rf"one\.yaml needs .*{named}.*no links and no dot files"):
        needed_files(folder, ["one"])
    assert paths(needed_files(folder, ["other"])) == ["other.yaml"]


def test_data_is_named_relative_to_the_copied_folder(folder, monkeypatch):
    (folder / "data").mkdir()
    for name in ("a.jsonl", "b.jsonl", "unused.jsonl"):
        (folder / "data" / name).write_text("{}\n")
    (folder / "one.yaml").write_text(
        f"task: one\ndataset_kwargs: {{data_files: {{test: ['{folder}/data/a.jsonl'], dev: tasks/data/b.jsonl}}}}\n"
        f"description: not {folder}/data/a.jsonl-else\n"
    )
    monkeypatch.chdir(folder.parent)
    needed = needed_files(folder, ["one"])
    assert [path.as_posix() for path in needed.data] == ["data/a.jsonl", "data/b.jsonl"]
    copy_files(folder, needed, folder.parent / "plain", with_data=False)
    assert (folder.parent / "plain" / "one.yaml").read_bytes() == (folder / "one.yaml").read_bytes()
    assert not (folder.parent / "plain" / "data").exists()
    copy_files(folder, needed, folder.parent / "full", with_data=True)
    text = (folder.parent / "full" / "one.yaml").read_text()
    assert "{test: ['data/a.jsonl'], dev: data/b.jsonl}" in text
    assert f"{folder}/data/a.jsonl-else" in text
    assert sorted(path.name for path in (folder.parent / "full" / "data").iterdir()) == ["a.jsonl", "b.jsonl"]


def test_changes_by_groups_are_named_however_deep(folder):
    (folder / "one.yaml").write_text("task: one\n")
    (folder / "inner.yaml").write_text("group: inner\ntask: [one, other]\nnum_fewshot: 2\n")
    (folder / "outer.yaml").write_text("group: outer\ntask:\n  - {group: inner, description: x}\n")
    (folder / "round.yaml").write_text("group: round\ntask: [round, {task: one, repeats: 3}]\n")
    (folder / "plain.yaml").write_text("group: plain\ntask: [one]\n")
    assert needed_files(folder, ["one"]).changes == {
        "one": {"inner": ("num_fewshot",), "outer": ("description", "num_fewshot"), "round": ("repeats",)}
    }
