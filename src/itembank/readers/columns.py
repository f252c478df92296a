"""Columns of a table as ids and as numbers, with every problem named."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from itembank.checks import check_names
from itembank.errors import (
    MOST_SHOWN,
    N_SHOWN,
    DataError,
    DataWarning,
    did_you_mean,
    first_few,
    quoted,
    remedy,
    shown,
    warn,
)
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.reading_specs import ReadingSpec, how
from itembank.responses.error_kinds import error_kind, is_error_word
from itembank.responses.labels import IdKind, names_of
from itembank.responses.opening import Table
from itembank.tables import plural

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "<na>", "#n/a", "-")
TRUTH_WORDS = {"true": 1.0, "false": 0.0}
_TEXT = (pl.String, pl.Categorical, pl.Enum)
_PLAIN = (pl.Boolean, pl.Null)
USUAL_NAMES = {
    "model_id": ("model", "modelid", "modelname", "llm"),
    "item_id": (
        *("item", "itemid", "itemname", "question", "questionid", "problem", "problemid", "example", "exampleid"),
        *("sampleid", "docid", "instanceid"),
    ),
    "response": ("response", "correct", "iscorrect", "score", "passed"),
}
"""What tables of others call our columns, without case, blanks and underscores."""
NAMES_IN_TURN: tuple[Mapping[str, tuple[str, ...]], ...] = (
    USUAL_NAMES,
    {"item_id": ("taskid",), "response": ("result", "outcome", "value", "resp")},
    {"response": ("resolved", "solved", "pass", "success", "reward", "exactmatch")},
)
"""The same, and rarer ones: beside a column of an earlier name, one of a later name means something else."""
LIKELY = {
    "model_id": ("agent", "agentname", "agentid", "system", "systemname", "checkpoint", "submission", "policy"),
    "item_id": ("task", "taskname", "test", "testname", "case", "caseid", "prompt", "promptid", "query", "queryid"),
    "response": NAMES_IN_TURN[2]["response"],
}
"""Names that advice takes for ours where a table has one of them, and that are read as nothing unasked."""
COUNT_NAMES = {
    "n_correct": (
        *("ncorrect", "c", "numcorrect", "correctcount", "npass", "npassed", "numpassed", "passcount", "passedcount"),
        *("nsuccess", "nsuccesses", "numsuccess", "successes", "successcount", "nright", "nsolved", "numsolved"),
    ),
    "n_trials": (
        *("ntrials", "trials", "numtrials", "n", "nsamples", "numsamples", "samplecount", "nattempts", "attempts"),
        *("numattempts", "attemptcount", "nruns", "numruns", "total", "ntotal", "numtotal", "totalcount"),
    ),
}
"""What tables of others call the right ones of several attempts, and the attempts, as `USUAL_NAMES`."""
SUMMARIES = re.compile(
    r"(^|[\s_.-])(precision|recall|f1|auc|auroc|mrr|ndcg|bleu|rouge\w*|rmse|mae|win[\s_-]?rate|elo|stderr"
    r"|standard[\s_-]error|spearman|pearson|kendall)([\s_.,@-]|$)",
    re.IGNORECASE,
)
"""What a metric over many items is called."""
MEANS = ("accuracy", "acc", "average", "avg", "mean", "overall", "total", "winrate", "meanwinrate", "stderr", "elo")
"""The same of means, without case, blanks and underscores."""
_SEPARATORS = re.compile(r"[\s_.-]+")


def plain_name(name: str) -> str:
    """Return the name of a column without case, blanks, underscores, dots and dashes."""
    return _SEPARATORS.sub("", name).casefold()


def likely(columns: Sequence[str], ours: str) -> str:
    """Return the one column that may well be ours; '...' where there is none, or several are."""
    found = [one for one in columns if plain_name(one) in LIKELY[ours]]
    return found[0] if len(found) == 1 else "..."


def counts_of(columns: Sequence[str]) -> dict[str, str]:
    """Return the columns that by name count right ones and attempts of an item; none where not one of each does."""
    found = {ours: [one for one in columns if plain_name(one) in names] for ours, names in COUNT_NAMES.items()}
    return {ours: own[0] for ours, own in found.items()} if all(len(own) == 1 for own in found.values()) else {}


def is_id(name: str) -> bool:
    """Whether a column is called an id of something: id, task_id, Question ID, sampleId."""
    return re.search(r"(^|[\s_.-])[iI][dD]$|[a-z]I[dD]$", name) is not None


def may_name_model(name: str) -> bool:
    """Whether a column is called a model of something but a judge: metadata.model, base_model_name."""
    is_model = re.search(r"(^|[\s_.-])model([\s_.-]?(id|name))?$", name, re.IGNORECASE) is not None
    return is_model and re.search("judg|grad|rater|scor|eval", name, re.IGNORECASE) is None


def is_measure(name: str) -> bool:
    """Whether a column is called as what is measured of an answer but whether it is right: gpt_confidence, cost_usd."""
    ends = (
        r"(conf(idence)?|prob(ability)?|latency(ms)?|cost(usd)?|tokens|seconds|duration|(?<!real)time|elapsed|stderr)$"
    )
    return re.search(f"{ends}|^(f1|f1score|bleu|rouge[12l])$", plain_name(name)) is not None


def id_column(
    table: Table, column: str, problems: list[str], *, name: str | None = None
) -> tuple[pl.Series, IdKind | None] | None:
    """Return the ids of a column as categories, and their kind; None, with the reason added to `problems`, if none."""
    name = name or column
    kind, problem = id_kind(table, column, name)
    if problem:
        problems.append(problem)
        return None
    ids = categories(table.frame[column])
    for is_trimmed in (False, True):
        if ids.null_count() or (names_of(ids) == "").any():
            rows = ((ids.cast(pl.String).fill_null("") == "").arg_true() + 1).cast(pl.String).to_list()
            problems.append(f"{name} must not be empty, got {plural(len(rows), 'row')} without: row {first_few(rows)}.")
            return None
        ids = ids if is_trimmed else trimmed(table.source, ids, name)
    return ids, kind


def categories(column: pl.Series) -> pl.Series:
    """Return a column of ids or names as categories, of four bytes a row."""
    return (column if column.dtype in _TEXT else column.cast(pl.String)).cast(pl.Categorical)


NO_NAMES = ("nan", "none", "null", "undefined", "<na>")
NO_WIDTH = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
BLANKS = "".join([*filter(str.isspace, map(chr, range(0x3001))), NO_WIDTH])
"""Characters that nobody sees at the end of a name: blanks of all kinds, and those without a width."""


def trimmed(source: str, column: pl.Series, name: str) -> pl.Series:
    """Take blanks off the ends of names, and say so: names that differ by these alone are one."""
    names = names_of(column)
    plain = names.str.strip_chars(BLANKS)
    were = names.filter(names != plain)
    if not were.len():
        return column
    n_joined = names.len() - plain.n_unique()
    same = f" So {n_joined} of these become the same as another {name}." if n_joined else ""
    warn(
        f"{source}: blanks at the ends are taken off {were.len()} of {names.len()} {name}s: {shown(were.to_list())}."
        f"{same}",
        DataWarning,
    )
    return column.cast(pl.String).str.strip_chars(BLANKS).cast(pl.Categorical)


def tell_of_look_alikes(source: str, names: pl.Series, name: str) -> None:
    """Warn of names that differ in case, blanks, dashes, form of Unicode, zeros, ``.0`` or ``__`` for ``/`` alone.

    And of names that stand for a missing one.
    """
    text = names
    if (names.str.len_bytes() > names.str.len_chars()).any():
        text = pl.Series([unicodedata.normalize("NFC", one) for one in names.to_list()], dtype=pl.String)
        text = text.str.replace_all(r"\p{Pd}", "-")
    seen = text.str.replace_all(f"[{NO_WIDTH}]", "").str.replace_all(r"\s+", " ").str.strip_chars()
    look = seen.str.to_lowercase().str.replace(r"^0*(\d+?)(\.0+)?$", "${1}").str.replace_all("__", "/", literal=True)
    absent = names.filter(look.is_in(NO_NAMES))
    if absent.len():
        warn(f"{source}: {shown(absent.to_list())} is read as {name}, and may stand for none.", DataWarning)
    if look.n_unique() == names.len():
        return
    alike = pl.DataFrame({"name": names, "seen": seen, "look": look}).filter(look.is_duplicated())
    groups = alike.group_by("look", maintain_order=True).agg("name", pl.col("seen").n_unique())
    found = [
        " and ".join(quoted(one) if n_seen == len(group) else ascii(one)[: MOST_SHOWN + 2] for one in group)
        for _, group, n_seen in groups.iter_rows()
    ]
    warn(
        f"{source}: {alike.height} {name}s differ from another in case, blanks, dashes, invisible characters, zeros "
        f"in front, '.0' or '__' for '/' alone: {first_few(found)}. They count as different; if they are the same, "
        "write them in one way.",
        DataWarning,
    )


def optional_names(table: Table, column: str) -> pl.Series | None:
    """Return a column that rows may leave empty as categories; None when the column is absent or empty."""
    if column not in table.frame.columns:
        return None
    found = trimmed(table.source, categories(table.frame[column]), column)
    if (names_of(found) == "").any():
        found = found.cast(pl.String).replace("", None).cast(pl.Categorical)
    return found if found.null_count() < found.len() else None


def id_kind(table: Table, column: str, name: str) -> tuple[IdKind | None, str | None]:
    """Type of the ids, or what is wrong with it."""
    dtype = table.frame.schema[column]
    found = table.found.get(column)
    if found is None:
        if dtype.is_integer():
            return "whole numbers", None
        if dtype in _TEXT or dtype == pl.Null:
            return ("text" if table.is_typed else None), None
        return None, f"{name} must be text or whole numbers, got {dtype}. Write the ids as text."
    foreign = sorted(kind.__name__ for kind in found - {int, str})
    if foreign:
        advice = " Write the ids as text."
        if {"dict", "list"} & {*foreign}:
            rows = "to_json(orient='records', lines=True)"
            advice = f" An id is one text or number, and each response an object of its own (pandas: {rows})."
        return None, f"{name} must be text or whole numbers, got {', '.join(foreign)}.{advice}"
    if found == {int, str}:
        text = table.frame[column].unique(maintain_order=True)
        numbers = text.filter(text.str.contains(r"^-?\d+$")).to_list()
        others = text.filter(~text.str.contains(r"^-?\d+$")).to_list()
        return None, (
            f"{name} must have one type, got whole numbers and text: {shown(numbers, 3)} and "
            f"{shown(others or numbers, 3)}. Write the ids as text."
        )
    return ("whole numbers" if found == {int} else "text"), None


def numbers(frame: pl.DataFrame) -> tuple[FloatArray, dict[str, pl.Series]]:
    """Return all columns as numbers, and for each column that holds something else its rows as a mask.

    Text is read as a number, as true or false, or as missing (empty, NA, NaN, null, None, -).

    Values are (n_rows, n_columns), NaN where missing or not a number.
    """
    bad: dict[str, pl.Series] = {}
    values = np.empty((frame.height, frame.width), order="F")
    is_text = [dtype in _TEXT for dtype in frame.dtypes]
    readable = [
        index for index, dtype in enumerate(frame.dtypes) if is_text[index] or dtype.is_numeric() or dtype in _PLAIN
    ]
    columns = frame.columns  # a new list at every access
    if readable:
        text = frame[:, readable].with_columns(pl.col(*_TEXT).cast(pl.String))
        text.columns = [str(place) for place in readable]  # a column called ^...$ could not be asked anything
        parsed = text.cast(pl.Float64, strict=False)
        if frame.width == 1:
            values = parsed.to_series().fill_null(np.nan).to_numpy(writable=True).reshape(-1, 1)
        else:
            values[:, readable] = parsed.fill_null(np.nan).to_numpy()
        unread = (parsed.null_count().to_numpy() > text.null_count().to_numpy()).ravel()
        for place in np.flatnonzero(unread).tolist():
            index = readable[place]
            values[:, index], mask = _numbers_of_words(text.to_series(place), parsed.to_series(place))
            if mask.any():
                bad[columns[index]] = mask
    for index in set(range(frame.width)) - set(readable):  # lists, dates and the like
        series = frame.to_series(index)
        values[:, index] = np.nan
        if series.is_not_null().any():
            bad[series.name] = series.is_not_null()
    return values, bad


def _numbers_of_words(text: pl.Series, parsed: pl.Series) -> tuple[FloatArray, pl.Series]:
    """Look a second time at text that was not a number at once, and say where it is none."""
    word = _with_points(text.str.strip_chars().str.to_lowercase())
    truth = word.replace_strict(TRUTH_WORDS, default=None, return_dtype=pl.Float64)
    again = word.cast(pl.Float64, strict=False)
    values = parsed.zip_with(parsed.is_not_null(), again.zip_with(again.is_not_null(), truth))
    unread = values.is_null() & text.is_not_null() & ~word.is_in(MISSING_WORDS)
    return values.fill_null(np.nan).to_numpy(), unread


COMMA = r"^([+-]?\d*),(\d+)$"
TWO_ATTEMPTS = r"^[01],[01]$"
THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"


def _with_points(words: pl.Series) -> pl.Series:
    """Write decimal commas as points, where no number has a point and one at least cannot be thousands (1,234)."""
    if words.str.contains(r"^[+-]?\d*\.\d+$").any():
        return words
    is_comma = words.str.contains(COMMA).fill_null(value=False)
    if not (is_comma & ~words.str.contains(THOUSANDS)).any():
        return words
    if (are_two := words.filter(is_comma)).str.contains(TWO_ATTEMPTS).all() and are_two.str.ends_with("1").any():
        return words  # tenths that are all 0 or 1 are rarer than lists of two attempts
    return words.str.replace(COMMA, "${1}.${2}")


def examples(series: pl.Series) -> list[str]:
    """Show the first few values, shortened."""
    return [str(value)[:40] for value in series.head(N_SHOWN).to_list()]


PAIRS = (
    ("true", "false"),
    ("t", "f"),
    ("yes", "no"),
    ("y", "n"),
    ("correct", "incorrect"),
    ("correct", "wrong"),
    ("right", "wrong"),
    ("c", "i"),
    ("pass", "fail"),
    ("passed", "failed"),
    ("success", "failure"),
    ("success", "fail"),
    ("solved", "unsolved"),
    ("resolved", "unresolved"),
    ("✓", "✗"),
    ("✔", "✘"),
    ("✅", "❌"),
    ("+", "-"),
)
"""What is right and what is wrong, in lower case; read unasked when a table of responses holds nothing else."""


OUTCOMES = {
    **dict.fromkeys(("win", "wins", "won", "w"), 1.0),
    **dict.fromkeys(("tie", "ties", "tied", "draw", "draws", "drawn", "t", "d"), 0.5),
    **dict.fromkeys(("loss", "losses", "lost", "lose", "loses", "l"), 0.0),
}
"""What is worth one, a half and nothing where one answer is compared with another; read unasked like the pairs."""
MARKS_OF_INSPECT = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0}
"""Inspect's letters: correct, partial, incorrect, no answer."""
RIGHT, WRONG = ({pair[place] for pair in PAIRS if len(pair[place]) > 1} for place in (0, 1))
"""Words that say it alone; letters may name options of a question."""


