"""Long tables: one row a response."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from itembank.checks import is_pattern
from itembank.errors import N_SHOWN, DataError, DataWarning, first_few, quoted, shown, unsaid, warn
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.chosen_rows import chosen_rows, is_row_number, ordering_columns, parts_of
from itembank.readers.columns import (
    COMMA,
    COUNT_NAMES,
    ResponseNumbers,
    as_text,
    counts_of,
    error_codes,
    examples,
    id_column,
    likely,
    numbers,
    optional_names,
    plain_name,
    response_numbers,
)
from itembank.readers.jq_programs import jq_key
from itembank.readers.json_files import column_of
from itembank.readers.reading_specs import COST_COLUMNS, LONG_COLUMNS, ReadingSpec, how, how_to_name_model
from itembank.readers.rows import UNCHANGING, OtherColumns, ResponseRows, how_to_prefix, rename_model
from itembank.readers.settling import Alone, row_problems, settle_rows
from itembank.readers.table_files import NAME, NUMBER, Type
from itembank.responses.error_kinds import is_called
from itembank.responses.how_read import CONTENT
from itembank.responses.labels import first_told, named, names_of, number_of_pair, numbered
from itembank.responses.opening import Table
from itembank.responses.prompts import DIFFERS, JUDGE, PROMPT_SETTINGS, how_to_mix, settings_text
from itembank.tables import plural


def wanted_columns(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Those of a long table's columns that are read, and by which they are made and rows are chosen."""
    wanted = {spec.column(name) for name in LONG_COLUMNS} | {*spec.where} | {*ordering_columns(columns, spec)}
    wanted |= {part for theirs in wanted for part in parts_of(theirs, columns)}
    verdict = verdict_column(columns, spec)
    return [name for name in columns if name in wanted or name == verdict]


VERDICTS = ("correct", "iscorrect", "passed")
"""What others call a column that says whether an answer was right, without case, blanks and underscores."""


def verdict_column(columns: Sequence[str], spec: ReadingSpec) -> str | None:
    """Return the one column that says whether an answer was right, beside one called `response` that nobody chose."""
    if spec.names_response or "response" not in columns:
        return None
    found = [name for name in columns if is_called(name, VERDICTS) and name not in spec.columns.values()]
    return found[0] if len(found) == 1 else None


DOLLARS = ("cost", "costs", "usd", "dollars", "price", "priceusd", "totalcost", "totalcostusd")
"""What others call the cost of a response, without case, blanks and underscores."""


def warn_of_dollars(source: str, unread: Sequence[str], columns: Sequence[str], spec: ReadingSpec) -> None:
    """Say which column that is not read may have the costs, if none is read in dollars."""
    found = [name for name in unread if is_called(name, DOLLARS)]
    if found and spec.column("cost_usd") not in columns:
        add = how(columns={"cost_usd": found[0]})
        warn(f"{source}: no dollars are read. If they are in {found[0]!r}, add: {add}", DataWarning)


FAULTS = (
    *("incorrect", "isincorrect", "wrong", "iswrong", "failed", "isfailed", "failure", "isfailure", "errorrate"),
    *("loss", "nll", "perplexity", "ppl", "rank", "toxicity", "wer", "cer", "ter", "mae", "mse", "rmse", "brier"),
    *("wordperplexity", "byteperplexity", "bitsperbyte", "distance", "editdistance", "exitcode", "returncode"),
    *("brierscore", "hallucination", "hallucinated", "ishallucination", "hallucinationrate", "ishallucinated"),
)
"""What others call a column, or metric, in which less is better, without case, blanks and underscores."""


def how_to_turn(frame: pl.DataFrame, column: str, *, is_told: bool) -> str:
    """Say that a column is called as one in which less is better, and how it is turned round; empty if it is not.

    A name that is told makes way for the program.
    """
    if not (is_called(column, FAULTS) or plain_name(column).endswith("error")):
        return ""
    program = f". + {{response: {_turned(frame[column])}}}"
    return f"{_as_fault(column)}, {'give instead' if is_told else 'add'}: {how(jq=program)}"


def _as_fault(name: str) -> str:
    return f"{name!r} is called as what is wrong, and a higher response must be better. To turn it round"


