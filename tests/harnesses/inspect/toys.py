"""A task and a provider of models whose calls are counted, and which goes down after so many."""

from typing import ClassVar

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.scorer import Score, Target, accuracy, match, scorer
from inspect_ai.solver import generate

N_SAMPLES = 24


class Calls:
    """What the provider did and is to do."""

    made: ClassVar[list[int]] = []
    most: float = float("inf")
    wrong: frozenset[int] = frozenset()
    failing: frozenset[int] = frozenset()

    @classmethod
    def reset(cls, *, most=float("inf"), wrong=(), failing=()):
        cls.made, cls.most, cls.wrong, cls.failing = [], most, frozenset(wrong), frozenset(failing)


@modelapi(name="counted")
class CountedAPI(ModelAPI):
    def __init__(self, model_name, base_url=None, api_key=None, config=GenerateConfig(), **_arguments):  # noqa: B008
        super().__init__(model_name, base_url, api_key, [], config)

    async def generate(self, input, tools, tool_choice, config):  # noqa: A002
        number = int(input[-1].text.split()[1])
        if len(Calls.made) >= Calls.most or number in Calls.failing:
            raise RuntimeError("provider down")
        Calls.made.append(number)
        text = "no idea" if number in Calls.wrong else f"answer {number}"
        output = ModelOutput.from_content(self.model_name, text)
        output.usage = ModelUsage(input_tokens=10, output_tokens=number, total_tokens=10 + number)
        return output


def samples(changed=()):
    return [
        Sample(id=number, input=f"Question {number} {'anew' if number in changed else ''}", target=f"answer {number}")
        for number in range(1, N_SAMPLES + 1)
    ]


@scorer(metrics=[accuracy()])
def length():
    async def score(state, target: Target):
        return Score(value=min(len(state.output.completion), 100) / 100)

    return score


@task
def quiz(several: bool = False, changed: int = 0, size: int = N_SAMPLES) -> Task:
    scorers = [length(), match()] if several else [match()]
    return Task(dataset=MemoryDataset(samples(range(1, changed + 1))[:size]), solver=generate(), scorer=scorers)