PERCENTAGE = r"^([+-]?\d+(?:[.,]\d+)?)\s*%$"


def response_of(word: str) -> float | None:
    """Return 1 for a word for right and 0 for one for wrong; None for others, and for letters, which name options."""
    word = word.strip().casefold()
    return 1.0 if word in RIGHT else 0.0 if word in WRONG else None


@dataclass(frozen=True, slots=True)
class ResponseNumbers:
    """Responses as numbers."""

    values: FloatArray  # (n_rows, n_columns): NaN where missing or not a number
    bad: dict[str, pl.Series]  # Rows of each column that hold something else
    advice: str = ""  # What may be done about these, to add to a message; empty when nothing is known
    # (n_rows, n_columns): Kinds of errors (`error_kinds.KINDS`) that words name in place of responses; None without any
    errors: IntArray | None = None


def response_numbers(frame: pl.DataFrame, spec: ReadingSpec, source: str) -> ResponseNumbers:
    """Return columns of responses as numbers; words for right and wrong are 1 and 0.

    They are read so when the spec says what is right, or when all columns together hold one known pair and nothing
    else, with a `DataWarning` that says what was read as right. Words of errors ('timeout') are lost answers.
    """
    names, frame = frame.columns, frame.clone()
    frame.columns = [str(place) for place in range(frame.width)]  # as in `numbers`
    found = _numbers_of_responses(_without_marks(frame, spec.missing_values), names, spec, source)
    if found.bad:
        check_names(source, names)  # messages ask their columns more
    return replace(found, bad={names[int(place)]: mask for place, mask in found.bad.items()})


