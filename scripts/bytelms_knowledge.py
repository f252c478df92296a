"""Things to know: facts about invented people, kinds of things, and sentences whose verb agrees with its noun.

A fact is taught in statements. The wording that asks for it is taught with other people (or things) only, so
the wording of a test item is known and its pair of wording and person is not.
"""

import itertools
import random
from dataclasses import dataclass

from bytelms_words import (
    ADJECTIVES,
    ADVERBS,
    CATEGORIES,
    FOODS,
    HER,
    HIS,
    JOBS,
    NAME_ENDS,
    NAME_STARTS,
    NOUNS,
    PLACES,
    PREPOSITIONS,
    THINGS,
    TOWNS,
    VERBS,
)

SEED_OF_THE_WORLD = 5
N_PEOPLE, N_ASKED_IN_TRAINING = 60, 20
FREQUENCIES = (1, 3, 9, 27)  # how often a fact is stated, relative to the rarest
STATEMENTS = {
    "town": ("{0} lives in {1}.", "The home of {0} is in {1}.", "You can visit {0} in {1}."),
    "job": ("{0} works as a {1}.", "The job of {0} is {1}.", "They hired {0} as a {1}."),
    "food": ("{0} likes to eat {1}.", "The favorite food of {0} is {1}.", "We gave {0} some {1}."),
    "kind": ("A {0} is a {1}.", "This {0} is the best {1}.", "He saw a {0}, which is a {1}."),
}
QUESTIONS = {
    "town": "Where does {0} live? In ",
    "job": "What is {0}? A ",
    "food": "What does {0} eat? Some ",
    "kind": "What kind of thing is a {0}? A ",
}
ANSWERS = {"town": TOWNS, "job": JOBS, "food": FOODS, "kind": tuple(CATEGORIES)}


@dataclass(frozen=True)
class Fact:
    """What holds for one person or thing, how often it is stated, and whether training asks for it."""

    about: str
    relation: str
    answer: str
    frequency: int
    is_asked: bool

    @property
    def question(self) -> str:
        """The wording of the test."""
        return QUESTIONS[self.relation].format(self.about)

    def line(self, rng: random.Random, answer: str) -> str:
        """Write a line of training text that gives `answer`: one in three asks, where that is allowed."""
        if self.is_asked and rng.random() < 1 / 3:
            return self.question + answer + "."
        return rng.choice(STATEMENTS[self.relation]).format(self.about, answer)


def facts() -> tuple[Fact, ...]:
    """Facts about invented people; the same every time."""
    rng = random.Random(SEED_OF_THE_WORLD)  # noqa: S311
    names = rng.sample(
        [start + end for start, end in itertools.product(NAME_STARTS.split(), NAME_ENDS.split())], N_PEOPLE
    )
    return tuple(
        Fact(name, relation, rng.choice(ANSWERS[relation]), rng.choice(FREQUENCIES), number < N_ASKED_IN_TRAINING)
        for number, name in enumerate(names)
        for relation in ("town", "job", "food")
    )


def kinds() -> tuple[Fact, ...]:
    """Kinds of common things; three of each kind are asked for in training."""
    rng = random.Random(SEED_OF_THE_WORLD)  # noqa: S311
    return tuple(
        Fact(member, "kind", kind, rng.choice(FREQUENCIES), number < 3)
        for kind, members in CATEGORIES.items()
        for number, member in enumerate(members.split())
    )


@dataclass(frozen=True)
class Sentence:
    """A sentence up to the word that must agree with its first noun, and both ways to go on."""

    start: str
    right: str
    other: str
    pair: tuple[str, str]  # noun, and verb or thing: the pairs of test items are never drawn for training
    level: str


def number_agreement(rng: random.Random, n_phrases: int) -> Sentence:
    """Draw a sentence whose verb is singular or plural, with `n_phrases` phrases between noun and verb."""
    noun, verb = rng.choice(list(NOUNS)), rng.choice(list(VERBS))
    is_plural = rng.random() < 0.5
    words = ["the", *_adjective(rng), NOUNS[noun] if is_plural else noun]
    misleading = False
    for _ in range(n_phrases):
        place, place_is_plural = rng.choice(list(PLACES)), rng.random() < 0.5
        words += [rng.choice(PREPOSITIONS), "the", PLACES[place] if place_is_plural else place]
        misleading = place_is_plural != is_plural
    right, other = (VERBS[verb], verb) if is_plural else (verb, VERBS[verb])
    return Sentence(" ".join(words) + " ", right, other, (noun, verb), _level(n_phrases, misleading))


def gender_agreement(rng: random.Random, n_phrases: int) -> Sentence:
    """Draw a sentence in which somebody lost his or her thing, with other people in between."""
    people, others = rng.choice([(HIS, HER), (HER, HIS)])
    noun, thing = rng.choice(people), rng.choice(THINGS)
    words = ["the", *_adjective(rng), noun]
    misleading = False
    for _ in range(n_phrases):
        misleading = rng.random() < 0.5
        words += [rng.choice(PREPOSITIONS), "the", rng.choice(others if misleading else people)]
    words += ["lost"]
    right, other = ("his", "her") if people is HIS else ("her", "his")
    pair = (noun, thing)
    return Sentence(" ".join(words) + " ", f"{right} {thing}", f"{other} {thing}", pair, _level(n_phrases, misleading))


AGREEMENT = {"agreement": number_agreement, "pronouns": gender_agreement}


def _adjective(rng: random.Random) -> list[str]:
    return [rng.choice(ADJECTIVES)] if rng.random() < 0.3 else []


def _level(n_phrases: int, misleading: bool) -> str:
    return f"{n_phrases} phrases" + (", misleading" if misleading else "")


def ending(rng: random.Random) -> str:
    """Return what may follow."""
    return "" if rng.random() < 0.7 else " " + rng.choice(ADVERBS)
