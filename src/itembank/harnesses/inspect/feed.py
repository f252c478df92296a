"""What feeds a running task of Inspect with samples: a session batch by batch, or a multistage test."""

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from itembank.bank.banks import Bank
from itembank.bank.selections import Selection
from itembank.harnesses.inspect.answers import answer_of, logged_sample, response_of
from itembank.harnesses.inspect.stages import stage_after
from itembank.planning.select import has_next_stage
from itembank.readers.inspect_samples import Sample
from itembank.sessions.answers import tell_all
from itembank.sessions.session import AdaptiveSession


class Feed:
    """Takes what Inspect has run of the samples that it was given.

    Parameters
    ----------
    samples : mapping of item id to Inspect's sample
    task : str
    scorer : str or None
        Whose scores are the responses; the first by default.
    """

    def __init__(self, samples: Mapping[str, Any], *, task: str, scorer: str | None) -> None:
        self._samples = samples
        self._items = {str(sample.id): item_id for item_id, sample in samples.items()}
        self._task, self._scorer = task, scorer
        self._epochs: dict[str, list[Sample]] = defaultdict(list)

    async def complete(self, sample: Any) -> None:
        """Take a sample that was run, in one of its epochs, or taken over from an earlier attempt."""
        logged = logged_sample(sample)
        self._epochs[self._items[str(logged.id)]].append(logged)

    def outcome(self, item_id: str) -> tuple[list[Sample], list[float]]:
        """Return the epochs of an item in their order, and their scores, NaN where there is none."""
        epochs = sorted(self._epochs.pop(item_id, []), key=lambda one: one.epoch)
        return epochs, [response_of(one, self._task, self._scorer) for one in epochs]


class SessionFeed(Feed):
    """Asks a session for items, gives Inspect their samples, and tells the session what came of them.

    Inspect asks for further samples when none is in flight. Only then the answers are told, in the order in which
    the items were asked, so that the session does not depend on the order in which samples were completed, and a retry
    asks the same items again and finds them answered in the log.

    Parameters
    ----------
    session : AdaptiveSession
    samples, task, scorer
        As of `Feed`.
    batch : int
        Items asked at once.
    trace : list
        Is given the estimate after each batch.
    """

    def __init__(
        self,
        session: AdaptiveSession,
        samples: Mapping[str, Any],
        *,
        task: str,
        scorer: str | None,
        batch: int,
        trace: list[dict[str, float]],
    ) -> None:
        super().__init__(samples, task=task, scorer=scorer)
        self._session, self._batch, self._trace = session, batch, trace

    def initial(self) -> list[Any]:
        """Return the samples to begin with."""
        return [self._samples[item_id] for item_id in self._session.ask(self._batch)]

    async def next(self) -> list[Any] | None:
        """Tell what is known of the items in flight, and return the next samples; None when there are none."""
        self.tell()
        return self.initial() or None

    def tell(self) -> None:
        """Tell the session the outcome of every item that it waits for; one that was cancelled before it ran failed."""
        pending = self._session.pending
        for item_id in pending:
            epochs, responses = self.outcome(item_id)
            tell_all(self._session, [answer_of(item_id, epochs, responses)])
        if pending:
            self._trace.append(self._standing())

    def _standing(self) -> dict[str, float]:
        """Return the estimate of the overall score as it stands."""
        estimate = self._session.estimate()
        row = next(row for row in estimate.scores.rows() if row["target"] == estimate.scores.main_target)
        known = {"n_items": self._session.n_items, **{name: row[name] for name in ("estimate", "low", "high")}}
        return {**known, **{f"ability_{number}": value for number, value in enumerate(estimate.theta.tolist(), 1)}}


class StagesFeed(Feed):
    """Gives Inspect the samples of stage after stage of a multistage test.

    Inspect asks for further samples when none is in flight: the stage is over then, and the next one is chosen from
    what was answered. A retry begins with the first stage again, and finds its samples answered in the log.

    Parameters
    ----------
    bank : Bank
    routing : Selection
        Of the first stage.
    samples, task, scorer
        As of `Feed`.
    """

    def __init__(
        self, bank: Bank, routing: Selection, samples: Mapping[str, Any], *, task: str, scorer: str | None
    ) -> None:
        super().__init__(samples, task=task, scorer=scorer)
        self._bank, self._stage = bank, routing
        self._answers: dict[str, list[float]] = {}

    def initial(self) -> list[Any]:
        """Return the samples of the stage."""
        return [self._samples[item_id] for item_id in self._stage.item_ids]

    async def next(self) -> list[Any] | None:
        """Return the samples of the next stage; None after the last, and where no sample has a score."""
        for item_id in self._stage.item_ids:
            known = [response for response in self.outcome(item_id)[1] if not math.isnan(response)]
            if known:
                self._answers[item_id] = known
        if not (self._answers and has_next_stage(self._stage)):
            return None
        self._stage = stage_after(self._bank, self._stage, self._answers)
        return self.initial()