def _numbers_of_responses(frame: pl.DataFrame, names: Sequence[str], spec: ReadingSpec, source: str) -> ResponseNumbers:
    """Return columns of responses, which have places for names, as numbers."""
    found = ResponseNumbers(*numbers(frame))
    if spec.true_value is None and not found.bad:
        return found
    answers, errors = _without_errors(frame, source)
    if errors is not None:
        return replace(_numbers_of_responses(answers, names, spec, source), errors=errors)
    if spec.true_value is not None:
        return _by_true_value(frame, names, spec, source)
    words = _words(frame)
    shares = _shares(words, source)
    if shares is not None:
        return ResponseNumbers(shares * spec.max_response, {})
    counts = _counts(words.values())
    known = _of_words(words, counts, source) if spec.max_response == 1.0 else None
    if known is not None:
        return ResponseNumbers(known, {})
    bad = _counts([words[name].filter(mask) for name, mask in found.bad.items()])
    is_header = any((words[one].filter(mask) == names[int(one)].strip()).any() for one, mask in found.bad.items())
    repeats = " Lines repeat the names of the columns (files one after the other?): delete them."
    return replace(found, advice=repeats if is_header else _advice(counts, bad, _others_wrong(names, counts, spec)))


def _of_words(words: Mapping[str, pl.Series], counts: Mapping[str, int], source: str) -> FloatArray | None:
    """Words for right and wrong, or for wins, ties and losses, as numbers; None where there are others."""
    kinds = {word.casefold() for word in counts}
    pair = next((pair for pair in PAIRS if kinds <= {*pair}), None)
    if pair is not None:
        _tell(source, counts, pair[0])
        return _stacked(column.str.to_lowercase() == pair[0] for column in words.values())
    worth = MARKS_OF_INSPECT if kinds >= {"c", "i"} else OUTCOMES
    if not kinds <= {*worth} or kinds <= {"t", "d"}:
        return None
    told = ", ".join(f"{word!r} as {worth[word.casefold()]:g}" for word in counts)
    warn(f"{source}: read {told}.", DataWarning)
    lower = (column.str.to_lowercase() for column in words.values())
    return _stacked(one.replace_strict(worth, default=None, return_dtype=pl.Float64) for one in lower)


