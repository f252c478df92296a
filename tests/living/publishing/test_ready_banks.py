"""Ready banks: names, recipes, and what is built of stand-ins in the layout of each source."""

import dataclasses
import datetime
import hashlib
import io
import json
import shutil
import tarfile
import zipfile

import numpy as np
import polars as pl
import pytest

import itembank as ib
from itembank.bank import bank_places
from itembank.bank.arguments import as_bank_or_responses
from itembank.bank.bank_places import packaged_recipes
from itembank.errors import BankError, DataError, DataWarning, IntegrityError, ParameterError
from itembank.readers.reading_specs import ReadingSpec
from itembank_harnesses.public.read_public import read_public
from itembank_living import build_ready, list_ready, without_responses
from itembank_living.publishing import ready_banks
from itembank_living.publishing.recipes import read_recipe
from tests.bank.banks import make_bank
from tests.readers.logs import sample, write_run
from tests.readers.public.stores import write, write_alpaca_eval, write_bfcl, write_live_code_bench
from tests.readers.test_harbor import trial, write_job

N_MODELS, N_ITEMS = 14, 24
MODELS = [f"model-{k:02d}" for k in range(N_MODELS)]

pytestmark = [
    pytest.mark.usefixtures("few_folds"),
    pytest.mark.filterwarnings("ignore::itembank.errors.ItembankWarning"),
]


def right_or_wrong(n_items=N_ITEMS):
    """Answers of models of rising ability to items of falling difficulty, none of them alike."""
    rng = np.random.default_rng(4)
    logits = np.linspace(-2, 2, N_MODELS)[:, None] + np.linspace(-1.5, 1.5, n_items)
    return (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)


RIGHT = right_or_wrong()


