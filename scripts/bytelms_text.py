"""The training texts of `bytelms`: domains, and the mixtures that differ in their shares and quality."""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bytelms_knowledge import AGREEMENT, ANSWERS, Fact, ending, facts, kinds
from bytelms_problems import FAMILIES
from bytelms_sources import Sources

DOMAINS = ("english", "prose", "code", "arithmetic", "facts", "symbols", "words")
BALANCED = dict(zip(DOMAINS, (0.16, 0.06, 0.10, 0.18, 0.17, 0.21, 0.12), strict=True))
SHARE_OF_FAVOURITE = 0.55


@dataclass(frozen=True)
class Mixture:
    """Shares of the domains in bytes, and what is wrong with the text."""

    name: str
    shares: dict[str, float] = field(default_factory=lambda: dict(BALANCED))
    corrupted: float = 0.0  # share of answers that are wrong
    repeat_bytes: int | None = None  # this many bytes over and over again


def mixtures() -> tuple[Mixture, ...]:
    """All mixtures, in the order they are trained."""
    return (
        Mixture("balanced"),
        _heavy("code", "code"),
        _heavy("arithmetic", "arithmetic"),
        _heavy("facts", "facts", "words"),
        _heavy("symbols", "symbols"),
        Mixture("corrupted", corrupted=0.3),
        _heavy("english", "english", "prose"),
        Mixture("repeated", repeat_bytes=60_000),
    )


def _heavy(name: str, *domains: str) -> Mixture:
    """Give some domains more than half, the others what is left in the balanced proportions."""
    favoured = sum(BALANCED[one] for one in domains)
    up, down = SHARE_OF_FAVOURITE / favoured, (1.0 - SHARE_OF_FAVOURITE) / (1.0 - favoured)
    return Mixture(name, {one: share * (up if one in domains else down) for one, share in BALANCED.items()})


@dataclass(frozen=True)
class HeldOut:
    """What the test items need kept out of every training text."""

    prompts: frozenset[str]  # of problems
    pairs: frozenset[tuple[str, str]]  # of nouns and verbs


def training_text(mixture: Mixture, *, n_bytes: int, held_out: HeldOut, sources: Sources, seed: int) -> str:
    """Draw at least `n_bytes` bytes of a mixture: documents in random order, one line end after each."""
    rng = random.Random(seed)  # noqa: S311
    fresh = n_bytes if mixture.repeat_bytes is None else mixture.repeat_bytes
    documents: list[str] = []
    for domain, share in mixture.shares.items():
        wanted, writer = share * fresh, _writer(domain, mixture.corrupted, held_out, sources, rng)
        while wanted > 0:
            documents.append(next(writer))
            wanted -= len(documents[-1]) + 1
    passes = []
    for _ in range(-(-n_bytes // fresh)):
        rng.shuffle(documents)
        passes.append("\n".join(documents))
    return "\n" + "\n".join(passes) + "\n"


def _writer(domain: str, corrupted: float, held_out: HeldOut, sources: Sources, rng: random.Random) -> Iterator[str]:
    """Documents of one domain without end."""
    makers: dict[str, Callable[[], Iterator[str]]] = {
        "english": lambda: _sentences(corrupted, held_out, rng),
        "prose": lambda: _again_and_again(sources.prose, rng),
        "code": lambda: _again_and_again(sources.code, rng),
        "facts": lambda: _statements(facts(), corrupted, rng),
    }
    if domain in makers:
        return makers[domain]()
    problems = _problems(domain, corrupted, held_out, rng)
    if domain != "words":
        return problems
    return itertools.chain.from_iterable(zip(problems, _statements(kinds(), corrupted, rng), strict=True))


def _again_and_again(pieces: tuple[str, ...], rng: random.Random) -> Iterator[str]:
    while True:
        yield from rng.sample(pieces, len(pieces))


def _sentences(corrupted: float, held_out: HeldOut, rng: random.Random) -> Iterator[str]:
    while True:
        one = rng.choice(list(AGREEMENT.values()))(rng, rng.choice((0, 0, 0, 0, 1, 1, 2)))
        if one.pair not in held_out.pairs:
            yield one.start + (one.other if rng.random() < corrupted else one.right) + ending(rng) + "."


def _problems(domain: str, corrupted: float, held_out: HeldOut, rng: random.Random) -> Iterator[str]:
    families = [family for family in FAMILIES.values() if family.domain == domain]
    while True:
        family = rng.choice(families)
        problem = family.draw(rng, rng.choice(family.levels))
        if problem.prompt not in held_out.prompts:
            is_wrong = rng.random() < corrupted
            yield problem.prompt + (rng.choice(problem.wrong) if is_wrong else problem.answer)


def _statements(known: tuple[Fact, ...], corrupted: float, rng: random.Random) -> Iterator[str]:
    weights = list(itertools.accumulate(fact.frequency for fact in known))
    while True:
        fact = rng.choices(known, cum_weights=weights)[0]
        is_wrong = rng.random() < corrupted
        yield fact.line(rng, rng.choice(ANSWERS[fact.relation]) if is_wrong else fact.answer)
