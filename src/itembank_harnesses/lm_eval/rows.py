"""What runs of the harness returned: its samples by item, safe on the disk, as responses and as answers."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from itembank.bank.banks import Bank
from itembank.bank.costs import INPUT_TOKENS, OUTPUT_TOKENS
from itembank.errors import DataError
from itembank.readers.agreement import check_same_content, spec_like
from itembank.readers.matching import in_harness
from itembank.readers.matrix import to_matrix
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.events import Answer, Failed, told
from itembank_harnesses.lm_eval.command import HarnessCall
from itembank_harnesses.lm_eval.documents import item_id
from itembank_harnesses.readers.lm_eval import lm_eval_record_rows

Row = dict[str, Any]
"""One sample of the harness: of one document and one filter."""
SAMPLES, RESULTS, GROUPS = "samples", "results", "groups"
KIND = "itembank.lm_eval.rows"
NO_CALL = HarnessCall(())
NO_VALUE = "the harness logged no value of the metric"


@dataclass(slots=True)
class Rows:
    """Samples by item, in the order they were run in, and what was said of the tasks."""

    by_item: dict[str, tuple[str, list[Row]]] = field(default_factory=dict)
    # Results of the harness without scores and samples: ``configs``, ``versions``, ``higher_is_better``, ...
    about: dict[str, Any] = field(default_factory=dict)

    def add(self, results: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Take what an evaluation returned; `names` says which item a document is (``task/doc_id``)."""
        for name, (task, rows) in _by_item(results[SAMPLES], names).items():
            self.by_item[name] = (task, rows)
        self.about = _merged(self.about, _about(results))

    def of_tasks(self, item_ids: Iterable[str] | None = None) -> dict[str, list[Row]]:
        """Return the samples of these items (of all, by default) by task, ordered by document."""
        found: dict[str, list[Row]] = {}
        for name in self.by_item if item_ids is None else item_ids:
            task, rows = self.by_item[name]
            found.setdefault(task, []).extend(rows)
        for rows in found.values():
            rows.sort(key=lambda row: row["doc_id"])  # stable: filters of a document stay in order
        return found

    def as_results(self, item_ids: Iterable[str] | None = None) -> dict[str, Any]:
        """Return these items (all, by default) as results of one evaluation, without scores: their mean is none."""
        samples = self.of_tasks(item_ids)
        counts = {task: len({row["doc_id"] for row in rows}) for task, rows in samples.items()}
        sizes = {task: {**self.about.get("n-samples", {}).get(task, {}), "effective": n} for task, n in counts.items()}
        names = {task: {"alias": task, "name": task} for task in samples}
        return {**self.about, RESULTS: names, "n-samples": sizes, SAMPLES: samples}


class RowFile(Rows):
    """Such rows that are in a file before they count; a line that was torn by a crash is left out.

    The file is made with the first rows.
    """

    __slots__ = ("_header", "is_of_same_words", "path")

    def __init__(
        self,
        path: Path,
        # What the harness is called with; `is_of_same_words` says whether the file was begun with the very same words.
        # A run goes on where this says the same of the model and of how it answers; whether prompts are the same is
        # seen when they are built (`check_kept_prompts`)
        call: HarnessCall = NO_CALL,
    ) -> None:
        Rows.__init__(self)
        self.path = path
        self._header: list[dict[str, Any]] = [{"kind": KIND, "arguments": list(call.arguments)}]
        lines = _whole_lines(path) if path.exists() else iter(())
        first = next(lines, None)
        self.is_of_same_words = first is not None and first.get("arguments") == list(call.arguments)
        if first is None:  # or torn in its first line
            return
        self._header = []
        if first.get("kind") != KIND:
            raise DataError(
                f"{path}: must hold samples that itembank run kept, got something else. Take another folder."
            )
        kept = HarnessCall(tuple(map(str, first.get("arguments", ())))).answering
        unlike = [name for name in {**kept, **call.answering} if kept.get(name) != call.answering.get(name)]
        if unlike:
            name = unlike[0]
            raise DataError(
                f"{path}: a run goes on with the model that it was started with, whose {name} was "
                f"{kept.get(name, '')!r}, got {call.answering.get(name, '')!r}. Repeat that, or take another folder."
            )
        for line in lines:
            if "about" in line:
                self.about = _merged(self.about, line["about"])
            else:
                self.by_item[line["item_id"]] = (line["task"], line["rows"])

    def add(self, results: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Take what an evaluation returned, when it is on the disk."""
        plain = json.loads(_dumped({**_about(results), SAMPLES: results[SAMPLES]}))
        about = _about(plain)
        lines: list[dict[str, Any]] = [] if _merged(self.about, about) == self.about else [{"about": about}]
        items = _by_item(plain[SAMPLES], names)
        lines += [{"item_id": name, "task": task, "rows": rows} for name, (task, rows) in items.items()]
        self._append([*self._header, *lines])
        self._header = []
        super().add(plain, names)

    def _append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write("".join(f"{_dumped(line)}\n" for line in lines).encode())
            file.flush()
            os.fsync(file.fileno())


def _by_item(samples: Mapping[str, Sequence[Row]], names: Mapping[str, str]) -> dict[str, tuple[str, list[Row]]]:
    found: dict[str, tuple[str, list[Row]]] = {}
    for task, rows in samples.items():
        for row in rows:
            found.setdefault(names[item_id(task, row["doc_id"])], (task, []))[1].append(dict(row))
    return found


def _about(results: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in results.items() if name not in {SAMPLES, RESULTS, GROUPS}}


def _merged(known: Any, new: Any) -> Any:
    """Put what two evaluations say together: keys and members of both; of another value, the later one."""
    if isinstance(known, dict) and isinstance(new, dict):
        return {**known, **{name: _merged(known.get(name), value) for name, value in new.items()}}
    if isinstance(known, list) and isinstance(new, list):
        return [*known, *(one for one in new if one not in known)]
    return new


def _dumped(value: Any) -> str:
    from lm_eval.utils import handle_non_serializable  # noqa: PLC0415

    return json.dumps(value, default=handle_non_serializable, ensure_ascii=False)


def _whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read the lines that are whole, and cut off what a crash left of another."""
    n_whole = 0
    lines = []
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            n_whole += len(line)
            lines.append(line)
    os.truncate(path, n_whole)
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}: line {number} must be one JSON object ({error}). Take another folder.") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}: line {number} must be one JSON object. Take another folder.")
        yield record