def long(path, **columns):
    """Write a Parquet table with one row a model and item; columns are functions of both."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [(j, i) for j in range(N_MODELS) for i in range(N_ITEMS)]
    pl.DataFrame({name: [of(j, i) for j, i in cells] for name, of in columns.items()}).write_parquet(path)


def swe_bench(folder):
    right = right_or_wrong(500)
    names = np.array([f"o__t-{i:03d}" for i in range(500)])
    for j, row in enumerate(right):
        place = folder / "evaluation" / "verified" / f"2025{j % 12 + 1:02d}01_{MODELS[j]}" / "results" / "results.json"
        write(place, {"resolved": names[row == 1].tolist(), "no_logs": [], "generated": names.tolist()})
    return right


def bfcl(folder):
    write_bfcl(folder, {MODELS[j]: np.flatnonzero(row == 0).tolist() for j, row in enumerate(RIGHT)}, n_items=N_ITEMS)
    return RIGHT


def alpaca_eval(folder):
    shares = np.clip(0.2 + 0.6 * RIGHT + np.linspace(0, 0.15, N_MODELS)[:, None], 0.02, 0.98)
    write_alpaca_eval(folder, {MODELS[j]: (1 + row).tolist() for j, row in enumerate(shares)})
    return shares


def drawn_counts(seed, n_trials):
    """How often each model was right in some trials."""
    return np.random.default_rng(seed).binomial(n_trials, 0.1 + 0.8 * RIGHT)


def live_code_bench(folder):
    counts = drawn_counts(5, 10)
    samples = [{f"q{i}": [k < n for k in range(10)] for i, n in enumerate(row)} for row in counts.tolist()]
    write_live_code_bench(folder, dict(zip(MODELS, samples, strict=True)))
    return counts / 10


def open_llm_v1(folder):
    date = "2023-08-01T00-00-00.000000"
    for j, row in enumerate(RIGHT):
        place = folder / f"details_org__{MODELS[j]}" / date
        place.mkdir(parents=True)
        names = [f"law {i}" for i in range(N_ITEMS)]
        frame = pl.DataFrame({"example": names, "query": names, "gold": [0] * N_ITEMS, "acc": row, "acc_norm": row})
        frame.write_parquet(place / f"details_harness|hendrycksTest-law|5_{date}.parquet")
    return RIGHT


def open_llm_v2(folder):
    for j, row in enumerate(RIGHT):
        samples = [sample(doc, acc_norm=value) for doc, value in enumerate(row)]
        stated = {"leaderboard_bbh_x": {"acc_norm,none": row.mean()}}
        write_run(folder / MODELS[j], f"org/{MODELS[j]}", {"leaderboard_bbh_x": samples}, stated=stated)
    return RIGHT


def mmlu_pro(folder):
    for j, row in enumerate(RIGHT):
        records = [
            {"question_id": 70 + i, "question": "...", "options": ["..."], "category": "law", "answer": "B"}
            | {"pred": "B" if value else (None if i % 2 else "C"), "generated_text": "..."}
            for i, value in enumerate(row)
        ]
        place = folder / "eval_results" / f"model_outputs_{MODELS[j]}_5shots.zip"
        place.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr(f"model_outputs_{MODELS[j]}_5shots.json", json.dumps(records))
    return RIGHT


def wild(folder):
    about = {"model": lambda j, i: MODELS[j], "task": lambda j, i: "mmlu" if i % 2 else "gsm8k"}
    more = {"subtask": lambda j, i: "general", "item_id": lambda j, i: f"{i:02d}", "score": lambda j, i: RIGHT[j, i]}
    costs = {"input_tokens": lambda j, i: 9, "output_tokens": lambda j, i: 5}
    long(folder / "data.parquet", **about, **more, **costs)
    return RIGHT


def measurement_db(folder):
    names = {"subject_id": lambda j, i: MODELS[j], "item_id": lambda j, i: f"{i:02d}"}
    rest = {"benchmark_id": lambda j, i: "terminal_bench", "trial": lambda j, i: 1, "test_condition": lambda j, i: None}
    long(folder / "terminal_bench.parquet", **names, **rest, response=lambda j, i: RIGHT[j, i])
    long(folder / "terminal_bench_traces.parquet", **names, trace=lambda j, i: "...")
    long(folder / "items.parquet", item_id=lambda j, i: f"{i:02d}", content=lambda j, i: "...")
    return RIGHT


def openeval(folder):
    metrics = [{"name": "other"}, {"name": "ifeval_strict_accuracy"}]
    about = {"model": lambda j, i: {"name": MODELS[j], "size": None}, "response_content": lambda j, i: ["..."]}
    ids = {"response_id": lambda j, i: f"ifeval_20260305T120000Z_{i}_{MODELS[j]}_0"}
    scores = {"scores": lambda j, i: {"metric": metrics, "value": [0.5, RIGHT[j, i]]}}
    long(folder / "response" / "ifeval-00000-of-00001.parquet", **ids, **about, **scores)
    return RIGHT


def irsl(folder):
    counts = drawn_counts(6, 8)
    for j, row in enumerate(counts):
        scores = [[int(k < n) for k in range(8)] for n in row]
        frame = {"question_idx": list(range(N_ITEMS)), "question": ["..."] * N_ITEMS, "scores": scores}
        for task in ("bbq", "mmlu"):
            pl.DataFrame(frame).write_parquet(folder / f"{MODELS[j]}_{task}.parquet")
    return counts / 8


def terminal_bench_2(folder):
    counts = drawn_counts(7, 5)
    for j, row in enumerate(counts.tolist()):
        for half, numbers in (("a", range(3)), ("b", range(3, 5))):  # two jobs of a submission; one agent, two efforts
            trials = [
                trial(f"t{i:02d}", float(k < n), number=k, llm=f"m{j // 2}") for i, n in enumerate(row) for k in numbers
            ]
            for one in trials:
                one["config"]["agent"]["kwargs"] = {"reasoning_effort": ("low", "high")[j % 2]}
            write_job(folder / "submissions" / "terminal-bench" / "2.0" / f"terminus-2__{MODELS[j]}" / half, trials)
    return counts / 5


STAND_INS = {
    "swebench-verified": swe_bench, "bfcl": bfcl, "alpaca-eval": alpaca_eval, "livecodebench": live_code_bench,
    "open-llm-v1": open_llm_v1, "open-llm-v2": open_llm_v2, "mmlu-pro": mmlu_pro, "wild": wild, "irsl": irsl,
    "measurement-db": measurement_db, "openeval": openeval, "terminal-bench-2": terminal_bench_2,
}  # fmt: skip


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Folders of the user's banks and of the package's, both empty; recipes are ours."""
    monkeypatch.setenv("ITEMBANK_BANKS", str(tmp_path / "banks"))
    monkeypatch.setattr(bank_places, "PACKAGED", tmp_path / "ready")
    (tmp_path / "ready").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", STAND_INS)
