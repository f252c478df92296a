"""Lines of samples files of lm-evaluation-harness, read without the long fields that no response needs.

The harness writes ``doc_id`` first; then the document, the requests and what the model said; and after ``filter`` what
is wanted. What stands from the last ``filter`` to the end of a line, with a brace before it, is JSON only where that
key belongs to the outermost object: every brace that is open there would be closed once too often. So nothing is taken
from a place where it does not belong; a line that is otherwise has the whole of its block read.
"""

import json
import re
from collections.abc import Sequence

from itembank.files.documents import check_characters
from itembank.readers.json_files import Record

_FIRST = re.compile(r'\{"doc_id": (\d{1,18}), ')
_RESPONSES, _FILTERED, _FILTER = ', "resps": ', ', "filtered_resps": ', ', "filter": "'
_OF_TEXTS = '[["'
"""How responses begin that are generated texts, whose number tells the attempts; log-likelihoods are not looked at."""


def short_samples(lines: Sequence[str]) -> list[Record] | None:
    """Read what responses need of samples; None where lines are not as the harness writes them since 0.4.6.

    Parameters
    ----------
    lines : sequence of str
        One object each.

    Returns
    -------
    list of records
        With `doc_id`, `filter`, `doc_hash` and what stands after them, and `resps` where it holds texts.
    """
    shortened = []
    for line in lines:
        first, tail = _FIRST.match(line), line.rfind(_FILTER)
        end = line.rfind(_FILTERED, 0, tail)
        start = line.rfind(_RESPONSES, 0, end)
        if first is None or tail < 0 or end < 0 or start < 0:
            return None
        start += len(_RESPONSES)
        responses = line[start:end] if line.startswith(_OF_TEXTS, start) else "[]"
        shortened.append(f'{{"doc_id": {first[1]}, "resps": {responses}{line[tail:]}')
    text = "[" + ",".join(shortened) + "]"
    try:
        records = json.loads(text)
        check_characters(records, text)
    except (ValueError, RecursionError):
        return None
    is_whole = len(records) == len(lines) and all(map(_is_whole, records))
    return records if is_whole else None


def _is_whole(record: Record) -> bool:
    """Whether a sample holds all the metrics that it names, and the digest of its document."""
    names = record.get("metrics")
    if "doc_hash" not in record or not isinstance(names, list):
        return False
    return all(isinstance(name, str) and name in record for name in names)
