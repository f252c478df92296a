"""Samples of the harness as responses and answers, by the reader of its logs, and what they cost in tokens."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from itembank.bank.banks import Bank
from itembank.bank.costs import INPUT_TOKENS, OUTPUT_TOKENS
from itembank.harnesses.lm_eval.rows import Row, Rows
from itembank.readers.agreement import check_same_content, spec_like
from itembank.readers.lm_eval import lm_eval_record_rows
from itembank.readers.matrix import to_matrix
from itembank.readers.reading_specs import ReadingSpec
from itembank.responses.responses import ResponseMatrix
from itembank.sessions.answers import Answer

NO_VALUE = "the harness logged no value of the metric"


def responses_of(rows: Rows, bank: Bank, model_id: str, item_ids: Iterable[str] | None = None) -> ResponseMatrix:
    """Read samples of these items as the bank's items were read: the same metric and filter.

    Raises
    ------
    DataError
        As `read_responses`, and when an item is not what it was for the bank.
    """
    spec = ReadingSpec(repeats="error" if bank.responses.n_trials is None else "count", empty="keep")
    spec = spec_like(bank.responses.items, spec)
    samples = {task: _as_logged(records) for task, records in rows.of_tasks(item_ids).items()}
    matrix = to_matrix(lm_eval_record_rows(samples, rows.about, model_id, spec), spec)
    check_same_content(matrix.items, bank.responses.items)
    return matrix


def answers_of(responses: ResponseMatrix, costs: Mapping[str, Mapping[str, float]]) -> Iterator[Answer]:
    """Give the answer to each item; one without a value is a failure."""
    trials = responses.n_trials
    for position, item in enumerate(responses.items["item_id"]):
        value, own = float(responses.responses[0, position]), costs.get(item, {})
        if value != value:  # noqa: PLR0124 (NaN)
            yield Answer(item, failed=True, reason=NO_VALUE, costs=own)
        elif trials is None:
            yield Answer(item, value, costs=own)
        else:
            n_trials = int(trials[0, position])
            yield Answer(item, n_correct=round(value * n_trials), n_trials=n_trials, costs=own)


def token_costs(lm: Any, samples: list[Row]) -> dict[str, float]:
    """Count the tokens of one document's requests; nothing where the model does not show its tokens.

    Input tokens are those of every text sent, with its continuation where a log-likelihood was asked for; output
    tokens those of every text generated.
    """
    encode = _encoder(lm)
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


def _encoder(lm: Any) -> Any:
    """Return how a model makes tokens, None where it works on texts; a cache may stand before it."""
    from lm_eval.api.model import CachingLM, TemplateLM  # noqa: PLC0415

    model = lm.lm if isinstance(lm, CachingLM) else lm
    return model.tok_encode if isinstance(model, TemplateLM) else None


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
    """Return samples as they stand in the harness's files: JSON, the target as text."""
    from lm_eval.utils import handle_non_serializable  # noqa: PLC0415

    kept = [{**{k: v for k, v in record.items() if k != "doc"}, "target": str(record["target"])} for record in records]
    plain: list[dict[str, Any]] = json.loads(json.dumps(kept, default=handle_non_serializable))
    return plain
