"""Trials of agents in the layouts of all programs that make them; and pass^k of counted trials."""

import json
import math

import numpy as np
import polars as pl
import pytest

import itembank as ib
import itembank_living
from itembank.errors import DataError, DataWarning, ParameterError, command_line_words
from itembank.readers.agreement import check_same_prompts
from itembank.readers.read import read_responses
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.error_kinds import KINDS
from itembank.responses.prompts import PROMPT_SETTINGS
from tests.readers import test_harbor
from tests.readers.reading import put, put_lines, read, refuses, warns

pytestmark = pytest.mark.filterwarnings("ignore:.*(lost answers count as|trials have no verdict)")


def simulation(task, reward, trial=0, end="user_stop"):
    told = None if reward is None else {"reward": reward, "db_check": {}}
    about = {
        "task_id": str(task), "trial": trial, "termination_reason": end, "agent_cost": 0.1 + task, "duration": 60.5,
    }  # fmt: skip
    return {**about, "reward_info": told, "messages": []}


def results(simulations, *, llm="openai/m", user="gpt-4.1", agent="llm_agent", args=None, purpose="book"):
    """A whole file of results."""
    return {
        "info": {"max_steps": 200, "agent_info": {"implementation": agent, "llm": llm, "llm_args": args or {}},
            "user_info": {"llm": user}, "environment_info": {"domain_name": "airline"}},
        "tasks": [{"id": str(task), "description": {"purpose": purpose}} for task in range(3)],
        "simulations": simulations,
    }  # fmt: skip


RUNS = [
    *(simulation(0, reward, trial) for trial, reward in enumerate([1.0, 0.0, 1.0, 1.0])),
    *(simulation(1, 0.0, 0, "max_steps"), simulation(1, 0.0, 1, "infrastructure_error")),
    simulation(2, None, 0, "infrastructure_error"),
]


def test_simulations_are_counted_also_by_an_index_and_named_by_their_agents(tmp_path):
    found = read(put(tmp_path / "m.json", results(RUNS)))
    assert (found.model_ids, found.item_ids) == (["openai/m"], ["airline/0", "airline/1", "airline/2"])
    np.testing.assert_array_equal(found.responses, [[0.75, 0.0, np.nan]])
    np.testing.assert_array_equal(found.n_trials[:, :2], [[4, 1]])
    np.testing.assert_array_equal(found.lost.n, [[0, 1, 1]])
    np.testing.assert_allclose(found.costs["cost_usd"], [[0.1, 1.1, 2.1]])
    told = {"task_args": "max_steps=200", "user": "gpt-4.1", "highest_reward": "1"}
    assert json.loads(found.items[PROMPT_SETTINGS][0]) == told
    whole = results(RUNS)
    index = [{**one, "reward": (one.pop("reward_info") or {}).get("reward")} for one in map(dict, RUNS)]
    indexed = {name: part for name, part in whole.items() if name != "simulations"}
    put(tmp_path / "b" / "m" / "results.json", {**indexed, "simulation_index": index})
    for number, one in enumerate(RUNS):
        put(tmp_path / "b" / "m" / "simulations" / f"{number}.json", one)
    by_index = read(tmp_path / "b" / "m")
    by_file = read(put(tmp_path / "b" / "m.json", whole))
    np.testing.assert_array_equal(by_index.responses, by_file.responses)
    np.testing.assert_array_equal(by_index.lost.n, by_file.lost.n)
    assert by_index.items.equals(by_file.items)
    put(tmp_path / "c" / "a.json", results(RUNS, agent="planner"))
    put(tmp_path / "c" / "b.json", results(RUNS))
    assert read(tmp_path / "c").model_ids == ["planner+openai/m", "openai/m"]
    put(tmp_path / "c" / "c.json", results(RUNS, args={"temperature": 1.0}))
    refuses(r"ran with none in .* and with temperature=1.0", read, tmp_path / "c")


@pytest.mark.parametrize(
    ("other", "message"), [({"user": "gpt-5"}, "simulated user"), ({"purpose": "cancel"}, "content")]
)
def test_another_user_or_task_is_another_benchmark(tmp_path, other, message):
    put(tmp_path / "a.json", results(RUNS))
    put(tmp_path / "b.json", results(RUNS, llm="n", **other))
    refuses(message, read, tmp_path)