def _turned(column: pl.Series) -> str:
    at, values = jq_key(column.name), as_text(column).drop_nulls()
    if values.cast(pl.Float64, strict=False).is_between(0.0, 1.0).sum() == values.len():
        return f"(1 - ({at} | tonumber))"
    are_words = values.str.to_lowercase().is_in(["true", "false"]).all()
    return f'({at} | tostring | ascii_downcase == "false")' if are_words else "..."


def _warn_of_faults(table: Table, spec: ReadingSpec, metric: pl.Series | None) -> None:
    """Warn of a column, or of metrics, in which less is better; a metric that is turned round gets another name."""
    response = spec.column("response")
    if response not in table.frame.columns:
        return
    faults = [] if metric is None else [name for name in names_of(metric).to_list() if is_called(name, FAULTS)]
    if not faults and (turn := how_to_turn(table.frame, response, is_told=True)):
        warn(f"{table.source}: {turn}", DataWarning)
    ours = f". + {{metric: {jq_key(spec.column('metric'))}, response: {jq_key(response)}}}"
    way = "add" if response == "response" else "give instead"
    for name in faults:
        turned = _turned(table.frame.filter(metric == name)[response].alias("response"))
        other = f". + {{metric: {json.dumps(f'1 - {name}')}, response: {turned}}}"
        program = f"{ours} | if .metric == {json.dumps(name)} then {other} else . end"
        warn(f"{table.source}: {_as_fault(name)}, {way}: {how(jq=program)}", DataWarning)


def _refuse_contradiction(table: Table, spec: ReadingSpec, pairs: Callable[[IntArray], list[str]]) -> None:
    """Raise `DataError` where a column `response` contradicts the verdict beside it, as a model's own answer does.

    A score agrees with its verdict if all that is right has more than all that is wrong.
    """
    column = verdict_column(table.frame.columns, spec)
    if column is None or any(table.frame.schema[name].is_nested() for name in ("response", column)):
        return
    rows = (
        table.frame.select("response", column)
        .with_row_index("\0")
        .unique(["response", column], keep="first", maintain_order=True)
    )
    with unsaid(DataWarning):  # what words were read as is said of the column that is taken
        verdict = response_numbers(rows[[column]], replace(spec, true_value=None, max_response=1.0), table.source)
        found = response_numbers(rows[["response"]], spec, table.source)
    right, wrong, none = (verdict.values[:, 0] == 1.0, verdict.values[:, 0] == 0.0, np.isnan(verdict.values[:, 0]))
    if verdict.bad or not (right | wrong | none).all():
        return
    score = found.values[:, 0] / spec.max_response
    lowest = np.nanmin([*score[right], np.nanmax([1.0, *score])])
    highest = np.nanmax([*score[wrong], 0.0])
    differs = (highest >= lowest) & ((right & (score <= highest)) | (wrong & (score >= lowest)))
    if not (differs.any() or found.bad):
        return
    index, *values = rows.row(int(np.argmax(np.where(differs, 1.0 + np.abs(score - verdict.values[:, 0]), 0.0))))
    one, other = (f"{value:g}" if isinstance(value, float) else quoted(value) for value in values)
    ways = [how(columns={"response": one}) for one in (column, "response")]
    raise DataError(
        f"{table.source}: 'response' must agree with {column!r} beside it, got {one} and {other} for "
        f"{pairs(np.array([index]))[0]}. If {column!r} says which answers are right, add: {ways[0]}; if 'response' "
        f"does, add: {ways[1]}"
    )


def check_columns(source: str, columns: Sequence[str], spec: ReadingSpec) -> None:
    """Raise `DataError` when a long table has not the columns it needs."""
    has_counts = {spec.column("n_correct"), spec.column("n_trials")} <= set(columns)
    told = {"model_id": spec.model_id, "item_id": None, "response": has_counts and spec.response_column == "response"}
    absent = {name: spec.column(name) for name, is_told in told.items() if not is_told}
    absent = {name: column for name, column in absent.items() if column not in columns}
    if absent:
        names = (counts_of(columns) if [*absent] == ["response"] else {}) or {
            name: likely(columns, name) for name in absent
        }
        raise DataError(
            f"{source}: a long table must have the columns model_id, item_id and response (or n_correct and "
            f"n_trials), got none called {shown([*absent.values()])}; there are {shown(columns, 12)}. If the file has "
            f"other names for them, add: {how(columns=names)}. A table of one model may get its "
            f"id from {how_to_name_model()}."
        )