def test_every_recipe_builds_a_bank_of_the_layout_it_was_written_for(name, tmp_path, monkeypatch):
    assert packaged_recipes().keys() == STAND_INS.keys()
    monkeypatch.setenv("ITEMBANK_BANKS", str(tmp_path / "banks"))
    (tmp_path / "files").mkdir()
    truth = STAND_INS[name](tmp_path / "files")
    n_items = truth.shape[1]
    recipe = dataclasses.replace(read_recipe(packaged_recipes()[name]), least_models=10, least_items=n_items)
    monkeypatch.setattr(ready_banks, "read_recipe", lambda path: recipe)
    source = recipe.public(name)
    read = read_public(source, tmp_path / "files", spec=ReadingSpec(**source.choices)).responses
    np.testing.assert_allclose(np.sort(read.responses.mean(axis=0)), np.sort(truth.mean(axis=0)), atol=1e-6)
    np.testing.assert_allclose(np.sort(read.responses.mean(axis=1)), np.sort(truth.mean(axis=1)), atol=1e-6)
    built = build_ready(name, files=tmp_path / "files")
    bank = ib.load_bank(f"bank:{name}")
    assert (bank.bank_id, bank.cache.source) == (built.bank.bank_id, f"bank:{name}")
    assert (bank.n_calibration_models, bank.n_items, bank.n_models) == (N_MODELS, n_items, 0)
    row = next(one for one in list_ready() if one["name"] == f"bank:{name}")
    assert (row["status"], row["n_items"], row["n_models"]) == ("built", n_items, N_MODELS)
    assert row["licence"]
    assert row["sizes"] == sorted(one.selection.n_items for one in built.bank.published.subsets)


@pytest.fixture(scope="module")
def small(few_folds):
    whole = make_bank(n_models=14, n_items=24, n_dims=1, seed=3)
    return without_responses(whole, selections=[ib.select(whole, 8, rng=0)])


RECIPE = """
title = "Ours"
source = "bfcl"
megabytes = 1200
sizes = [8]
"""


def put(small, folder, text=RECIPE):
    small.save(folder)
    (folder / "recipe.toml").write_text(text)


def test_the_users_bank_goes_before_the_packages(small, places):
    (places / "ready" / "mine.toml").write_text(RECIPE)
    with pytest.raises(BankError, match=r"not built yet. Build it: itembank bank build mine \(.* about 1,200 MB\)"):
        ib.load_bank("bank:mine")
    put(small, places / "ready" / "mine")
    assert as_bank_or_responses("bank:mine").cache.folder == places / "ready" / "mine"
    put(small, places / "banks" / "mine")
    assert ib.load_bank("bank:mine").cache.folder == places / "banks" / "mine"
    with pytest.raises(ParameterError, match="Did you mean 'mine'"):
        ib.load_bank("bank:mime")


@pytest.mark.parametrize("name", ["../banks/mine", "", ".", "mine/", "Mine", "mine\0", "/mine"])
def test_a_name_leads_to_no_other_place(name, small, places):
    put(small, places / "banks" / "mine")
    put(small, places / "mine")
    with pytest.raises(ParameterError, match="must be named bank:NAME"):
        ib.load_bank(f"bank:{name}")


def test_a_journal_names_the_bank(small, places):
    put(small, places / "banks" / "mine")
    with ib.start_session(places / "run.jsonl", "bank:mine", model_id="m") as session:
        assert session.ask()
    assert json.loads((places / "run.jsonl").read_text().partition("\n")[0])["bank_path"] == "bank:mine"
    with ib.open_session(places / "run.jsonl") as session:
        assert session.ask()


