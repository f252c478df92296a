import dataclasses
import re

import polars as pl
import pytest

import itembank as ib
from itembank.bank.bank_files import load_bank, save_bank
from itembank.banks import retire, whole_bank
from itembank.errors import DataError
from itembank.files.hub import HubName
from itembank.publishing import TinySpec, publish_tiny
from itembank.publishing.hub import PushSpec, stage
from itembank.publishing.publishable import check_no_questions, check_task_files, harness_arguments, without_columns
from tests.bank.banks import make_bank

BANK = make_bank()


def with_column(name, value):
    items = BANK.responses.items.with_columns(pl.Series(name, [value] * BANK.n_items))
    return dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, items=items))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prompt", "2+2="),
        ("doc.question", "x"),
        ("choices", ["a", "b"]),
        ("correct", 3),
        ("gold_answer", "B"),
        ("remark", "A train leaves the station at noon and another one follows it at two."),
        ("row", {"anything": "nested"}),
    ],
)
def test_questions_and_answers_are_refused_and_named(name, value):
    bank = with_column(name, value)
    with pytest.raises(DataError, match=rf"no questions and no answers, and columns '{name}'"):
        check_no_questions(bank)
    check_no_questions(bank, (name,))
    check_no_questions(without_columns(bank, (name,)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_options", 4), ("content_hash", "f" * 64), ("metric", "exact_match"), ("lengths", [1, 2]), ("url", "x" * 200)],
)
def test_what_else_is_known_of_items_may_go(name, value):
    check_no_questions(with_column(name, value))


def test_questions_in_the_place_of_ids_are_found():
    items = BANK.responses.items.with_columns(
        item_id="What is the capital of the country whose number is " + pl.col("item_id") + "?"
    )
    bank = dataclasses.replace(BANK, responses=dataclasses.replace(BANK.responses, items=items))
    with pytest.raises(DataError, match="'item_id'"):
        check_no_questions(bank)


def test_a_bank_without_columns_is_the_same_bank():
    slim = without_columns(BANK, ("n_options",))
    assert "n_options" not in slim.responses.items.columns
    assert slim.bank_id == BANK.bank_id
    for name in ("nothing", "scenario"):
        with pytest.raises(DataError, match=name):
            without_columns(BANK, (name,))


def test_a_column_to_include_must_be_there():
    with pytest.raises(DataError, match="'promt'"):
        check_no_questions(BANK, ("promt",))


def test_items_that_are_kept_aside_lose_their_columns_too():
    bank = retire(with_column("prompt", "2+2="), BANK.item_ids[:1], reason="wrong key")
    with pytest.raises(DataError, match="columns 'prompt'"):
        check_no_questions(bank)
    slim = without_columns(bank, ("prompt",))
    assert "prompt" not in whole_bank(slim).responses.items.columns
    assert whole_bank(slim).n_items == BANK.n_items


pytestmark = pytest.mark.usefixtures("few_folds")
SECRET = "Zx9SECRET"  # noqa: S105 (made up)


@pytest.fixture(scope="module")
def made(few_folds, tmp_path_factory):
    """A published subset with tasks and the bank among them."""
    folder = tmp_path_factory.mktemp("made") / "tiny"
    bank = make_bank(n_models=12)
    chosen = ib.select(bank, 9, method="random", rng=0)
    publish_tiny(bank, folder, selection=chosen, write_tasks=write_tasks)
    return folder


def write_tasks(folder, bank, selection):
    save_bank(bank, folder / "bank")
    selection.save(folder / "selection.json")
    (folder / "README.md").write_text("# tiny")
    (folder / "original").mkdir()
    for name in ("one.yaml", "one.py", "_template_yaml"):
        (folder / "original" / name).write_text("task: one\n")


@pytest.fixture
def tiny(made, tmp_path):
    import shutil  # noqa: PLC0415

    return shutil.copytree(made, tmp_path / "tiny")


def staged(folder, to, **choices):
    bank = load_bank(folder)
    stage(bank, to, HubName("me/tiny"), PushSpec(**choices))
    return {path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()}


def test_what_was_published_is_pushed_whole(tiny, tmp_path):
    compiled = tiny / "tasks" / "original" / "__pycache__"
    compiled.mkdir()
    (compiled / "one.pyc").write_bytes(b"x")
    files = {path.relative_to(tiny).as_posix() for path in tiny.rglob("*") if path.is_file()}
    assert staged(tiny, tmp_path / "staged") == {name for name in files if "__pycache__" not in name}
    assert (tmp_path / "staged" / "tasks" / "bank" / "items.parquet").is_file()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("original/.env", "KEY=x", "a dot file"),
        ("original/.git/config", "x", r"original/\.git \(a dot file"),
        ("original/rows.jsonl", "{}", "data"),
        ("original/rows.parquet", "x", "data"),
        ("original/weights.bin", "x", "neither a task file nor a module"),
        ("original/notes", "x", "neither a task file nor a module"),
        ("bank/extra.csv", "x", "data"),
        ("original/big.yaml", "x" * (2**20 + 1), "longer than"),
        ("original/two.yaml", "data_files: /home/alice/x.jsonl", "a secret or a home folder"),
        ("original/two.py", "URL = 'https://me:pw@host/x'", "a secret or a home folder"),
    ],
)
def test_other_files_among_tasks_are_refused_by_name(tiny, tmp_path, name, content, reason):
    path = tiny / "tasks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    with pytest.raises(DataError, match=rf"must hold task files .*{reason}"):
        staged(tiny, tmp_path / "staged")