OTHER_UNITS = {
    "seconds": r"m(illi|icro)?s(ec(onds?)?)?|millis|[uµn]s|nano(s|seconds?)|min(ute)?s?|h|hours?",
    "cost_usd": "cents?|ct|eur|euros?|gbp|cny|rmb|jpy|credits?|1?k|1?m|mtok|1000|million",
    **dict.fromkeys(("input_tokens", "output_tokens"), "k|thousands?|millions?|chars?|characters|words|bytes"),
}
"""Words of a column's name that tell another unit than that of the costs as which it is read."""


def types_of_columns(columns: Sequence[str], spec: ReadingSpec) -> dict[str, Type]:
    """Say how columns of a long table, as the file calls them, are read; numbers as text where marks are asked for."""
    names = {spec.column(name): NAME for name in NAMES if name != "error"}  # messages come once each
    names |= {verdict: NAME} if (verdict := verdict_column(columns, spec)) else {}
    if spec.true_value is not None or spec.missing_values:
        return names
    return {spec.column(name): NUMBER for name in _NUMBER_COLUMNS if spec.column(name) not in spec.where} | names


def text_columns(spec: ReadingSpec) -> list[str]:
    """Columns that hold names, as the file calls them."""
    return [spec.column(name) for name in NAMES]


def rows_of_long(table: Table, spec: ReadingSpec) -> ResponseRows:
    """Make rows of a long table; `DataError` names every problem."""
    check_columns(table.source, table.frame.columns, spec)
    columns, table = table.frame.columns, chosen_rows(table, spec)
    warn_of_dollars(table.source, other_names(columns, spec), columns, spec)
    problems: list[str] = []
    ids, kinds = {}, {}
    for name in ("model_id", "item_id"):
        column = spec.column(name)
        if name == "model_id" and column not in table.frame.columns:
            ids[name] = pl.repeat(spec.model_id, table.frame.height, dtype=pl.String, eager=True).cast(pl.Categorical)
        elif found := id_column(table, column, problems, name=name):
            ids[name], kinds[name] = found
    if problems:
        raise DataError(f"{table.source}: " + " ".join(problems))
    frame = pl.DataFrame(ids)
    pairs = partial(named, frame)
    if columns == table.frame.columns:  # a list of attempts has another verdict than each of them
        _refuse_contradiction(table, spec, pairs)
    read = {name: _numbers(table, spec, name, pairs, problems) for name in _NUMBER_COLUMNS}
    values = {name: None if found is None else found.values[:, 0] for name, found in read.items()}
    words = None if read["response"] is None else read["response"].errors
    told = _told_errors(table, spec, None if words is None else words[:, 0].astype(np.int64), problems)
    settled = settle_rows(values, told, spec, table.source, pairs=pairs, problems=problems)
    scenario = optional_names(table, spec.column("scenario"))
    if spec.prefix_scenario:
        frame = frame.with_columns(item_id=_prefixed(frame["item_id"], scenario, spec))
        kinds["item_id"] = "text"
    costs = {unit: one for unit in COST_COLUMNS if (one := values[unit]) is not None and not np.isnan(one).all()}
    _warn_of_units(table, spec, {spec.column(name): one for name, one in values.items() if one is not None})
    _warn_of_trials(table, spec, values["response"], values["n_trials"])
    attempt = _attempts(table, spec)
    frame = frame.with_columns(pl.Series(name, one) for name, one in (settled | costs).items())
    frame = frame if attempt is None else frame.with_columns(attempt.alias("attempt"))
    rows = ResponseRows(
        *(table.source, frame, names_of(frame["model_id"]).to_frame("model_id")),
        _item_table(table, spec, frame, scenario, problems),
        kinds=kinds,
        others=other_columns(table.frame, spec),
    )
    column = spec.column("scenario")
    alone: Alone | None = (lambda name: {"where": {column: name}}) if column in table.frame.columns else None
    metric = optional_names(table, spec.column("metric"))
    _warn_of_faults(table, spec, metric)
    if metric is None or metric.n_unique() < 2:
        metric = None
    else:  # each is on a scale of its own
        metric, alone = metric.cast(pl.String).fill_null(""), lambda name: {"metric": name}
    problems.extend(row_problems(rows, max_response=spec.max_response, has_marks=True, scenario=metric, alone=alone))
    if problems:
        raise DataError(f"{table.source}: " + " ".join(problems))
    return rows