LOST = {
    "harbor": "harness", "tau2": "harness", "tau-bench": "harness", "verifiers": "time-out", "verifiers-v1": "harness",
}  # fmt: skip
"""Kind of the error of a trial without a reward, by the layout of these files."""
ONE = pytest.mark.parametrize("layout", LOST)


def write(layout, folder, rewards, *, llm="m", heat=0.0, content="", domain="airline"):
    """Write the results of a model: of each task a list of rewards, None where an error ended the trial."""
    told = [(task, k, reward) for task, own in enumerate(rewards) for k, reward in enumerate(own)]
    heats, place = {"heat": heat} if heat else {}, folder / f"{domain}--{llm}"
    if layout == "harbor":
        about = {"llm": llm, "source": domain, "config": {"agent": {"kwargs": heats}}}
        silent = {"exception_info": {"exception_type": test_harbor.SILENT}}
        trials = [
            test_harbor.trial(f"t{task}", reward, number=k, task_checksum=f"{task}{content}", **about)
            | (silent if reward is None else {})
            for task, k, reward in told
        ]
        test_harbor.write_job(folder / f"{folder.name}-{llm}", trials)
    elif layout == "tau2":
        ends = ("user_stop", "infrastructure_error")
        runs = [simulation(task, reward, k, ends[reward is None]) for task, k, reward in told]
        file = results(runs, llm=llm, args=heats, purpose=f"book{content}")
        file["info"]["environment_info"]["domain_name"] = domain
        put(folder / f"{llm}.json", file)
    elif layout == "tau-bench":
        policy = {"role": "system", "content": f"# {domain.title()} agent policy\n\nHelp."}
        broken = {"traj": [], "info": {"error": "RateLimitError: 429"}}
        records = [
            {"task_id": task, "reward": reward or 0.0, "trial": k}
            | (broken if reward is None else {"traj": [policy], "info": {"task": {"user_id": f"{task}{content}"}}})
            for task, k, reward in told
        ]
        put(folder / f"tool-calling-{llm}-{heat}_range_0--1_user-gpt-4o-llm_0612101500.json", records)
    elif layout == "verifiers":
        records = [
            {"example_id": task, "prompt": f"q{task}{content}", "answer": "x", "completion": []}
            | {"reward": reward or 0.0, "error": {"error": "ReadTimeout"} if reward is None else None}
            for task, _, reward in told
        ]
        put_lines(place / "run" / "results.jsonl", records)
        sampling = {"temperature": heat} if heat else {}
        put(place / "run" / "metadata.json", {"model": llm, "env_id": domain, "sampling_args": sampling})
    else:
        put_lines(place / "traces.jsonl", [episode(task, reward, content, domain) for task, _, reward in told])
        config = {"model": llm, "sampling": {"temperature": heat or None}, "env": {"taskset": {"id": domain}}}
        put(place / "configs" / "eval.json", config)