def _without_marks(frame: pl.DataFrame, marks: Sequence[str]) -> pl.DataFrame:
    """Empty the values that mark a missing response; numbers are compared as such."""
    if not marks:
        return frame
    named = pl.Series([mark.strip().casefold() for mark in marks])
    numbers_named = named.str.replace_all(",", ".").cast(pl.Float64, strict=False).drop_nulls()
    columns = []
    for column in frame:
        text = as_text(column).str.strip_chars().str.to_lowercase()
        number = _with_points(text).cast(pl.Float64, strict=False)
        is_mark = text.is_in(named.implode()) | number.is_in(numbers_named.implode())
        columns.append(column.set(is_mark.fill_null(value=False), None))
    return pl.DataFrame(columns)


def _without_errors(frame: pl.DataFrame, source: str) -> tuple[pl.DataFrame, IntArray | None]:
    """Take out words that name an error, and return their kinds (n_rows, n_columns); None where there are none."""
    kinds: dict[str, dict[str, int]] = {}
    for column in frame:
        if column.dtype in _TEXT:
            words = column.cast(pl.String).unique().drop_nulls().to_list()
            kinds[column.name] = {word: error_kind(word) for word in words if is_error_word(word)}
    named = list(dict.fromkeys(word for found in kinds.values() for word in found))
    if not named:
        return frame, None
    warn(f"{source}: read {shown(named)} as lost answers, whose run or grading ended in an error.", DataWarning)
    codes, answers = np.zeros(frame.shape, dtype=np.int64, order="F"), []
    for place, column in enumerate(frame):
        found = kinds.get(column.name)
        if found:
            text = column.cast(pl.String)
            codes[:, place] = text.replace_strict(found, default=0, return_dtype=pl.Int64).fill_null(0).to_numpy()
            column = text.set(pl.Series(codes[:, place] > 0), None)  # noqa: PLW2901 (the column that stays)
        answers.append(column)
    return pl.DataFrame(answers), codes