def responses_of(rows: Rows, bank: Bank, model_id: str, item_ids: Iterable[str] | None = None) -> ResponseMatrix:
    """Read samples of these items as the bank's items were read: the same metric and filter."""
    places = {name: (task, str(records[0]["doc_id"])) for name, (task, records) in rows.by_item.items()}
    ids = {f"{task}/{number}": name for name, (task, number) in places.items()}
    known = bank.responses.items
    # items that were found by another rule than their ids were compared where they were found
    known = known if all(place == name for place, name in ids.items()) else in_harness(known, places)
    spec = ReadingSpec(repeats="error" if bank.responses.n_trials is None else "count")
    spec = spec_like(known, spec)
    samples = {task: _as_logged(records) for task, records in rows.of_tasks(item_ids).items()}
    matrix = to_matrix(lm_eval_record_rows(samples, rows.about, model_id, spec), spec)
    check_same_content(matrix.items, known)
    return matrix.with_tables(items=matrix.items.with_columns(pl.col("item_id").replace(ids)))


def option_probabilities(rows: Rows, model_id: str) -> ResponseMatrix | None:
    """Read the right options' probabilities of all samples, by the items' ids; None where they tell none."""
    spec = ReadingSpec(response="probability", allow_mixed_prompts=True)
    ids = {f"{task}/{records[0]['doc_id']}": name for name, (task, records) in rows.by_item.items()}
    samples = {task: _as_logged(records) for task, records in rows.of_tasks().items()}
    try:
        matrix = to_matrix(lm_eval_record_rows(samples, rows.about, model_id, spec), spec)
    except DataError:
        return None
    return matrix.with_tables(items=matrix.items.with_columns(pl.col("item_id").replace(ids)))


def answers_of(responses: ResponseMatrix, costs: Mapping[str, Mapping[str, float]]) -> Iterator[Answer]:
    """Give the answer to each item; one without a value is a failure."""
    trials = responses.n_trials
    for position, item in enumerate(responses.items["item_id"]):
        value, own = float(responses.responses[0, position]), costs.get(item, {})
        if value != value:  # noqa: PLR0124 (NaN)
            yield Failed(item, reason=NO_VALUE, costs=own)
        elif trials is None:
            yield told(item, value, costs=own)
        else:
            n_trials = int(trials[0, position])
            yield told(item, None, round(value * n_trials), n_trials, own)


def token_costs(lm: Any, samples: list[Row]) -> dict[str, float]:
    """Count the tokens of one document's requests; nothing where the model does not show its tokens.

    Input tokens are those of every text sent, with its continuation where a log-likelihood was asked for; output
    tokens those of every text generated.
    """
    from lm_eval.api.model import CachingLM, TemplateLM  # noqa: PLC0415

    model = lm.lm if isinstance(lm, CachingLM) else lm
    encode = model.tok_encode if isinstance(model, TemplateLM) else None
    n_input = n_output = 0
    for sent, received in zip(samples[0]["arguments"], samples[0]["resps"], strict=True):
        text = "".join(part for part in sent if isinstance(part, str))
        replies = [reply for reply in received if isinstance(reply, str)]
        counts = [_n_tokens(encode, one) for one in (text, *replies)]
        if None in counts or not text:
            return {}
        n_input += (counts[0] or 0) * max(len(received), 1)
        n_output += sum(count or 0 for count in counts[1:])
    return {INPUT_TOKENS: float(n_input), OUTPUT_TOKENS: float(n_output)}


def _n_tokens(encode: Any, text: str) -> int | None:
    """Tokens of a text; None where the model gives none (some that are reached over a network give the text back)."""
    if encode is None:
        return None
    try:
        tokens = encode(text)
    except Exception:  # noqa: BLE001 (whatever a model's tokenizer raises: its costs are unknown then)
        return None
    is_tokens = isinstance(tokens, list | tuple) and all(isinstance(one, int) for one in tokens)
    return len(tokens) if is_tokens else None


def _as_logged(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return samples as they are in the harness's files: JSON, the target as text."""
    from lm_eval.utils import handle_non_serializable  # noqa: PLC0415

    kept = [{**{k: v for k, v in record.items() if k != "doc"}, "target": str(record["target"])} for record in records]
    plain: list[dict[str, Any]] = json.loads(json.dumps(kept, default=handle_non_serializable))
    return plain