def test_the_list_tells_what_was_measured_and_survives_what_is_damaged(small, places, monkeypatch):
    put(small, places / "ready" / "mine", RECIPE + '[fetched]\nrevision = "abc"\ndate = "2026-01-01"\n')
    (places / "ready" / "more.toml").write_text(RECIPE)
    put(small, places / "banks" / "torn")
    (places / "banks" / "torn" / "bank.json").write_text("{}")
    record = json.loads((places / "ready" / "mine" / "bank.json").read_text())
    sizes = [{"n_items": n, "error": 0.1 / n, "half_width": 0.3 / n, "coverage": 0.9} for n in (8, 4)]
    record["published"] |= {"subsets": sizes, "newest": "2025-11-28"}
    with monkeypatch.context() as patch:
        patch.setattr("itembank_living.publishing.recipes.read_record", lambda path: record)
        mine = next(one for one in list_ready(today=datetime.date(2026, 11, 28)) if one["name"] == "bank:mine")
    assert mine | {"status": "package", "sizes": [4, 8], "at_items": 8, "error": 0.0125, "months_old": 12.0} == mine
    assert (mine["revision"], mine["fetched"], mine["newest"]) == ("abc", "2026-01-01", "2025-11-28")
    assert {row["name"]: row["status"] for row in list_ready()} == {
        "bank:torn": "damaged", "bank:mine": "package", "bank:more": "recipe",
    }  # fmt: skip


OWN = """
title = "Ours"
megabytes = 1
least_models = 10
sizes = [8, 4]

[source]
address = "https://example.invalid/results"
licence = "MIT"
layout = "<month>/results.csv"
reader = "long"

[source.archive]
url = "{url}"
patterns = ["*/results.csv"]
sha256 = "{sha256}"
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def own(places):
    """A recipe of one's own, of an archive that git made, with a model whose results are in part missing."""
    rows = ["model_id,item_id,response", "part,i00,1"]
    rows += [f"{MODELS[j]},i{i:02d},{RIGHT[j, i]:g}" for j in range(N_MODELS) for i in range(N_ITEMS)]
    content = "\n".join(rows).encode()
    with tarfile.open(places / "a.tar.gz", "w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": COMMIT}) as tar:
        member = tarfile.TarInfo("repo-main/may/results.csv")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    archive = (places / "a.tar.gz").read_bytes()
    path = places / "ours.toml"
    text = OWN.format(url=(places / "a.tar.gz").as_uri(), sha256=hashlib.sha256(archive).hexdigest())
    path.write_text(text)
    return path


def test_a_recipe_of_ones_own_is_fetched_built_and_built_again(own, places):
    with pytest.warns(DataWarning, match="1 of 15 models are left out: 'part'"):
        built = build_ready(own, into=places / "files")
    assert (built.left_out, built.fetched.revision) == (("part",), COMMIT)
    assert sorted(path.name for path in built.folder.parent.iterdir()) == ["ours"]
    (row,) = list_ready()
    assert (row["licence"], row["revision"], row["sizes"]) == ("MIT", COMMIT, [4, 8])
    with pytest.raises(BankError, match="is a bank already"):
        build_ready(own)
    shutil.copyfile(built.folder / "recipe.toml", own)  # the bank's own recipe builds it again
    again = build_ready(own, files=places / "files", overwrite=True)
    assert again.bank.bank_id == built.bank.bank_id
    assert read_recipe(again.folder / "recipe.toml").fetched.revision == COMMIT