def error_codes(series: pl.Series) -> IntArray | None:
    """Return the kind of error of each row of a column that tells errors, (n_rows,); None if it holds other numbers.

    Text is a kind, an exception or a message, a number a flag or a status of HTTP; empty, false and 0 are no errors.
    """
    text = series.cast(pl.String, strict=False) if not series.dtype.is_nested() else as_text(series)
    values = text.unique().drop_nulls()
    found = values.str.strip_chars().cast(pl.Float64, strict=False).drop_nulls()
    is_status = (found == 200.0) | found.is_between(400.0, 599.0)
    if series.dtype != pl.Boolean and not (found.is_in([0.0, 1.0]) | is_status).all():
        return None
    kinds = {one: error_kind(one) for one in values.to_list()}
    return text.replace_strict(kinds, default=0, return_dtype=pl.Int64).fill_null(0).to_numpy()


def _shares(words: Mapping[str, pl.Series], source: str) -> FloatArray | None:
    """Percentages as numbers in [0, 1], (n_rows, n_columns); None unless every response is one."""
    texts = {name: column.str.extract(PERCENTAGE, 1).str.replace(",", ".") for name, column in words.items()}
    found = {name: text.cast(pl.Float64, strict=False) for name, text in texts.items()}
    if any(found[name].null_count() > words[name].null_count() for name in words):
        return None
    first = next(str(one) for column in words.values() for one in column.drop_nulls())
    warn(f"{source}: read percentages (such as {first!r}) as shares of 1.", DataWarning)
    return _stacked(found.values()) / 100.0