def _warn_of_units(table: Table, spec: ReadingSpec, values: Mapping[str, FloatArray]) -> None:
    """Warn of costs whose name tells another unit, and of points that may part thousands beside decimal commas."""
    for unit, column in ((unit, spec.column(unit)) for unit in COST_COLUMNS):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", column).split()
        other = [word for word in words if column in values and re.fullmatch(OTHER_UNITS[unit], word, re.IGNORECASE)]
        if other:
            told = f"{column!r} is read as {unit}, and {other[0]!r} in its name tells another unit"
            warn(f"{table.source}: {told}. If it has that unit, convert its values.", DataWarning)
    texts = {name: as_text(table.frame[name]) for name in values if table.frame.schema[name] == pl.String}
    commas = [name for name, text in texts.items() if text.str.contains(COMMA).any()]
    for name, own in values.items() if commas else ():
        parted = own[~np.isnan(own) & (own % 1.0 != 0.0)]
        is_parted = (np.abs(parted) >= 1.0) & (np.abs(parted) < 1000.0) & (np.round(parted, 3) == parted)
        if name not in commas and parted.size and is_parted.all():
            warn(
                f"{table.source}: {commas[0]!r} has decimal commas, and the points of {name!r} ({parted[0]:.3f}) are "
                f"read as decimal ones. If they part thousands, write {1000.0 * parted[0]:.0f}.",
                DataWarning,
            )


def _warn_of_trials(table: Table, spec: ReadingSpec, responses: FloatArray | None, known: FloatArray | None) -> None:
    """Warn of a column that is called as the number of attempts, if it is not read and all shares are of as many."""
    if responses is None or known is not None:
        return
    shares = responses / spec.max_response
    called = [name for name in table.frame.columns if plain_name(name) in COUNT_NAMES["n_trials"]]
    called = [name for name in called if table.frame.schema[name].is_numeric() and not spec.drops(name)]
    is_between = (shares > 0.0) & (shares < 1.0)
    for name in called if len(called) == 1 and is_between.any() else ():
        trials = table.frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy()[is_between]
        if (trials > 1.0).all() and (np.abs(shares[is_between] * trials % 1.0 - 0.5) > 0.49).all():
            told = f"{table.source}: all shares are whole numbers of {name!r}"
            warn(f"{told}. If it counts the attempts, add: {how(columns={'n_trials': name})}", DataWarning)


def _attempts(table: Table, spec: ReadingSpec) -> pl.Series | None:
    """Name the attempts of one model at one item: seed, epoch, or both; None when neither is told."""
    told = [one for name in ("seed", "epoch") if (one := optional_names(table, spec.column(name))) is not None]
    if len(told) < 2:
        return told[0] if told else None
    joined = pl.concat_str([one.cast(pl.String).fill_null("") for one in told], separator="\0")
    return pl.select(joined).to_series().replace("\0", None).cast(pl.Categorical)


def _told_errors(table: Table, spec: ReadingSpec, words: IntArray | None, problems: list[str]) -> IntArray | None:
    """Kind of the error that each row tells, by a word in place of its response or by its column; None without any."""
    column = spec.column("error")
    if column not in table.frame.columns:
        return words
    told = error_codes(table.frame[column])
    nothing = np.zeros(table.frame.height, dtype=np.int64) if words is None else words
    if told is not None:
        return np.maximum(told, nothing)
    what = f"{column} must hold texts of errors, or true and false, got numbers"
    if "error" in spec.columns and not is_called(column, ("error",)):
        problems.append(f"{what}. Name the column that tells whether an answer was lost, or none.")
    else:
        warn(f"{table.source}: {what}; the column is left out.", DataWarning)
    return nothing


