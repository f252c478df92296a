"""`itembank scaling`, and how its commands read built-in data."""

import csv
import io
import shlex
from functools import partial

import click
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from itembank.cli.main import cli
from itembank.cli.signatures import verb
from itembank.errors import ParameterError
from itembank.readers.builtin import BUILTIN_RESPONSES, load_builtin
from itembank.responses.response_files import write_responses
from itembank_scaling.cli.scaling_options import Builtin, Responses, read_responses_or_builtin
from itembank_scaling.cli.scaling_pretrain import _settings
from itembank_scaling.pretraining.law_specs import DEFAULT_LAWS
from tests.cli.conftest import holds, spec_file
from tests.scaling.samples import known_bank, simulated_samples
from tests.scaling.simulated_suite import simulated_suite
from tests.scaling.two_scenarios import simulated


@pytest.fixture
def read():
    """Run a command that does nothing but read, and return what it read, or what it said."""

    def run(*words, prefers="correct"):
        found = []

        @verb("read")
        def command(*, responses: Responses, builtin: Builtin):
            found.append(read_responses_or_builtin(responses, builtin, prefers=prefers))

        result = CliRunner().invoke(command, words)
        assert result.exit_code == (0 if found else 2) or isinstance(result.exception, ParameterError)
        return found[0] if found else result.stderr or str(result.exception)

    return run


@pytest.mark.parametrize("kind", BUILTIN_RESPONSES["bytelms"])
def test_the_kind_of_builtin_data_is_the_one_asked_for(read, kind):
    found = read("--builtin", f"bytelms:{kind}")
    np.testing.assert_array_equal(found.responses, load_builtin("bytelms", response=kind).responses)


def test_a_command_may_prefer_probabilities_which_not_all_data_have(read):
    def kind(name):
        found = read("--builtin", name, prefers="probability")
        return "correct" if np.array_equal(found.responses, load_builtin(name.split(":")[0]).responses) else "another"

    assert (kind("classifiers"), kind("bytelms-samples")) == ("another", "correct")
    assert kind("classifiers:correct") == "correct"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "Give either RESPONSES or --builtin"),
        (("--builtin", "nowhere"), "built-in data must be one of"),
        (("--builtin", "bytelms-samples:probability"), "must be one of 'correct', got 'probability'"),
    ],
)
def test_what_builtin_data_do_not_have_is_refused(read, words, text):
    assert text in read(*words)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    suite = simulated_suite(np.random.default_rng(3), n_recipes=4, n_items=12, n_sizes=4, n_checkpoints=1)
    matrix = suite.probability
    write_responses(matrix.with_tables(models=pl.DataFrame({"model_id": matrix.model_ids})), folder / "nothing.parquet")
    write_responses(matrix.with_tables(models=suite.models), folder / "responses.parquet")
    unknown = suite.models.drop("flops", "params")
    write_responses(matrix.with_tables(models=unknown), folder / "unknown.parquet")
    words = ["calibrate", str(folder / "responses.parquet"), "-o", str(folder / "bank"), "--family", "beta"]
    assert CliRunner().invoke(cli, [*words, "--dims", "1", "--no-folds"]).exit_code == 0
    return folder


def checked(files, n, more=""):
    """Let the call hold out so many sizes."""
    path = files / f"checked-{n}{len(more)}.toml"
    path.write_text(f"n_checked = {n}\n{more}")
    return "--spec", str(path)


@pytest.fixture
def pretrain(run, files):
    return partial(run, "scaling", "pretrain", files / "responses.parquet")


def known(files, *options):
    """Options with items that are known already, which is quicker."""
    return "scaling", "pretrain", files / "responses.parquet", "--bank", files / "bank", *options