def episode(task, reward, content="", domain="airline"):
    """An episode whose reward is a sum of two, beside a judge's trace."""
    about = {"type": "T", "data": {"idx": task}, "key": f"k{task}", "hash": f"{task}{content}"}
    failed = [] if reward is not None else [{"type": "SandboxError", "message": "gone"}]
    rewards = None if reward is None else {"score": reward, "weight": 1.0 - 0.9}
    own = {
        "agent": {"config": {}, "trainable": True},
        "rewards": {"right": rewards and {"score": reward, "weight": 0.9}, "form": rewards, "other": None},
        "calls": [{"model": "called", "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}}] * 2,
        "timing": {"agent": {"start": 1.0, "end": 3.5}},
    }
    judge = {"agent": {"trainable": False}, "rewards": {}, "calls": [{"model": "judge"}]}
    env = {"id": domain}
    return {"env": env, "task": about, "ok": not failed, "errors": failed, "traces": [] if failed else [own, judge]}


@ONE
def test_trials_are_counted_and_lost_or_without_a_number(layout, tmp_path):
    write(layout, tmp_path, [[1.0, 0.0, 1.0, None], [0.0, 0.0], [None]])
    found = read(tmp_path)
    np.testing.assert_allclose(found.responses, [[2 / 3, 0.0, np.nan]])
    assert (found.n_trials.tolist(), found.lost.n.tolist()) == ([[3, 2, 0]], [[1, 0, 1]])
    assert {KINDS[code] for code in found.lost.kind[0, [0, 2]]} == {LOST[layout]}
    np.testing.assert_array_equal(found.with_errors("wrong").responses, [[0.5, 0.0, 0.0]])
    assert found.items["scenario"].unique().to_list() == ["airline"]
    assert found.model_ids == ["terminus-2@2.0.0+openai/m" if layout == "harbor" else "m"]
    write(layout, tmp_path / "b", [[1.0, math.nan], [0.0]])
    found = read(tmp_path / "b")
    assert (found.responses.tolist(), found.n_trials.tolist(), found.lost.n.tolist()) == ([[1, 0]], [[1, 1]], [[1, 0]])


BAD = [
    ([[1.0, -0.5]], {}, r"rewards must be from 0 to 1, got -0.5 for task '.*0'\. Rewards below 0 need another scale"),
    ([[4.0, 2.0]], {}, r"rewards must be .*, got 4 for task '.*0' and others for 1 more trial\. .*--max-response 4"),
    ([[0.25, 0.75]], {}, "repeated attempts .*--repeats mean"),
    ([[1.0]], {"heat": 0.5}, r"ran with .* in .* and with .*0\.5"),
    ([[1.0]], {"content": "new", "llm": "n"}, "the content of an item must be the same"),
    ([[1.0, 0.0]], {"rewards": [[1.0, 1.0]]}, "repeated attempts .*--repeats count"),
]
"""Rewards, what another file has otherwise, and what is said."""


@ONE
@pytest.mark.parametrize(("rewards", "other", "message"), BAD)
def test_what_cannot_be_one_right_number_is_refused(layout, rewards, other, message, tmp_path):
    write(layout, tmp_path / "a", rewards)
    if other:
        write(layout, tmp_path / "b", **{"rewards": rewards, **other})
    with pytest.raises(DataError, match=message), command_line_words():
        read(tmp_path)


@ONE
def test_rewards_are_scaled_copies_count_once_and_runs_add_up(layout, tmp_path):
    write(layout, tmp_path / "a", [[4.0, 0.0, 4.0], [4.0]])
    scaled = read(tmp_path, max_response=4.0)
    np.testing.assert_allclose(scaled.responses, [[2 / 3, 1.0]])
    np.testing.assert_array_equal(scaled.n_trials, [[3, 1]])
    write(layout, tmp_path / "copy" / "a", [[4.0, 0.0, 4.0], [4.0]])
    copied = warns("repeats? an earlier row", read, tmp_path, max_response=4.0, repeats="count")
    np.testing.assert_array_equal(copied.n_trials, scaled.n_trials)
    if layout != "harbor":  # whose runs are told by the name of the job
        write(layout, tmp_path / "copy" / "a", [[4.0, 4.0], [0.0]])
        both = read(tmp_path, max_response=4.0, repeats="count")
        np.testing.assert_allclose(both.responses, [[4 / 5, 1 / 2]])
        np.testing.assert_array_equal(both.n_trials, [[5, 2]])


@ONE
def test_rewards_are_scaled_compared_with_the_banks_scale_and_arguments_tell_agents_apart(layout, tmp_path):
    # All of these are at most 1 of 4: read as they are they would be four times too high
    write(layout, tmp_path / "a", [[4.0, 0.0], [4.0]])
    write(layout, tmp_path / "b", [[1.0, 0.0], [1.0]], llm="n")
    scaled = read(tmp_path / "a", max_response=4.0)
    refuses(r"highest response \(--max-response\)", check_same_prompts, read(tmp_path / "b").items, scaled.items)
    check_same_prompts(read(tmp_path / "b", max_response=4.0, repeats="mean").items, scaled.items)
    write(layout, tmp_path / "c" / "a", [[1.0, 0.0], [1.0]])
    write(layout, tmp_path / "c" / "b", [[0.0, 0.0], [1.0]], heat=0.5)
    found = read(tmp_path / "c", model_id_from="args")
    assert (found.responses.tolist(), len(set(found.model_ids))) == ([[0.5, 1.0], [0.0, 1.0]], 2)
    assert "0.5" in found.model_ids[1]


@ONE
def test_a_task_of_two_domains_is_two_items(layout, tmp_path):
    for domain, rewards in (("airline", [[1.0, 1.0]]), ("retail", [[0.0, 0.0]])):
        write(layout, tmp_path / domain, rewards, domain=domain, llm=f"m-{domain}")
    spec = ReadingSpec(prefix_scenario=layout == "harbor")
    if layout == "harbor":
        refuses(r"must belong to one scenario, got more for 1 item: .*prefix_scenario", read, tmp_path)
    found = read_responses(tmp_path, spec=spec)
    assert (found.items["scenario"].to_list(), found.items["content_hash"].null_count()) == (["airline", "retail"], 0)
    np.testing.assert_array_equal(found.responses, [[1.0, np.nan], [np.nan, 0.0]])


@ONE
def test_half_a_file_is_named(layout, tmp_path):
    write(layout, tmp_path, [[1.0, 0.0]])
    files = [one for one in tmp_path.rglob("*.json*") if one.parent.name != "configs"]
    file = max(files, key=lambda one: one.stat().st_size)
    file.write_text(file.read_text()[: -len(file.read_text()) // 3])
    is_appended = file.suffix == ".jsonl"  # by a run that goes on, or broke
    with pytest.warns(DataWarning, match=file.name) if is_appended else pytest.raises(DataError, match=file.name):
        read(file, format=layout.removesuffix("-v1"))


def test_episodes_and_runs_tell_their_names_and_costs_and_none_is_nothing(tmp_path):
    put_lines(tmp_path / "run" / "traces.jsonl", [episode(0, 1.0), episode(0, None)])
    found = read(tmp_path)
    assert (found.model_ids, found.item_ids) == (["called"], ["airline/k0"])
    costs = {unit: cost.item() for unit, cost in found.costs.items()}
    assert costs == {"input_tokens": 20.0, "output_tokens": 4.0, "cost_usd": 1.0, "seconds": 2.5}
    mixed = [episode(0, 1.0), episode(1, 1.0, domain="retail")]
    put_lines(tmp_path / "run" / "traces.jsonl", mixed)
    refuses("of one environment, got 'airline', 'retail'", read, tmp_path)
    put_lines(tmp_path / "b" / "a--m" / "traces.jsonl", [])
    put(tmp_path / "b" / "a--m" / "configs" / "eval.json", {"model": "m"})
    refuses(r"holds no results of verifiers\. They are in results\.jsonl or traces\.jsonl", read, tmp_path / "b")
    nameless = {"task_id": None, "reward": 1.0, "info": {}, "traj": [], "trial": 0}
    for name, content in (("gpt-4o-retail.json", [nameless]), ("t.json", results([nameless]))):
        refuses(r"laid out as results of tau.* a trial must name its task", read, put(tmp_path / "b" / name, content))


def test_files_of_tau_bench_are_named_by_their_run(tmp_path):
    record = {"task_id": 0, "reward": 1.0, "info": {"task": {}}, "traj": [], "trial": 0}
    put(tmp_path / "gpt-4o-retail.json", [record])
    released = read(tmp_path)
    assert (released.model_ids, released.item_ids) == (["gpt-4o"], ["retail/0"])
    file = put(tmp_path / "results.json", [record])
    with command_line_words():
        refuses("model is unknown.*--model-id", read, file)
        refuses('scenario = "airline"', read, file, model_id="m")
    assert read(file, model_id="m", scenario="airline").item_ids == ["airline/0"]
    for number, user in enumerate(("gpt-4o-llm", "gpt-4o-verify")):
        name = f"react-a/b-c-{number}-0.7_range_0-5_user-{user}_0612101500.json".replace("/", "-")
        put(tmp_path / "users" / name, [record])
    with pytest.raises(DataError, match=r"had simulated user gpt-4o, these have simulated user gpt-4o \(verify\)"):
        read(tmp_path / "users", scenario="retail")


# Of 50 tasks with 4 trials each: how many have 0, 1, ..., 4 right ones. Sums of C(c, k) / C(4, k) give the published
# pass^1 to pass^4 of gpt-4o on tau-bench's airline, .420 .273 .220 .200.
AIRLINE = [14, 12, 10, 4, 10]


@ONE
def test_pass_to_the_k_is_the_published_one(layout, tmp_path):
    tasks = [[1.0] * c + [0.0] * (4 - c) for c, n in enumerate(AIRLINE) for _ in range(n)]
    write(layout, tmp_path, tasks)
    for k, published in enumerate((0.420, 0.273, 0.220, 0.200), start=1):
        found = read_responses(tmp_path, metric=f"pass^{k}")
        assert found.responses.mean() == pytest.approx(published, abs=5e-4)
        assert found.n_trials is None
        powers = sorted(math.comb(int(sum(own)), k) / math.comb(4, k) for own in tasks)
        np.testing.assert_allclose(np.sort(found.responses[0]), powers)


def test_too_few_trials_are_lost_and_lost_ones_count_as_asked(tmp_path):
    write("tau2", tmp_path, [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0, None], [1.0, None, None], [None]])
    with pytest.warns(DataWarning, match=r"2 answers to 2 items with fewer than 2 trials count as lost: 'airline/2', "):
        found = read_responses(tmp_path, metric="pass^2")
    np.testing.assert_allclose(found.responses, [[1.0, 1 / 3, np.nan, np.nan]])
    np.testing.assert_array_equal(found.lost.n, [[0, 0, 1, 1]])
    wrong = warns("with fewer than 2 trials counts as missing", read, tmp_path, metric=("pass^2",), errors="wrong")
    assert wrong.item_ids == ["airline/0", "airline/1", "airline/2"]  # nothing is known of the last
    np.testing.assert_allclose(wrong.responses, [[1.0, 1 / 6, 0.0]])
    bounds = warns("count as lost", read, tmp_path, metric=("pass^2",), errors="bounds")
    np.testing.assert_allclose(bounds.responses, [[1.0, np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(bounds.lost.n, [[0, 1, 1, 1]])


@pytest.mark.parametrize(("errors", "n_lost"), [("missing", 1), ("bounds", 1), ("wrong", 0)])
def test_too_few_trials_count_as_asked_where_none_was_lost(errors, n_lost):
    counts = pl.DataFrame({"model_id": ["a", "a"], "item_id": ["x", "y"], "n_correct": [2, 1], "n_trials": [2, 1]})
    found = warns("1 answer to 1 item with fewer than 2 trials counts", read, counts, metric=("pass^2",), errors=errors)
    assert (0 if found.lost is None else found.lost.n.sum()) == n_lost
    assert found.lost is None or found.lost.errors == errors


def test_what_has_no_pass_to_the_k_is_refused(tmp_path):
    for metric, repeats in (("pass^0", "error"), ("t=pass^x", "error"), ("pass^2", "mean")):
        refuses(r"pass\^k", ReadingSpec, metric=(metric,), repeats=repeats, error=ParameterError)
    for rows, message in (
        ("a,x,1\na,y,0\n", r"pass\^k needs 2 trials of an item, counted by n_trials, got 1 at most"),
        ("a,x,0.5\na,x,0.25\n", r"must be right or wrong .*have no pass\^k"),
    ):
        refuses(message, read_responses, put(tmp_path / "r.csv", f"model_id,item_id,response\n{rows}"), metric="pass^2")


@pytest.mark.filterwarnings("ignore:6 scores came without numbers of questions")
def test_a_bank_reads_new_results_by_its_own_score_and_refuses_another(tmp_path, rng):
    chance = np.linspace(0.1, 0.9, 12)
    for model, skill in enumerate(np.linspace(-0.3, 0.3, 12)):
        rewards = (rng.random((12, 4)) < np.clip(chance + skill, 0.05, 0.95)[:, None]).astype(float).tolist()
        write("tau2", tmp_path / "past", rewards, llm=f"m{model}")
    bank = ib.calibrate(read_responses(tmp_path / "past", metric="pass^3"))
    write("tau2", tmp_path / "new", [[1.0, 1.0, 1.0, 0.0]] * 6 + [[1.0] * 4] * 6, llm="new")
    path = tmp_path / "new" / "new.json"
    expected = (6 * 0.25 + 6 * 1.0) / 12
    counts, powers = read(path), read_responses(path, metric="pass^3")
    table = {"item_id": counts.item_ids, "n_correct": [3] * 6 + [4] * 6, "n_trials": [4] * 12, "model_id": ["new"] * 12}
    ib.write_responses(powers, tmp_path / "powers.parquet")
    for given in (path, powers, tmp_path / "powers.parquet", pl.DataFrame(table)):
        assert ib.estimate(bank, given).column("overall").item() == pytest.approx(expected)
    ib.write_responses(read_responses(path, metric="pass^2"), tmp_path / "other.parquet")
    of_means = ib.calibrate(read(tmp_path / "past"))
    past = tmp_path / "past" / "m0.json"
    for refused in (
        lambda: ib.estimate(bank, counts),
        lambda: ib.estimate(bank, tmp_path / "other.parquet"),
        lambda: ib.estimate(of_means, powers),
        lambda: ib.estimate(of_means, tmp_path / "powers.parquet"),
        lambda: ib.gate(powers, past, margin=0.1),
        lambda: ib.compare(bank, counts.take(models=np.array([0, 0]))),
        lambda: read([tmp_path / "powers.parquet", past]),
    ):
        refuses(r"pass\^[23]", refused)
    refuses(r"a session takes one answer .* pass\^3", ib.start_session(tmp_path / "s", bank).__enter__)
    np.testing.assert_allclose(read(pl.DataFrame(table), metric=("al*=pass^4",)).responses, [[0.0] * 6 + [1.0] * 6])


@ONE
def test_a_task_that_no_model_could_attempt_stops_nothing(layout, tmp_path, rng):
    chance = np.linspace(0.1, 0.9, 10)
    for model, skill in enumerate(np.linspace(-0.3, 0.3, 10)):
        rewards = (rng.random((10, 2)) < np.clip(chance + skill, 0.05, 0.95)[:, None]).astype(float).tolist()
        write(layout, tmp_path / "past", [*rewards, [None]], llm=f"m{model}")
    past = read(tmp_path / "past")
    if layout != "tau-bench":  # whose domain is told by a conversation
        write(layout, tmp_path / "past", [[None]] * 11, llm="silent")
        past = warns("1 of 11 models have no answer to any item and are left out: '.*silent'", read, tmp_path / "past")
    assert (past.n_models, past.n_items) == (10, 11)
    bank = warns("1 of 11 items have no answer by any model and are left out: '.*10'", ib.calibrate, past)
    write(layout, tmp_path / "new", [*[[1.0, 0.0]] * 10, [None]], llm="new")
    found = ib.estimate(bank, tmp_path / "new", errors="bounds")
    assert (bank.n_items, found.column("overall").item()) == (10, pytest.approx(0.5))
    assert itembank_living.add_models(bank, tmp_path / "new", how="complete").n_models == 11
    assert ib.gate(tmp_path / "new", tmp_path / "new", margin=0.5).verdict in {"pass", "undecided"}


def test_a_trial_that_was_cut_blocks_no_other(tmp_path):
    """The first file of a job, or the last line of a file that a program appends to."""
    write("harbor", tmp_path / "jobs", [[1.0, 0.0], [1.0]])
    cut = sorted((tmp_path / "jobs").glob("*/*/result.json"))[0]
    cut.write_text(cut.read_text()[:40])
    with pytest.warns(DataWarning, match="left out"), pytest.warns(DataWarning, match="Are all trials there") as told:
        found = read(tmp_path / "jobs")
    assert found.n_trials.sum() == 2
    assert any(f"{cut.parent.name}/result.json" in str(one.message) for one in told)
    put_lines(tmp_path / "run" / "traces.jsonl", [episode(0, 1.0), episode(0, 0.0), episode(1, 1.0)])
    file = tmp_path / "run" / "traces.jsonl"
    file.write_text(file.read_text()[:-30])
    np.testing.assert_array_equal(warns("the last line was cut", read, tmp_path / "run").responses, [[0.5]])