_NUMBER_COLUMNS = ("response", "n_trials", "n_correct", "n_errors", *COST_COLUMNS)


def _numbers(
    table: Table, spec: ReadingSpec, name: str, pairs: Callable[[IntArray], list[str]], problems: list[str]
) -> ResponseNumbers | None:
    """Return one column as numbers, None when absent."""
    column = spec.column(name)
    if column not in table.frame.columns:
        return None
    chosen = table.frame[[column]]
    is_response = name == "response"
    found = response_numbers(chosen, spec, table.source) if is_response else ResponseNumbers(*numbers(chosen))
    if found.bad:
        rows = found.bad[column].arg_true().to_numpy().astype(np.int64)
        named = zip(pairs(rows), examples(table.frame[column].gather(rows)), strict=True)
        where = first_few([f"{pair} = {value!r}" for pair, value in named], rows.size)
        advice = found.advice
        if not is_response:
            out = how(drop_columns=(column,))
            advice = f" Write plain numbers, such as 1234.5; or, to leave the column out, add: {out}"
        problems.append(f"{column} must be a number, got {plural(rows.size, 'other value')}: {where}.{advice}")
    return found


def _item_table(
    table: Table, spec: ReadingSpec, frame: pl.DataFrame, scenario: pl.Series | None, problems: list[str]
) -> pl.DataFrame:
    """Return what the rows tell of each item: scenario and the like; metric and judge, where they are told.

    Several metrics or judges of one item are a problem, but where they part rows of one model and item: then all
    columns that do so are named together (`itembank.readers.telling_apart`).
    """
    names = names_of(frame["item_id"])
    items, found = numbered(frame["item_id"], names), {"item_id": names}
    is_answered = frame["response"].is_not_nan()
    for name in (*UNCHANGING, "metric", "judge"):
        column = scenario if name == "scenario" else optional_names(table, spec.column(name))
        if column is None:
            continue
        if name not in UNCHANGING:
            column = pl.select(pl.when(is_answered).then(column)).to_series()
        first, differing = first_told(items, names.len(), column)
        is_problem = differing.size > 0
        if is_problem and name not in UNCHANGING:
            pair = number_of_pair(numbered(frame["model_id"]), items, names.len())
            pair = np.unique(pair, return_inverse=True)[1]
            parts_pairs = first_told(pair, int(pair.max(initial=-1)) + 1, column)[1].size > 0
            is_problem = not parts_pairs and not (name == "judge" and spec.allow_mixed_prompts)
        if is_problem:
            unlike = pl.DataFrame({"item": frame["item_id"].gather(differing), "other": column.gather(differing)})
            unlike = unlike.with_columns(first=first.gather(items[differing]))
            problems.append(_several(name, unlike.unique("item", keep="first", maintain_order=True), spec))
        if name not in UNCHANGING:
            first = first.scatter(np.unique(items[differing]), DIFFERS)
        if name == "judge":
            first = pl.Series([settings_text({JUDGE: value}) for value in first], dtype=pl.String)
        found[PROMPT_SETTINGS if name == "judge" else name] = first
    return pl.DataFrame(found)


def _several(name: str, unlike: pl.DataFrame, spec: ReadingSpec) -> str:
    """Say that rows of an item differ in what must be the same for all, one row an item."""
    rows = unlike.select("item", "first", "other").head(N_SHOWN).rows()
    (item, one, other), several = rows[0], plural(unlike.height, "item")
    if name == CONTENT:
        names = shown([item for item, *_ in rows])
        return (
            f"an item must ask the same in all rows, got another content for {several}: {names}. If ids "
            "start anew in each file or part, read those apart."
        )
    if name in UNCHANGING:
        found = [f"{item!r} in {one!r} and {other!r}" for item, one, other in rows]
        where = first_few(found, unlike.height)
        return f"an item must belong to one {name}, got more for {several}: {where}. {how_to_prefix()}"
    only = how(metric=(one,)) if name == "metric" else f"{how(where={spec.column(name): one})}\n{how_to_mix()}"
    return (
        f"an item must have one {name} for all models, got more for {several}: {item!r} has "
        f"{one!r} and {other!r}. To take one, add: {only}"
    )


