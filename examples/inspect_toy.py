"""A toy task, and models that need no network: `--model mockllm/skill-0.5` answers as often right as its skill says.

inspect eval examples/inspect_toy.py --model mockllm/skill-0.5 --log-dir logs
python examples/inspect_toy.py 40      # names of forty models, for --model
"""

import hashlib
import math
import sys

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, solver, system_message

N_SAMPLES = 120


@task
def toy(prompt: str = "") -> Task:
    """Ask for sums, after a system prompt, on which one answer in ten depends."""
    numbers = [(37 * k % 89, 53 * k % 97) for k in range(1, N_SAMPLES + 1)]
    samples = [Sample(id=f"sum-{a}-{b}", input=f"What is {a} + {b}?", target=str(a + b)) for a, b in numbers]
    first = [system_message(prompt)] if prompt else []
    return Task(dataset=MemoryDataset(samples), solver=[*first, simulated()], scorer=match())


@solver
def simulated() -> Solver:
    """Answer as a model would whose skill stands in its name, instead of asking one."""

    async def solve(state: TaskState, _generate: Generate) -> TaskState:
        skill = float(state.model.name.removeprefix("skill-"))
        model = get_model(f"mockllm/{state.model.name}", custom_outputs=[_answer(state, skill)], memoize=False)
        state.output = await model.generate(state.messages)
        state.messages.append(state.output.message)
        return state

    return solve


def _answer(state: TaskState, skill: float) -> ModelOutput:
    """Answer right with the probability of a logistic model; the same model answers the same every time."""
    difficulty = 4.0 * _uniform(state.input_text) - 2.0
    luck = f"{state.input_text} {skill}"
    prompt = state.messages[0].text if state.messages[0].role == "system" else ""
    luck += prompt if _uniform(luck + prompt[::-1]) < 0.1 else ""
    is_right = _uniform(luck) < 1.0 / (1.0 + math.exp(-2.0 * (skill - difficulty)))
    output = ModelOutput.from_content(state.model.name, state.target.text if is_right else "I do not know")
    output.usage = ModelUsage(input_tokens=12, output_tokens=4, total_tokens=16)
    return output


def _uniform(text: str) -> float:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32


if __name__ == "__main__":
    n_models = int(sys.argv[1])
    print(",".join(f"mockllm/skill-{4.0 * (number + 0.5) / n_models - 2.0:.2f}" for number in range(n_models)))
