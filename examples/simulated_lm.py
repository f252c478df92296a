"""A model and tasks that behave like real ones, need no download and answer at once: for trying runs out.

    python simulated_lm.py tasks FOLDER             # sums, products, words, and groups of them
    python simulated_lm.py tasks FOLDER --items 1400                # so many sums and products
    python simulated_lm.py family 40 --include_path FOLDER --tasks calculating --output_path logs
    python simulated_lm.py run --model simulated --model_args skill=0.5,model=m1 --include_path FOLDER \
        --tasks quiz --log_samples --output_path logs               # everything else goes to lm_eval

`family` runs so many models of different skill one after the other, each by the harness's own command.

Importing this module registers the models `simulated` and `tiny`, and lets the harness look for tasks in
`--include_path` alone: to index those that it brings takes a quarter of a minute. How likely the model is right depends
on its skill, the question and the whole prompt: with other few-shot examples it gives other answers, as models do.
"""

import contextlib
import functools
import hashlib
import io
import json
import math
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.tasks import TaskManager

N_ITEMS = {"sums": 60, "products": 30, "words": 40}
TaskManager.__init__ = functools.partialmethod(TaskManager.__init__, include_defaults=False)


def chance(*parts: object) -> float:
    """Return a number in (0, 1) that depends on nothing but these parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return (int.from_bytes(digest[:7], "big") + 0.5) / 2**56


@register_model("simulated")
class SimulatedLM(TemplateLM):
    """Solves a question with probability 1 / (1 + exp(difficulty - skill)).

    `seed` makes another model of the same skill; `calls` is a file to which every request is added, `delay` the seconds
    that each takes. Give it a name for logs, too: `model=NAME`.
    """

    def __init__(self, skill=0.0, seed=0, *, calls=None, delay=0.0, batch_size=8, **_):
        super().__init__()
        self.skill, self.seed, self.calls, self.delay = float(skill), seed, calls, float(delay)
        self.batch_size = int(batch_size)

    def loglikelihood(self, requests, **_):
        """Make the right option the most likely where the question is solved."""
        self._note(requests)
        values = []
        for context, option in (request.args for request in requests):
            question = context.rstrip().splitlines()[-1]
            noise = chance("option", self.seed, context, option)
            if option.strip() == answer_to(question):
                noise += 2.0 if self.solves(question, context) else -2.0
            values.append((-3.0 + noise, False))
        return values

    def generate_until(self, requests, **_):
        """Answer in a sentence, sometimes not in the form that was asked for; repeats differ."""
        self._note(requests)
        seen, texts = Counter(), []
        for context, _ in (request.args for request in requests):
            question = context.rstrip().splitlines()[-1]
            repeat = seen[context]
            seen[context] += 1
            right = answer_to(question)
            said = right if self.solves(question, context, repeat) else str(int(right) + 1)
            is_strict = chance("form", self.seed, context, repeat) < 0.8
            texts.append(f"The answer is {said}." if is_strict else f"I would say {said}")
        return texts

    def loglikelihood_rolling(self, requests, **_):
        """No task asks for it."""
        raise NotImplementedError

    def solves(self, question, context, repeat=0):
        """Whether this model solves a question in this context."""
        easiness = self.skill - difficulty_of(question)
        return chance("luck", self.seed, self.skill, context, repeat) < 1.0 / (1.0 + math.exp(-easiness))

    def tok_encode(self, string, **_):
        """Make a token of every word."""
        return [len(word) for word in string.split()]

    @property
    def eot_token_id(self):
        """End of text."""
        return 0

    def _loglikelihood_tokens(self, requests, **_):
        raise NotImplementedError

    def _note(self, requests):
        for request in requests:
            if self.delay:
                time.sleep(self.delay)
            if self.calls:
                with Path(self.calls).open("a") as file:
                    file.write(f"{request.task_name}/{request.doc_id}/{request.idx}\n")


@register_model("tiny")
class TinyLM(SimulatedLM):
    """Has weights: how likely an option is, is their product with its features.

    `levels` rounds the weights to so many values, as a quantised copy has them: 255 for 8 bits, 3 for -1, 0 and 1.
    """

    def __init__(self, skill=2.5, seed=1, *, levels=0, **more):
        super().__init__(skill, seed, **more)
        learnt = np.random.default_rng(self.seed).standard_t(2, size=64)  # a few are large, as in language models
        self.learnt = learnt / np.linalg.norm(learnt)
        step = np.abs(self.learnt).max() / (levels // 2) if levels else 0.0
        self.weights = step * np.round(self.learnt / step) if levels else self.learnt

    def loglikelihood(self, requests, **_):
        """Find what was learnt in the features of the right option: the more of it, the easier the question is."""
        self._note(requests)
        values = []
        for context, option in (request.args for request in requests):
            question = context.rstrip().splitlines()[-1]
            features = np.random.default_rng(int(2**56 * chance("features", context, option))).standard_normal(64)
            if option.strip() == answer_to(question):
                features += (self.skill - difficulty_of(question) / 3.0) * self.learnt
            values.append((float(self.weights @ features) - 8.0, False))
        return values


def difficulty_of(question):
    """Skill at which half of all models solve a question."""
    uniform = chance("difficulty", question)
    return 1.5 * math.log(uniform / (1.0 - uniform))


def answer_to(question):
    """Answer of a question: a sum, or how many letters a word has."""
    words = question.removesuffix(" Answer:").rstrip("?.").split()
    if words[:2] == ["What", "is"]:
        first, sign, second = int(words[2]), words[3], int(words[4])
        return str(first + second if sign == "+" else first * second)
    return str(len(words[-1]))


def sums(n_items, start, sign="+"):
    """Questions of the first task; with another sign, of the second."""
    for number in range(start, start + n_items):
        question = f"What is {10 + number} {sign} {3 + number * 7 % 50}? Answer:"
        right = int(answer_to(question))
        shift = number % 4
        options = [str(right + more) for more in (-1, 0, 1, 10)]
        options = options[shift:] + options[:shift]
        yield {"question": question, "options": options, "gold": options.index(str(right))}


def products(n_items, start):
    """Questions of the second task."""
    return sums(n_items, start, "*")


def words(n_items, start):
    """Questions of the third task."""
    for number in range(start, start + n_items):
        word = "abcdefghijklmnopqrstuvwxyz"[number % 20 :][: 2 + number % 9] + "oia"[: number // 20 % 4]
        question = f"No. {number}: how many letters has {word}? Answer:"
        yield {"question": question, "answer": str(len(word))}


CHOICE = """\
task: %(name)s
dataset_path: json
dataset_kwargs: {data_files: {train: %(folder)s/%(name)s-train.jsonl, test: %(folder)s/%(name)s-test.jsonl}}
output_type: multiple_choice
training_split: train
test_split: test
fewshot_split: train
doc_to_text: question
doc_to_choice: options
doc_to_target: gold
num_fewshot: 3
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
metadata: {version: 1.0}
"""
TASKS = {
    "sums": CHOICE,
    "products": CHOICE,
    "words": """\
