import json
from dataclasses import replace

import pytest

from benchmarks import result_manifests as made

RUN = made.Run("study", "python -m study -o {output}", ("errors", "ranks"), ("benchmarks/panel",), (), (), 1.0)
TABLES = {"errors": "| a |\n|---|\n| 1 |", "ranks": "| b |\n|---|\n| 2 |"}
EMPTY = "Text\n\n" + "\n\nmore\n\n".join(f"<!-- table: {name} -->\n\n<!-- end of table -->" for name in TABLES)


@pytest.fixture
def document(tmp_path):
    manifest = json.dumps(made.make_manifest(RUN, TABLES)).encode()
    (tmp_path / "study.json").write_bytes(manifest)
    return made.with_tables(EMPTY, RUN, TABLES, manifest)


def test_tables_made_just_now_are_up_to_date_and_changes_by_hand_are_found(document, tmp_path):
    assert made.out_of_date(RUN, document, tmp_path) == []
    assert {name: text for name, (text, _) in made.tables_of(document).items()} == TABLES
    assert "Made by `python -m study` at commit" in document
    by_hand = document.replace("| 2 |", "| 1 |")
    assert made.out_of_date(RUN, by_hand, tmp_path) == ["ranks: edited by hand, or of another manifest"]
    assert made.out_of_date(replace(RUN, name="other"), document, tmp_path) == ["never made: there is no manifest"]
    assert made.out_of_date(replace(RUN, tables=("absent",)), document, tmp_path) == ["absent: not in the document"]
    other = {**TABLES, "errors": "| a |\n|---|\n| 3 \\1 |"}
    manifest = json.dumps(made.make_manifest(RUN, other)).encode()
    again = made.with_tables(document, RUN, other, manifest)
    assert made.tables_of(again)["errors"][0] == other["errors"]
    assert again.count("*Made by") == 2
    assert made.out_of_date(RUN, again, tmp_path)  # of another manifest than the one kept
    (tmp_path / "study.json").write_bytes(manifest)
    assert made.out_of_date(RUN, again, tmp_path) == []


def test_changed_numbers_and_data_are_named(document, tmp_path, monkeypatch):
    now = made.what_goes_in(RUN)
    now["numbers"] |= {"estimate mean": "other", "plan half-width": "other", "plan difference": "other", "new": "other"}
    del now["numbers"]["compare"]
    now["data"]["set"] = "other"
    monkeypatch.setattr(made, "what_goes_in", lambda run: now)
    assert made.out_of_date(RUN, document, tmp_path) == ["numbers changed since: estimate, plan", "other data: set"]
    manifest = json.loads((tmp_path / "study.json").read_text(encoding="utf-8"))
    del manifest["numbers"]
    (tmp_path / "study.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert f"made by older code (commit {manifest['commit'][:12]})" in made.out_of_date(RUN, document, tmp_path)


def test_numbers_count_to_six_digits_where_a_table_could_use_them(tmp_path, monkeypatch):
    def numbers(value, tail=0.5):
        calls = {"estimate": {"value.0": value, "method.ids": "abc"}, "pretrain": {"tail.0": tail, "n": 3}}
        (tmp_path / "values.json").write_text(json.dumps({"calls": calls}), encoding="utf-8")
        return made.numbers_used(replace(RUN, unused=("pretrain: tail",)))

    monkeypatch.setattr(made, "SNAPSHOT", tmp_path / "values.json")
    first = numbers(0.25)
    assert set(first) == {"estimate", "pretrain"}
    assert numbers(0.25 + 1e-9, tail=0.75) == first
    assert numbers(0.25001)["pretrain"] == first["pretrain"]
    assert numbers(0.25001)["estimate"] != first["estimate"]


def test_words_and_layout_of_code_do_not_count_but_constants_do(tmp_path):
    path = tmp_path / "kernel.py"

    def digest_of(text, **settings):
        path.write_text(text, encoding="utf-8")
        return made.code_digest([path], **settings)

    plain = digest_of("def f(x):\n    return 1.1 * x\n")
    assert digest_of('"""Words."""\n\n\ndef f(x):\n    """More."""\n    # why\n    return 1.1 * (x)\n') == plain
    assert digest_of("def f(x):\n    return 1.0 * x\n") != plain
    assert digest_of("def f(x):\n    return 1.1 + x\n") != plain
    before, after, other = "from a.b import f", "from c import f", "from a.b import g"
    assert digest_of(before, modules=False) == digest_of(after, modules=False) != digest_of(other, modules=False)
    assert digest_of(before) != digest_of(after)


def test_every_run_names_what_is_there_and_kept_manifests_belong_to_the_document():
    texts = made.tables_of(made.DOCUMENT.read_text(encoding="utf-8"))
    named = [table for run in made.load_runs().values() for table in run.tables]
    assert sorted(named) == sorted(texts)
    for run in made.load_runs().values():
        assert all((made.ROOT / name).exists() for name in (*run.benchmark, *run.figures)), run.name
        assert "{output}" in run.command
    # what the document shows is what the commands wrote: no number was changed by hand
    document = made.DOCUMENT.read_text(encoding="utf-8")
    for run in made.load_runs().values():
        if (made.MANIFESTS / f"{run.name}.json").exists():
            assert not [reason for reason in made.out_of_date(run, document) if "by hand" in reason]
