"""The test items of `bytelms`: multiple choice, and items answered by sampling."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from bytelms_knowledge import AGREEMENT, ANSWERS, Fact, Sentence, facts, kinds
from bytelms_problems import FAMILIES, Problem
from bytelms_sources import Sources, continuations
from bytelms_text import HeldOut

SEED = 20260105
N_OPTIONS = 4
N_PAIRS = 30  # of nouns and verbs that tests of agreement use and training does not
N_ITEMS = {
    "addition": 160, "subtraction": 120, "comparison": 140, "copying": 150, "reversal": 130, "sorting": 130,
    "brackets": 130, "counting": 110, "spelling": 100, "plural": 50, "agreement": 100, "pronouns": 90,
    "facts": 120, "kinds": 40, "code": 130, "prose": 120,
}  # fmt: skip
N_GENERATIVE = {"addition": 100, "copying": 100, "sorting": 80, "facts": 90, "comparison": 80}


@dataclass(frozen=True)
class Item:
    """A test item; a multiple-choice item has its choices, an item answered by sampling its answer alone."""

    item_id: str
    scenario: str
    subscenario: str
    prompt: str
    choices: tuple[str, ...]
    correct: int  # which choice is right


@dataclass(frozen=True)
class Suite:
    """All test items, and what must be kept out of the training texts for them."""

    multiple_choice: tuple[Item, ...]
    generative: tuple[Item, ...]
    held_out: HeldOut


def make_suite(sources: Sources) -> Suite:
    """Draw all test items; the same every time for the same Python."""
    rng = random.Random(SEED)  # noqa: S311
    chosen = {name: _draw_problems(rng, name, N_ITEMS[name] + N_GENERATIVE.get(name, 0)) for name in FAMILIES}
    items = [item for name, drawn in chosen.items() for item in _choice_items(rng, name, drawn[: N_ITEMS[name]])]
    sentences = {name: _draw_sentences(rng, name) for name in AGREEMENT}
    for name, drawn in sentences.items():
        items += _choice_items(
            rng, name, [Problem(one.start, one.right, (one.other,), one.level) for one in drawn], "."
        )
    asked = {name: _asked(rng, known) for name, known in (("facts", facts()), ("kinds", kinds()))}
    for name, unasked in asked.items():
        items += _choice_items(rng, name, (_question(rng, fact) for fact in unasked[: N_ITEMS[name]]), ".")
    real = {"code": (sources.test_code, sources.code), "prose": (sources.test_prose, sources.prose)}
    for name, (kept, seen) in real.items():
        lengths = {"before": (24, 48), "after": (5, 8, 12)}
        places = continuations(rng, kept, n=N_ITEMS[name], **lengths, seen="\n".join(seen))
        items += _choice_items(rng, name, places, "")
    sampled = {name: chosen[name][N_ITEMS[name] :] for name in N_GENERATIVE if name in FAMILIES}
    generative = [item for name, problems in sampled.items() for item in _sampled_items(name, problems)]
    last = asked["facts"][-N_GENERATIVE["facts"] :]
    generative += _sampled_items("facts", [Problem(one.question, one.answer, (), _stated(one)) for one in last], ".")
    prompts = frozenset().union(*(problem.keys for problems in chosen.values() for problem in problems))
    return Suite(tuple(items), tuple(generative), HeldOut(prompts, _pairs(sentences)))


def _pairs(sentences: dict[str, list[Sentence]]) -> frozenset[tuple[str, str]]:
    return frozenset(one.pair for drawn in sentences.values() for one in drawn)


def _draw_problems(rng: random.Random, name: str, n: int) -> list[Problem]:
    """Draw `n` different problems, the levels in turn; of the few one-digit ones only one in twenty."""
    family = FAMILIES[name]
    levels = [level for level in dict.fromkeys(family.levels) if level != 1]
    found: dict[str, Problem] = {}
    for number in range(n):
        level = 1 if number % 20 == 0 and 1 in family.levels else levels[number % len(levels)]
        problem = family.draw(rng, level)
        for _ in range(50):
            if problem.keys.isdisjoint(found):
                break
            problem = family.draw(rng, level)
        found[problem.prompt] = problem
    return list(found.values())


def _draw_sentences(rng: random.Random, name: str) -> list[Sentence]:
    """Draw sentences with pairs of noun and verb (or thing) from a part of all pairs, none twice."""
    every: dict[str, Sentence] = {}
    pairs: set[tuple[str, str]] = set()
    while len(every) < N_ITEMS[name]:
        one = AGREEMENT[name](rng, (0, 0, 1, 2)[len(every) % 4])
        if one.start not in every and (one.pair in pairs or len(pairs) < N_PAIRS):
            every[one.start] = one
            pairs.add(one.pair)
    return list(every.values())


def _asked(rng: random.Random, known: tuple[Fact, ...]) -> list[Fact]:
    """Return the facts that training states and never asks for, in random order."""
    kept = [fact for fact in known if not fact.is_asked]
    return rng.sample(kept, len(kept))


def _stated(fact: Fact) -> str:
    return f"stated {fact.frequency}"


def _question(rng: random.Random, fact: Fact) -> Problem:
    others = [answer for answer in ANSWERS[fact.relation] if answer != fact.answer]
    return Problem(fact.question, fact.answer, tuple(rng.sample(others, N_OPTIONS - 1)), _stated(fact))


def _choice_items(rng: random.Random, scenario: str, problems: Iterable[Problem], end: str = "\n") -> list[Item]:
    """Put each right answer at a random place among the first three wrong ones; `end` closes every choice."""
    items = []
    for number, problem in enumerate(problems):
        wrong = [one + end for one in dict.fromkeys(problem.wrong) if one != problem.answer][: N_OPTIONS - 1]
        place = rng.randrange(len(wrong) + 1)
        choices = (*wrong[:place], problem.answer + end, *wrong[place:])
        items.append(Item(f"{scenario}/{number:03}", scenario, problem.level, problem.prompt, choices, place))
    return items


def _sampled_items(name: str, problems: Iterable[Problem], end: str = "\n") -> list[Item]:
    """Make items that are answered by sampling, up to and with `end`."""
    return [
        Item(f"sampled-{name}/{number:03}", f"sampled-{name}", one.level, one.prompt, (one.answer + end,), 0)
        for number, one in enumerate(problems)
    ]