@pytest.mark.parametrize("is_folder", [False, True])
def test_links_are_refused(tiny, tmp_path, is_folder):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "one.yaml").write_text(SECRET)
    target = tmp_path / "outside" if is_folder else tmp_path / "outside" / "one.yaml"
    (tiny / "tasks" / "link.yaml").symlink_to(target)
    with pytest.raises(DataError, match=r"link\.yaml \(a link\)"):
        staged(tiny, tmp_path / "staged")
    (tiny / "tasks" / "link.yaml").unlink()
    (tiny / "selected.csv").unlink()
    (tiny / "selected.csv").symlink_to(target)
    with pytest.raises(DataError, match=r"must be no links, got 'selected\.csv'"):
        staged(tiny, tmp_path / "staged2")


def test_data_goes_where_it_is_asked_for(tiny, tmp_path):
    (tiny / "tasks" / "original" / "rows.jsonl").write_text("{}")
    assert "tasks/original/rows.jsonl" in staged(tiny, tmp_path / "staged", include_data=True)


def test_another_bank_among_the_tasks_is_refused(tiny):
    other = make_bank(n_models=12, seed=5)
    save_bank(other, tiny / "tasks" / "bank", overwrite=True)
    with pytest.raises(DataError, match="must be the bank that is published"):
        check_task_files(tiny / "tasks", load_bank(tiny))


def test_a_dropped_column_goes_from_the_bank_among_the_tasks_too(tiny, tmp_path):
    staged(tiny, tmp_path / "staged", drop_columns=("n_options",))
    for folder in ("staged", "staged/tasks/bank"):
        assert "n_options" not in load_bank(tmp_path / folder).responses.items.columns


def test_nothing_is_left_where_tasks_hold_what_may_not_go(tmp_path):
    def with_data(folder, bank, selection):
        folder.mkdir()
        (folder / "rows.jsonl").write_text("{}")

    bank = make_bank(n_models=12)
    given = {"selection": ib.select(bank, 9, method="random", rng=0), "write_tasks": with_data}
    with pytest.raises(DataError, match=r"rows\.jsonl \(data\)"):
        publish_tiny(bank, tmp_path / "tiny", **given)
    assert not (tmp_path / "tiny").exists()
    publish_tiny(bank, tmp_path / "tiny", spec=TinySpec(include_data=True), **given)
    assert "with questions and answers" in (tmp_path / "tiny" / "README.md").read_text()


def test_only_columns_of_models_that_are_needed_are_pushed(tmp_path):
    bank = make_bank(n_models=12)
    models = bank.responses.models.with_columns(
        *(pl.lit("2024-01-01").alias(name) for name in ("run_date", "release_date")),
        *(pl.lit(1).alias(name) for name in ("n_parameters", "epochs", "score.arena")),
        *(pl.lit(f"token={SECRET}").alias(name) for name in ("model_args", "note")),
        api_key=pl.lit(SECRET),
        family=pl.lit("a"),
        lm_eval_version=pl.lit("0.4"),
    )
    asked = dataclasses.replace(bank, responses=bank.responses.with_tables(models=models))
    save_bank(asked, tmp_path / "bank")
    loaded = load_bank(tmp_path / "bank")
    name = HubName("me/bank")
    done = stage(loaded, tmp_path / "staged", name, PushSpec(drop_columns=("family",), include_columns=("epochs",)))
    assert set(done.responses.models.columns) == {
        *("model_id", "size", "run_date", "release_date", "n_parameters", "epochs", "score.arena", "lm_eval_version")
    }
    assert done.bank_id == bank.bank_id
    everything = b"".join(path.read_bytes() for path in (tmp_path / "staged").rglob("*") if path.is_file())
    assert SECRET.encode() not in everything
    card = (tmp_path / "staged" / "README.md").read_text()
    told = re.search(r"Left out: (.*)\.$", card, re.MULTILINE)[1].replace("\\", "")
    assert set(told.split(", ")) == {"family", "model_args", "note", "api_key"}
    for column in ("model_args", "note"):
        with pytest.raises(DataError, match=rf"no secrets.*'{column}'"):
            stage(loaded, tmp_path / column, name, PushSpec(include_columns=(column,)))
    with pytest.raises(DataError, match="Did you mean 'epochs'"):
        stage(loaded, tmp_path / "x", name, PushSpec(include_columns=("epoch",)))


def test_ids_with_secrets_are_refused(tmp_path):
    bank = make_bank(n_models=12)
    models = bank.responses.models.with_columns(model_id="/home/alice/" + pl.col("model_id"))
    asked = dataclasses.replace(bank, responses=bank.responses.with_tables(models=models))
    with pytest.raises(DataError, match=r"12 values of column 'model_id' do\. Read the logs again"):
        stage(asked, tmp_path / "staged", HubName("me/bank"), PushSpec())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ""),
        ({"a": {"chat_template": False, "fewshot_seed": 1234}}, ""),
        (
            {"a": {"chat_template": True, "fewshot_as_multiturn": True}},
            "--apply_chat_template --fewshot_as_multiturn true",
        ),
        ({"a": {"chat_template": True}, "b": {"chat_template": False}}, ""),
        ({"a": {"fewshot_seed": 5}, "b": {}}, "--seed 0,1234,1234,5"),
    ],
)
def test_the_command_line_names_what_no_task_file_can_set(settings, expected):
    assert harness_arguments(settings, settings).strip() == expected