def test_json_has_forecasts_and_what_they_are_worth(run, files):
    content = run.json(*known(files, "--law", "irsl", "--target-flops", "1e14"))
    assert (content["target_flops"], len(content["forecasts"])) == (1e14, 2 * 4)
    assert all(row["low"] < row["score"] < row["high"] for row in content["forecasts"])
    assert content["comparison"][0]["n_forecasts"] == 2 * 4
    assert len(content["held-out"]) == 3 * 2 * 4  # the law, and two by hand


def test_csv_has_the_law_that_the_table_shows_unless_all_are_asked_for(pretrain, files):
    both = ("--law", "sigmoid", "--law", "trend", *checked(files, 0), "--format", "csv")
    for options in ((), ("--show", "all"), ("--show", "forecasts")):
        laws = {"sigmoid", "trend"} if options else {"sigmoid"}
        done = pretrain(*both, *options)
        assert {row["law"] for row in csv.DictReader(io.StringIO(done.out))} == laws
        assert ("by all laws: --show all" in done.err) is (not options)


@pytest.mark.usefixtures("without_library")
def test_a_table_for_the_terminal_a_figure_and_a_page(run, files, tmp_path):
    figure, page = tmp_path / "scores.svg", tmp_path / "forecast.html"
    unchecked = known(files, "--law", "irsl", *checked(files, 0))
    done = run.ok(*unchecked, "--figure", figure, "--kind", "abilities", "--report", page)
    best = max(run.json(*unchecked)["forecasts"], key=lambda row: row["score"])
    first = done.out.splitlines()[0]
    assert f"{best['recipe']} should score {100.0 * best['score']:.1f} points (" in first
    assert first.endswith(" recipes")  # no sizes were held out, so that nothing is known of errors
    assert ("recipe-3" in done.out, figure.read_text(encoding="utf-8")[:4]) == (True, "<svg")
    holds(done.err, "Figure:", f"Report: {page}")
    assert "by the item response law" in page.read_text(encoding="utf-8")


def test_items_calibrated_on_recipes_of_the_past_with_few_items(pretrain, files):
    options = checked(files, 0, 'n_items = 8\ncalibration_recipes = ["recipe-0", "recipe-1"]')
    rows = csv.DictReader(io.StringIO(pretrain("--law", "irsl", "--format", "csv", *options).out))
    assert {row["recipe"] for row in rows} == {"recipe-2", "recipe-3"}


def test_what_cannot_be_forecast_is_an_error(run, files):
    command = ("scaling", "pretrain")
    run.fails(1, "training compute", *command, files / "unknown.parquet")
    run.fails(2, "must end in one of", *command, files / "responses.parquet", "--figure", "scores.doc")
    run.fails(2, "--bank goes with --law irsl. Leave it out", *known(files, "--law", "sigmoid"))
    run.fails(2, "itembank import --models FILE", *command, files / "nothing.parquet")


def test_the_default_table_has_the_law_named_first_and_all_has_every_law(run, files):
    short = run.ok(*known(files, "--law", "sigmoid", "--law", "irsl", *checked(files, 1)))
    long = run.ok(*known(files, "--law", "irsl", "--law", "sigmoid", *checked(files, 0), "--show", "all"))
    forecasts = [outcome.out.split("Forecasts of the largest sizes")[0] for outcome in (short, long)]
    assert [text.count(" irsl ") for text in forecasts] == [0, 2 * 4]
    assert [text.count(" sigmoid ") for text in forecasts] == [2 * 4, 2 * 4]
    assert " irsl " in short.out  # in the comparison
    holds(short.err, "Forecasts of irsl: --show all.", "Note: irsl was ")