def test_a_source_that_changed_is_refused_and_nothing_stands(own, places):
    with (places / "a.tar.gz").open("ab") as file:
        file.write(b"x")
    with pytest.raises(IntegrityError, match="changed at its source"):
        build_ready(own)
    own.write_text(own.read_text().replace("sha256 = ", "# "))
    build_ready(own, into=places / "files")
    own.write_text(f'revision = "v2"\n{own.read_text()}')
    with pytest.raises(ParameterError, match="a revision is for archives of GitHub"):
        build_ready(own, overwrite=True)
    (places / "a.tar.gz").unlink()
    own.write_text(own.read_text().replace('revision = "v2"', "least_models = 20").replace("least_models = 10", ""))
    with pytest.raises(DataError, match=r"could not be fetched.* built without a connection .*files='FOLDER'"):
        build_ready(own, overwrite=True)
    with pytest.raises(DataError, match=r"at least 20 models with answers to 100 % .* got 14 \(of 15 models"):
        build_ready(own, files=places / "files", overwrite=True)
    assert ib.load_bank("bank:ours").n_calibration_models == N_MODELS  # what stood there does still


def test_files_of_another_state_than_the_recipe_names_are_refused(places):
    path = places / "other.toml"
    path.write_text(RECIPE + f'revision = "{COMMIT}"\n')
    write(places / "files" / ".fetched.json", {"revision": "f" * 40, "date": "2026-01-01"})
    with pytest.raises(DataError, match=f"that .*other.toml names, {COMMIT}, got f{{40}}"):
        build_ready(path, files=places / "files")


def test_sizes_that_no_bank_can_have_are_told(own, places):
    own.write_text(own.read_text().replace("sizes = [8, 4]", "sizes = [500]"))
    with pytest.warns(DataWarning, match=r"of the recipe's sizes, 500, .* errors are measured for 12 items"):
        build_ready(own, into=places / "files")
    assert [row["sizes"] for row in list_ready() if row["status"] == "built"] == [[12]]


def test_models_whose_score_is_not_the_published_one_stay_out(places):
    rates = {name: 100 * row.mean() for name, row in zip(MODELS, RIGHT, strict=True)} | {MODELS[3]: 99.0}
    write_alpaca_eval(places / "files", {MODELS[j]: (1 + row).tolist() for j, row in enumerate(RIGHT)}, win_rates=rates)
    (places / "mine.toml").write_text(RECIPE.replace("bfcl", "alpaca-eval") + "least_models = 10\n")
    assert build_ready(places / "mine.toml", files=places / "files").left_out == (MODELS[3],)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title = 'a'", "must have source, megabytes as well"),
        (f"{RECIPE}size = [1]", "keys of the file must be among .* Did you mean 'sizes'"),
        (f"{RECIPE}dims = 'many'", "dims must be a whole number or 'auto'"),
        (f"{RECIPE}dims = 0", "dims must be 'auto' or 1"),
        (f"{RECIPE}least_answered = 2", "least_answered must be above 0"),
        (f"{RECIPE}revision = '../x'", "a revision must be a commit or a tag"),
        (f"{RECIPE}n_models = 5", "is fetched whole, so models and n_models must be left out"),
        (RECIPE.replace("bfcl", "open-llm-leaderboard-v2"), "keeps one repository a model, so models or n_models must"),
        (RECIPE.replace("bfcl", "bfc"), "Did you mean 'bfcl'"),
        (f"{RECIPE}[read]\nmetrics = ['a']", r"keys of \[read\] must be among"),
        (f"{RECIPE}[read]\nerrors = 'no'", "errors must be 'missing', 'wrong' or 'bounds'"),
        (f"{RECIPE}[calibrate]\nfamily = 'normal'", "calibrate.family must be"),
        (OWN.replace("long", "lm-evaluation"), "the reader of a source must be one of"),
        (OWN.replace("patterns", "pattern"), r"keys of \[source.archive\] must be among"),
    ],
)
def test_what_a_recipe_gets_wrong_is_said(text, says, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ParameterError, match=says) as refusal:
        read_recipe(tmp_path / "mine.toml")
    assert "mine.toml" in str(refusal.value)


def test_a_recipe_that_is_none_is_said(tmp_path):
    (tmp_path / "My bank.toml").write_text(RECIPE)
    for given, words in (
        ("bfc", "Did you mean 'bfcl'"),
        (tmp_path / "none.toml", r"or a file NAME.toml that is there, got .*none.toml'"),
        (tmp_path / "My bank.toml", "Rename the file"),
    ):
        with pytest.raises(ParameterError, match=words):
            build_ready(given)
