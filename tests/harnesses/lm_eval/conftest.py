"""A family of simulated models behind lm_eval, their logs, and a bank of them."""

import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from itembank.bank.bank_files import load_bank
from itembank.cli.main import cli

EXAMPLE = Path(__file__).resolve().parents[3] / "examples"
N_MODELS = 14
N_ITEMS = {"sums": 24, "products": 12, "words": 16}
QUICK = ("--method", "map", "--dims", "1", "--no-folds")


@pytest.fixture(scope="session")
def simulated(tmp_path_factory):
    """The module of the simulated model; nothing is looked for on a network."""
    pytest.importorskip("lm_eval")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_DATASETS_OFFLINE", "1")
        patch.setenv("HF_DATASETS_CACHE", str(tmp_path_factory.mktemp("datasets")))
        patch.setenv("TQDM_DISABLE", "1")
        import simulated_lm  # noqa: PLC0415

        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        yield simulated_lm
        sys.modules.pop("simulated_lm", None)


@pytest.fixture(scope="session")
def manager_of(simulated, tmp_path_factory):
    """Make an index of the simulated tasks, whose texts are generated so many times an item."""
    from lm_eval.tasks import TaskManager  # noqa: PLC0415

    made = {}

    def manager(repeats=1):
        if repeats not in made:
            folder = simulated.write_tasks(tmp_path_factory.mktemp("tasks"), N_ITEMS, repeats)
            made[repeats] = TaskManager(include_path=str(folder), include_defaults=False)
        return made[repeats]

    return manager


def write_logs(folder, model, n_models, told="", **arguments):
    """Let models of different skill run tasks in full, and write their logs as the harness does."""
    from lm_eval import evaluator  # noqa: PLC0415
    from lm_eval.loggers import EvaluationTracker  # noqa: PLC0415

    for k, skill in enumerate(1.3 * np.random.default_rng(8).normal(size=n_models)):
        tracker = EvaluationTracker(output_path=str(folder))
        results = evaluator.simple_evaluate(
            model=model(skill=skill, seed=k),
            model_args=f"model=m{k}{told}",
            bootstrap_iters=0,
            evaluation_tracker=tracker,
            **arguments,
        )
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for task in samples:
            tracker.save_results_samples(task_name=task, samples=samples[task])


def invoked(*words):
    """Run a command of itembank that must succeed."""
    result = CliRunner().invoke(cli, list(map(str, words)))
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="session")
def evaluate(manager_of):
    """Evaluate a model as the harness does, on all items unless something says otherwise."""
    from lm_eval import evaluator  # noqa: PLC0415

    def run(lm, tasks=("quiz",), *, repeats=1, **arguments):
        return evaluator.simple_evaluate(
            model=lm, tasks=list(tasks), task_manager=manager_of(repeats), bootstrap_iters=0, **arguments
        )

    return run


@pytest.fixture(scope="session")
def logs(simulated, manager_of, tmp_path_factory):
    """A folder of full runs, as the harness writes them."""
    folder = tmp_path_factory.mktemp("logs")
    write_logs(folder, simulated.SimulatedLM, N_MODELS, tasks=["quiz"], task_manager=manager_of())
    return folder


def with_spec(reading, folder):
    """Write the lines of a reading spec that stand behind `--spec` into a file."""
    if "--spec" not in reading:
        return reading
    (folder / "reading.toml").write_text(reading[-1])
    return (*reading[:-1], folder / "reading.toml")


@pytest.fixture(scope="session")
def runs_of(tmp_path_factory):
    """Make a folder with logs of full runs, and the bank that is imported from them."""

    def runs(*given, reading=(), **arguments):
        folder = tmp_path_factory.mktemp("runs")
        write_logs(folder / "logs", *given, **arguments)
        invoked("import", folder / "logs", "-o", folder / "past.parquet", *with_spec(reading, folder))
        invoked("calibrate", folder / "past.parquet", "-o", folder / "bank", *QUICK)
        return folder

    return runs


@pytest.fixture(scope="session")
def bank_of(logs, tmp_path_factory):
    """Make a bank of the logs; more words go to `import` and to `calibrate`."""
    made = {}

    def bank(reading=(), calibrating=()):
        key = (reading, calibrating)
        if key not in made:
            folder = tmp_path_factory.mktemp("bank")
            invoked("import", logs, "-o", folder / "past.parquet", *with_spec(reading, folder))
            invoked("calibrate", folder / "past.parquet", "-o", folder / "bank", *QUICK, *calibrating)
            made[key] = folder / "bank"
        return made[key]

    return bank


@pytest.fixture(scope="session")
def bank(bank_of):
    """The bank of the logs, loaded."""
    return load_bank(bank_of())


@pytest.fixture
def new_model(simulated):
    """A model that is not in the bank."""
    return simulated.SimulatedLM(skill=0.6, seed=99)