@pytest.mark.slow
def test_auto_shows_the_law_that_was_closest(pretrain, files):
    """These models were made by the item response law."""
    done = pretrain(*checked(files, 1))
    assert [done.out.split("largest sizes")[0].count(f" {law} ") for law in ("irsl", "sigmoid")] == [2 * 4, 0]
    holds(done.err, " on the held-out sizes (", "Forecasts of two-step, sigmoid and trend: --show all.")
    assert "--law auto fits four laws: give it alone" in pretrain("--law", "auto", "--law", "irsl").err


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--kind decisions UNCHECKED --figure x.png", "--kind decisions draws sizes"),
        ("--kind abilities --law sigmoid --figure x.png", "add --law irsl"),
        ("--show comparison UNCHECKED", "--show comparison needs sizes"),
    ],
)
def test_what_was_not_asked_for_cannot_be_shown(run, files, tmp_path, monkeypatch, options, text):
    monkeypatch.chdir(tmp_path)
    words = options.replace("UNCHECKED", " ".join(checked(files, 0))).split()
    run.fails(2, text, "scaling", "pretrain", files / "responses.parquet", *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("fewest_size = 2", "Did you mean 'fewest_sizes'?"),
        ("largest_flops = 'all'", "largest_flops must be a number, got 'all'"),
        ("[[laws]]\nname = 'irls'", "laws.name: "),
        ("[[laws]]\nname = 'irsl'\nshape = 'curve'", "shape must be"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(run, files, tmp_path, content, text):
    run.fails(2, text, "scaling", "pretrain", files / "responses.parquet", *spec_file(tmp_path, content))


def test_the_laws_of_a_file_are_fitted_and_an_option_chooses_among_them(tmp_path):
    _, path = spec_file(tmp_path, "laws = ['trend', {name = 'irsl', gap = 'none'}]\nn_checked = 1")
    found = []

    @click.command()
    @click.option("--law", "laws", multiple=True)
    def command(laws):
        settings, is_auto = _settings({"laws": laws}, path)
        found.append((settings.names, settings.item_law.gap, settings.n_checked, is_auto))

    for words in ((), ("--law", "irsl"), ("--law", "auto")):
        assert CliRunner().invoke(command, words).exit_code == 0
    named = [(names, "none", 1, False) for names in (("trend", "irsl"), ("irsl",))]
    assert found == [*named, (DEFAULT_LAWS, "none", 1, True)]


TEST_TIME = ("scaling", "test-time")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Samples of twelve models, and a bank that knows the items."""
    made = tmp_path_factory.mktemp("samples")
    samples = simulated_samples(n_models=12, n_items=24, n_trials=100)
    write_responses(samples.responses, made / "samples.parquet")
    known_bank(samples).save(made / "bank")
    return made


def test_curves_as_a_table_and_as_a_figure(run, folder, tmp_path):
    words = (folder / "samples.parquet", "--k", "1,10,1e4", "--model", "model-2")
    outcome = run.ok(*TEST_TIME, *words, "--figure", tmp_path / "curves.png")
    first, *lines = [line for line in outcome.out.splitlines() if "model-2" in line]
    score, low, _, high = lines[-1].split()[3:7]
    assert first.startswith("pass@10000 of model-2 on ")
    assert first.endswith(f" should be {score} points ({low} to {high})")
    assert [line.split()[2] for line in lines] == ["1", "10", "10000"]
    assert "95 % interval" in outcome.out
    assert " to " in lines[0]
    assert lines[-1].split()[-1] == "-"  # the unbiased estimate has no value there, and a note says why
    assert "unbiased estimate has no value" in outcome.err
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_json_has_every_table_and_tells_of_models_the_bank_knows(run, folder):
    words = (*TEST_TIME, folder / "samples.parquet", "--bank", folder / "bank", "--k", "1,10", "--budget", 20)
    words = (*words, "--model", "model-1")
    whole = run.json(*words)
    assert {"methods", "budget", "notes", "curves", "errors", "tail"} <= set(whole)
    assert (len(whole["curves"]), whole["tail"][0]["n_correct"]) == (2 * 6, 0)
    assert [row["method"] for row in whole["errors"] if row["items"] == "all"] == whole["methods"]
    notes = run(*words, *spec_file(folder, 'interval = "model-based"')).err
    holds(notes, "Note: estimates use 20 samples", "rest on the item model")
    assert any("as wide as the item model says" in text for text in whole["notes"])
    outcome = run(*TEST_TIME, folder / "samples.parquet", "--bank", folder / "bank", "--k", "1", "--model", "model-1")
    assert "among the past models of this bank" in outcome.err


@pytest.mark.usefixtures("without_library")
def test_rows_of_single_samples_are_counted(run, tmp_path):
    """One row a sample: three models, four items, ten samples each."""
    lines = ["model_id,item_id,seed,response"]
    lines += [
        f"m{m},q{q},{seed},{int((seed * (q + 1)) % 7 < m + q)}"
        for m in range(3)
        for q in range(4)
        for seed in range(10)
    ]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    counted = tmp_path / "counted.parquet"
    run.ok("import", tmp_path / "long.csv", "--repeats", "count", "-o", counted)
    outcome = run.ok(*TEST_TIME, counted, "--k", "5", "--method", "unbiased", "--format", "csv")
    assert len(outcome.out.splitlines()) == 4


def test_data_that_cannot_tell_fails(run, folder, tmp_path):
    run.fails(1, "budget must be at most", *TEST_TIME, folder / "samples.parquet", "--budget", 101)
    (tmp_path / "shares.csv").write_text("model_id,item_id,response\na,q,0.5\nb,q,0.25\nc,q,0.75\n")
    run.fails(1, "n_correct and n_trials", *TEST_TIME, tmp_path / "shares.csv")
    assert "without counts" in run(*TEST_TIME, "--builtin", "classifiers").err


@pytest.fixture(scope="module")
def two_scenarios(tmp_path_factory):
    path = tmp_path_factory.mktemp("transfer") / "responses.parquet"
    write_responses(simulated(np.random.default_rng(4), n_models=60, n_items=20)[0], path)
    return path


def test_transfers_say_the_validity_which_is_told_alone_too(run, two_scenarios, tmp_path):
    figure = tmp_path / "transfer.svg"
    words = shlex.split("--source s0 --target s1 --clusters recipe --method calibrated --method common-scale")
    found = run.json("scaling", "transfer", two_scenarios, *words, "--figure", figure)
    assert list(found)[1:5] == ["source", "target", "correlation", "correlation_lower"]
    assert [row["method"] for row in found["methods"]] == ["calibrated", "common-scale", "uninformed"]
    assert len(found["models"]) == 60
    assert {row["group"] for row in found["models"]} == {f"r{i}" for i in range(8)}
    assert all(row["flops"] > 0.0 for row in found["models"])
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    figure = tmp_path / "validity.svg"
    words = ("scaling", "transfer", two_scenarios, "--show", "validity")
    found = run.json(*words, "--figure", figure)
    assert found["interval"] == "fisher"
    assert found["pairs"][0]["beyond_compute"] < found["pairs"][0]["correlation"]
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    run.ok(*words, "--figure", figure, "--source", "s0", "--target", "s1")
    assert "Ability on s0" in figure.read_text(encoding="utf-8")
    grouped = run.json(*words, "--clusters", "recipe")
    assert grouped["n_groups"] == 8


def test_every_scenario_from_easy_to_hard(run, two_scenarios, tmp_path):
    figure = tmp_path / "errors.png"
    command = ("scaling", "transfer", two_scenarios, "--figure", figure, "--format")
    rows = list(csv.DictReader(io.StringIO(run(*command, "csv").out)))
    assert [(row["target"], row["method"]) for row in rows] == [
        (f"s{i} (hard)", name) for i in range(2) for name in ("calibrated", "scores", "uninformed")
    ]
    assert figure.stat().st_size > 1000
    one = run(*command, "json").json["transfers"][0]  # the validity is not what a prediction correlates
    assert float(rows[0]["validity"]) == one["correlation"]
    assert float(rows[0]["correlation"]) == one["methods"][0]["correlation"]