def _by_true_value(frame: pl.DataFrame, names: Sequence[str], spec: ReadingSpec, source: str) -> ResponseNumbers:
    """Read one value as right and another as wrong: its known partner, or the only other one."""
    words, true_value = _words(frame), str(spec.true_value)
    counts = _counts(words.values())
    right = true_value.strip().casefold()
    others = {word: n for word, n in counts.items() if word.casefold() != right}
    kinds = {word.casefold() for word in others}
    partners = {wrong for first, wrong in PAIRS if first == right} & kinds
    wrong = partners if len(partners) == 1 else kinds
    own = _others_wrong(names, [word for word in counts if word not in others], spec)
    if len(wrong) > 1:
        near = did_you_mean(true_value, counts) if len(others) == len(counts) else ""
        _refuse(source, f"{true_value!r}, which is right, or one other value", others, near, own)
    beside = {word: n for word, n in others.items() if word.casefold() not in wrong}
    if beside:
        _refuse(source, f"{true_value!r}, which is right, or {wrong.pop()!r}, which is wrong", beside, "", own)
    _tell(source, counts, right)
    return ResponseNumbers(_stacked(column.str.to_lowercase() == right for column in words.values()), {})


def _words(frame: pl.DataFrame) -> dict[str, pl.Series]:
    """Return each column as text without blanks around it, null where missing."""
    # by hand, as names of columns may be empty, or patterns to polars
    texts = {column.name: as_text(column).str.strip_chars() for column in frame}
    absent = [word for word in MISSING_WORDS if word != "-" or not any((text == "+").any() for text in texts.values())]
    for name, text in texts.items():
        texts[name] = text.set(text.str.to_lowercase().is_in(absent).fill_null(value=True), None)
    return texts


def as_text(column: pl.Series) -> pl.Series:
    """Write values as people do: 1 for 1.0."""
    if column.dtype.is_nested() or column.dtype == pl.Object:
        return pl.Series(
            column.name, [None if value is None else str(value) for value in column.to_list()], dtype=pl.String
        )
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(pl.Float64) == column).fill_null(value=False)
        return whole.cast(pl.String).zip_with(is_whole, column.cast(pl.String))
    return column.cast(pl.String, strict=False)


def _counts(columns: Iterable[pl.Series]) -> dict[str, int]:
    """How often each value occurs in all columns, the commonest first."""
    found: Counter[str] = Counter()
    for column in columns:
        found.update(dict(column.drop_nulls().value_counts().iter_rows()))
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _stacked(columns: Iterable[pl.Series]) -> FloatArray:
    """Numbers, or true and false as 1 and 0, NaN where missing, (n_rows, n_columns)."""
    return np.asfortranarray(np.column_stack([one.cast(pl.Float64).fill_null(np.nan).to_numpy() for one in columns]))