task: words
dataset_path: json
dataset_kwargs: {data_files: {train: %(folder)s/words-train.jsonl, test: %(folder)s/words-test.jsonl}}
output_type: generate_until
training_split: train
test_split: test
fewshot_split: train
doc_to_text: question
doc_to_target: "The answer is {{answer}}."
num_fewshot: 2
repeats: %(repeats)d
generation_kwargs: {until: ["\\n"], do_sample: false}
filter_list:
  - name: strict-match
    filter:
      - {function: regex, regex_pattern: "The answer is (\\\\d+)"}
      - {function: take_first}
  - name: flexible-extract
    filter:
      - {function: regex, regex_pattern: "(\\\\d+)", group_select: -1}
      - {function: take_first}
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    regexes_to_ignore: ["The answer is ", "\\\\."]
metadata: {version: 1.0}
""",
    "calculating": """\
group: calculating
task: [sums, products]
aggregate_metric_list:
  - {metric: acc, aggregation: mean, weight_by_size: true, filter_list: none}
metadata: {version: 1.0}
""",
    "quiz": "group: quiz\ntask: [calculating, words]\n",
}


def write_tasks(folder, n_items=N_ITEMS, repeats=1):
    """Write the tasks and their data into a folder, for `--include_path`."""
    folder = Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, questions in {"sums": sums, "products": products, "words": words}.items():
        n = n_items[name]
        for split, rows in {"test": questions(n, 0), "train": questions(20, n)}.items():
            (folder / f"{name}-{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in TASKS.items():
        (folder / f"{name}.yaml").write_text(text % {"name": name, "folder": folder, "repeats": repeats})
    return folder


def run_family(n_models, arguments):
    """Run models of different skill, each by the harness's own command with these arguments."""
    skills = statistics.NormalDist(0.0, 1.3)
    for number in range(n_models):
        skill = skills.inv_cdf((number + 0.5) / n_models)
        model = ["--model", "simulated", "--model_args", f"skill={skill:.3f},seed={number},model=sim-{number}"]
        with contextlib.redirect_stdout(io.StringIO()):
            run_harness(["run", *model, "--log_samples", *arguments])


def run_harness(arguments):
    """Run the harness's own command in this process."""
    from lm_eval.__main__ import cli_evaluate  # noqa: PLC0415 (only a program needs it)

    sys.argv = ["lm_eval", *arguments]
    cli_evaluate()


def main(arguments):
    """Write tasks, run a family of models, or call the harness."""
    match arguments:
        case ["tasks", folder]:
            write_tasks(folder)
        case ["tasks", folder, "--items", n]:
            write_tasks(folder, {**N_ITEMS, "sums": int(n) - int(n) // 3, "products": int(n) // 3})
        case ["family", n, *more]:
            run_family(int(n), more)
        case _:
            run_harness(arguments)


if __name__ == "__main__":
    sys.modules["simulated_lm"] = sys.modules["__main__"]  # one module, one registration
    main(sys.argv[1:])
