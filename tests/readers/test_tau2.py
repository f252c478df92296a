"""Results of tau2-bench in their own two layouts."""

import json

import numpy as np
import pytest

from itembank.errors import DataError
from itembank.readers.read import read_responses
from itembank.responses.prompts import PROMPT_SETTINGS

pytestmark = pytest.mark.filterwarnings("ignore:lost answers count as")


def simulation(task, reward, trial=0, end="user_stop"):
    told = None if reward is None else {"reward": reward, "db_check": {}}
    about = {
        "task_id": str(task),
        "trial": trial,
        "termination_reason": end,
        "agent_cost": 0.1 + task,
        "duration": 60.5,
    }
    return {**about, "reward_info": told, "messages": []}


def results(simulations, *, llm="openai/m", user="gpt-4.1", agent="llm_agent", args=None, purpose="book"):
    """A whole file of results."""
    return {
        "info": {
            "max_steps": 200,
            "agent_info": {"implementation": agent, "llm": llm, "llm_args": args or {}},
            "user_info": {"llm": user},
            "environment_info": {"domain_name": "airline"},
        },
        "tasks": [{"id": str(task), "description": {"purpose": purpose}} for task in range(3)],
        "simulations": simulations,
    }


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


RUNS = [
    *(simulation(0, reward, trial) for trial, reward in enumerate([1.0, 0.0, 1.0, 1.0])),
    *(simulation(1, 0.0, 0, "max_steps"), simulation(1, 0.0, 1, "infrastructure_error")),
    simulation(2, None, 0, "infrastructure_error"),
]


def test_simulations_are_counted_and_errors_of_the_infrastructure_are_lost(tmp_path):
    found = read_responses(write(tmp_path / "m.json", results(RUNS)))
    assert (found.model_ids, found.item_ids) == (["openai/m"], ["airline/0", "airline/1", "airline/2"])
    np.testing.assert_array_equal(found.responses, [[0.75, 0.0, np.nan]])
    np.testing.assert_array_equal(found.n_trials[:, :2], [[4, 1]])
    np.testing.assert_array_equal(found.lost.n, [[0, 1, 1]])
    np.testing.assert_allclose(found.costs["cost_usd"], [[0.1, 1.1, 2.1]])
    assert json.loads(found.items[PROMPT_SETTINGS][0]) == {
        "task_args": "max_steps=200",
        "user": "gpt-4.1",
        "highest_reward": "1",
    }


def test_a_folder_with_an_index_says_the_same(tmp_path):
    whole = results(RUNS)
    index = [{**one, "reward": (one.pop("reward_info") or {}).get("reward")} for one in map(dict, RUNS)]
    indexed = {name: part for name, part in whole.items() if name != "simulations"}
    write(tmp_path / "m" / "results.json", {**indexed, "simulation_index": index})
    for number, one in enumerate(RUNS):
        write(tmp_path / "m" / "simulations" / f"{number}.json", one)
    by_index = read_responses(tmp_path / "m")
    by_file = read_responses(write(tmp_path / "m.json", whole))
    np.testing.assert_array_equal(by_index.responses, by_file.responses)
    np.testing.assert_array_equal(by_index.lost.n, by_file.lost.n)
    assert by_index.items.equals(by_file.items)


@pytest.mark.parametrize(
    ("other", "message"), [({"user": "gpt-5"}, "simulated user"), ({"purpose": "cancel"}, "content")]
)
def test_another_user_or_task_is_another_benchmark(tmp_path, other, message):
    write(tmp_path / "a.json", results(RUNS))
    write(tmp_path / "b.json", results(RUNS, llm="n", **other))
    with pytest.raises(DataError, match=message):
        read_responses(tmp_path)


def test_agents_of_their_own_keep_their_names_and_arguments(tmp_path):
    write(tmp_path / "a.json", results(RUNS, agent="planner"))
    write(tmp_path / "b.json", results(RUNS))
    assert read_responses(tmp_path).model_ids == ["planner+openai/m", "openai/m"]
    write(tmp_path / "c.json", results(RUNS, args={"temperature": 1.0}))
    with pytest.raises(DataError, match=r"ran with none in .* and with temperature=1.0"):
        read_responses(tmp_path)