def _tell(source: str, counts: Iterable[str], right: str) -> None:
    """Say what was read as right and what as wrong."""
    kinds = {"right": [word for word in counts if word.casefold() == right]}
    kinds["wrong"] = [word for word in counts if word.casefold() != right]
    parts = [f"{' and '.join(map(repr, words))} as {what}" for what, words in kinds.items() if words]
    warn(f"{source}: read {' and '.join(parts)}.", DataWarning)


def _times(counts: Mapping[str, int]) -> str:
    return first_few([f"{word[:40]!r} {plural(n, 'time')}" for word, n in counts.items()])


def _advice(counts: Mapping[str, int], bad: Mapping[str, int], others_wrong: str) -> str:
    """Say how often each of the bad values occurs, and what all values (`counts`) suggest to do."""
    text = f" They are {_times(bad)}."
    if any(re.search(r"\d\s*%$", word) for word in bad):
        return f"{text} Write all responses with a percent sign, or none."
    if any(re.fullmatch(r"[+-]?[\d.]*,[\d,]+", word) for word in bad):
        if all(re.fullmatch(TWO_ATTEMPTS, word) for word in bad):
            text += " If they are two attempts, write a row for each; if not:"
        return f"{text} Write numbers with a decimal point, and nothing between thousands."
    if all(re.fullmatch(r"\d+\s*(/|of)\s*\d+", word) for word in bad):
        text += " If these are shares, divide them, or write two columns of a long table, n_correct and n_trials."
    if 2 * sum(word.endswith(("]", "}")) for word in bad) > len(bad):
        return (
            f"{text} A response is one value; a list of several must be so in every row of a long table, and of an "
            "object the value that counts goes into a column of its own."
        )
    kinds = {word.casefold() for word in counts}
    told = {word for pair in (*PAIRS, ("w", "l")) if kinds >= {*pair} for word in pair} | RIGHT | WRONG
    told |= {word for word in OUTCOMES if len(word) > 1}
    known = [word for word in counts if word not in bad or word.casefold() in told]
    marks = [word for word in bad if word not in known]
    n_marks = sum(counts[word] for word in marks)
    most_marks = 5
    if 0 < len(marks) <= most_marks and 2 * n_marks < sum(counts.values()):
        are = (
            f"{quoted(marks[0])} marks an answer that is"
            if len(marks) == 1
            else f"{shown(marks)} mark answers that are"
        )
        how_to_mark = how(missing_values=tuple(marks))
        is_pair = len(kinds) == 2 and {word.casefold() for word in known} <= WRONG
        right = f" If {quoted(marks[0])} is right, add: {how(true_value=marks[0])}\n" if is_pair else " "
        return (
            f"{text}{right}If {are} missing, add: {how_to_mark}{others_wrong}\nIf not, write numbers from 0 to 1 in "
            "the file, 0.5 for half right."
        )
    if len(kinds) <= 2:
        ways = [how(true_value=word) for word in counts]
        return f"{text} If one value stands for a right answer, say which: {' or '.join(ways)}."
    other = remedy("response_column='...'", "--column response=...")
    return (
        f"{text} Write them as numbers from 0 to 1; or, if these are answers and another column says whether they are "
        f"right, add: {other}{others_wrong}"
    )


def _others_wrong(names: Sequence[str], known: Iterable[str], spec: ReadingSpec) -> str:
    """Say how all values of the one column but a known word for right are read as wrong; empty where none is known."""
    right = [word for word in known if word.casefold() in {*RIGHT, (spec.true_value or "").casefold()}]
    if len(names) != 1 or len(right) != 1:
        return ""
    name = names[0]
    value = f".[{json.dumps(name, ensure_ascii=False)}] == {json.dumps(right[0], ensure_ascii=False)}"
    told = how(columns={"response": name}) if name in {spec.columns.get("response"), spec.response_column} else ""
    instead = f" (without {told})" if told and name != "response" else ""
    return f"\nIf all but {right[0]!r} are wrong, add{instead}: {how(jq=f'. + {{response: ({value})}}')}"


def _refuse(source: str, expected: str, others: Mapping[str, int], near: str, own: str) -> None:
    mark = remedy("missing_values=('...',)", "--missing VALUE")
    raise DataError(
        f"{source}: response must be {expected}, got {_times(others)}.{near} Write these as right or wrong; or, where "
        f"one marks a missing answer, say which: {mark}.{own}"
    )