def other_columns(frame: pl.DataFrame, spec: ReadingSpec) -> OtherColumns | None:
    """Return the columns of a long table that tell neither ids, responses, attempts nor costs; None where none do."""
    names = other_names(frame.columns, spec)
    names = [name for name in names if not frame.schema[name].is_nested()]
    if not names:
        return None
    table = frame.select(pl.nth(*(frame.columns.index(name) for name in names)))
    return OtherColumns(tuple(names), our_names(frame.columns, spec), lambda some: as_texts(table, some))


def as_texts(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return some columns as text without blanks around it, null where they say nothing."""
    return pl.DataFrame({name: as_text(frame[name]).str.strip_chars().replace("", None) for name in names})


def other_names(columns: Sequence[str], spec: ReadingSpec) -> list[str]:
    """Columns of a long table, by their names, that tell neither ids, responses, attempts nor costs."""
    taken = {spec.column(name) for name in LONG_COLUMNS if name not in {"metric", "judge"}}
    taken |= {part for theirs in taken for part in parts_of(theirs, columns)}
    left_out = (is_row_number, is_pattern, spec.drops)
    return [name for name in columns if name not in taken and not any(is_one(name) for is_one in left_out)]


def our_names(columns: Sequence[str], spec: ReadingSpec) -> dict[str, str]:
    """Return what a table calls our columns, as far as it has them."""
    return {name: theirs for name in LONG_COLUMNS if (theirs := spec.column(name)) in columns}


def _prefixed(items: pl.Series, scenario: pl.Series | None, spec: ReadingSpec) -> pl.Series:
    """Items named 'scenario/item_id'."""
    if scenario is None and spec.scenario is None:
        raise DataError("prefix_scenario needs a column scenario, or scenario='...'.")
    default = spec.scenario or ""
    before = pl.lit(default) if scenario is None else scenario.cast(pl.String).fill_null(default)
    joined = pl.concat_str(before, items.cast(pl.String), separator="/")
    stripped = joined if scenario is None else joined.str.strip_prefix("/")
    return pl.select(stripped.cast(pl.Categorical)).to_series()


NAMES = ("model_id", "item_id", "scenario", "subscenario", "seed", "epoch", "error", "metric", "judge")
"""Columns of a long table that are text whatever they hold."""


def rows_of_records(
    source: str, records: Sequence[Mapping[str, Any]], spec: ReadingSpec, *, models: Sequence[Mapping[str, Any]] = ()
) -> ResponseRows:
    """Make rows of records whose keys are columns of a long table, all the same; a value of None is missing.

    The choices of `spec` for tables have no say: the reader has made responses of [0, 1] already. Further keys tell of
    items, and the records `models` of models.
    """
    spec = replace(spec, columns={}, response_column="response", true_value=None, max_response=1.0)
    spec = replace(spec, where={}, metric=(), missing_values=(), prefix_scenario=False)
    keys = [*records[0]] if records else ["model_id", "item_id", "response"]
    columns = [
        column_of(records, name, set())
        if name in {*NAMES, CONTENT}
        else pl.Series(name, [one[name] for one in records], dtype=pl.Float64)
        for name in (*LONG_COLUMNS, CONTENT)
        if name in keys
    ]
    rows = rows_of_long(Table(source, pl.DataFrame(columns)), spec)
    about = ["item_id", *(name for name in keys if name not in {*LONG_COLUMNS, CONTENT})]
    items = [{name: one[name] for name in about} for one in records] if len(about) > 1 else []
    rows = replace(rows, models=_with_known(rows.models, models), items=_with_known(rows.items, items))
    return rows if spec.model_id is None else rename_model(rows, spec.model_id)


def _with_known(table: pl.DataFrame, records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Add what records tell to a table whose first column is the id; the first record of an id counts."""
    if not records:
        return table
    key = table.columns[0]
    names = dict.fromkeys(name for one in records for name in one if name not in table.columns)
    known = pl.DataFrame([column_of(records, name, set() if name == key else None) for name in (key, *names)])
    # what nobody tells has no type, so that another source may tell it
    known = known.with_columns(pl.lit(None).alias(name) for name in names if known[name].null_count() == known.height)
    known = known.unique(key, keep="first", maintain_order=True)
    return table.join(known, on=key, how="left", maintain_order="left")
