"""Tables of one row a model and one column an item, or the other way round."""

import json
import re
from collections.abc import Sequence

import numpy as np
import polars as pl

from itembank.errors import DataError, DataWarning, first_few, remedy, shown, warn
from itembank.numerics.arrays import FloatArray, IntArray
from itembank.readers.chosen_rows import TIMES
from itembank.readers.columns import (
    MEANS,
    NAMES_IN_TURN,
    SUMMARIES,
    USUAL_NAMES,
    ResponseNumbers,
    as_text,
    counts_of,
    examples,
    id_column,
    is_measure,
    may_name_model,
    optional_names,
    plain_name,
    response_numbers,
    response_of,
    trimmed,
)
from itembank.readers.jq_programs import jq_key, row_program
from itembank.readers.reading_specs import ReadingSpec, how
from itembank.readers.rows import ResponseRows
from itembank.readers.settling import range_advice, row_problems, shares_of
from itembank.readers.telling_apart import attempts_of, kind_of
from itembank.responses.error_kinds import NO_ANSWER, is_called
from itembank.responses.labels import IdKind, names_of
from itembank.responses.opening import Table
from itembank.tables import plural

WIDE_ITEMS, WIDE_MODELS = ((f"format={name!r}", f"--as {name}") for name in ("wide-items", "wide-models"))
RIGHT_ANSWERS = (
    *("target", "label", "gold", "reference", "expected", "groundtruth", "goldanswer", "correctanswer"),
    *("truelabel", "goldlabel", "ytrue", "expectedanswer", "truth", "y", "correctlabel", "answerkey"),
)
GIVEN_ANSWERS = (
    *("prediction", "predicted", "pred", "output", "choice", "modelanswer", "extractedanswer"),
    *("predictedlabel", "predlabel", "ypred", "predictedanswer"),
)
ANSWERS = ("answer", *RIGHT_ANSWERS, *GIVEN_ANSWERS)
"""What others call an answer, right or given, without case, blanks and underscores; it groups no items."""
ABOUT_THINGS = (
    *("weight", "weights", "chance", "difficultyprior", "scenario", "subscenario", "nativeid", "copyof"),
    *("flops", "params", "traintokens", "recipe", "mixture", "family", "familyordata", "seed", "temperature"),
    *("difficulty", "discrimination", "guessing", "pvalue", "passrate", "solverate", "facility", "level", "fold"),
    *("turn", "theta", "ability", "se"),
)
"""What columns of tables of items and models are called, without case, blanks and underscores: ours, and of others."""
HIGHEST = (
    *("max", "maxscore", "maxpoints", "maxmarks", "maxmark", "maximum", "pointspossible", "possiblepoints", "outof"),
)
"""What others call the highest mark of a row, or column, in the same way."""
METRICS = re.compile(
    r"(mean|avg|std|median|max|min)?(acc|accuracy|accnorm|em|exact|exactmatch|contains|passrate|f1|f1score|bleu|rougel"
    r"|score|reward)|(pass|maj|acc|best)[@^]\d+|\d+shot"
)
"""What a metric of one model's answers, or how they were asked for, is called: that is no model."""
OF_THINGS = re.compile(r"(is|has|uses?|n|num)[\s_.-]+[a-z]", re.IGNORECASE)
"""Beginning of other such names: is_final, use_tools, n_options."""


def rows_of_wide(table: Table, spec: ReadingSpec, *, is_of_models: bool) -> ResponseRows:
    """Make rows of a table with one row a model and one column an item, or the other way round."""
    key, of_columns = ("model_id", "item_id") if is_of_models else ("item_id", "model_id")
    about = {} if is_of_models else {name: spec.column(name) for name in ("scenario", "subscenario")}
    ids, kind, names, found = _ids_and_values(table, spec, key, [*about.values()])
    if not is_of_models and ids.n_unique() < ids.len():
        repeated = table.frame[spec.column("item_id")]
        again = repeated.filter(repeated.is_duplicated()).unique(maintain_order=True).to_list()
        raise DataError(
            f"{table.source}: item_id must be unique in a table of one row an item, got {plural(len(again), 'id')} "
            f"more than once: {shown(again)}.{_if_long(table.frame, spec, 'item_id', [], names)}"
        )
    columns = trimmed(table.source, pl.Series(names, dtype=pl.Categorical), of_columns)  # a table's are unique
    values, errors, rows, across = found.values, found.errors, ids, columns
    if not is_of_models:
        values, errors, rows, across = values.T, None if errors is None else errors.T, columns, ids
    response = shares_of(np.ascontiguousarray(values).ravel(), spec.max_response)
    frame = pl.DataFrame(
        {
            "model_id": rows.gather(np.repeat(np.arange(rows.len()), across.len())),
            "item_id": across.gather(np.tile(np.arange(across.len()), rows.len())),
            "response": response,
        }
    )
    items = names_of(across).to_frame("item_id")
    told = [(name, optional_names(table, column)) for name, column in about.items()]
    items = items.with_columns(one.cast(pl.String).alias(name) for name, one in told if one is not None)
    lost = _lost_in_wide(table, response, errors, is_of_one=rows.n_unique() == 1, spec=spec)
    if lost is not None:
        frame = frame.with_columns(n_errors=pl.Series(lost > 0).cast(pl.Int64), error=pl.Series(lost))
    found_rows = ResponseRows(table.source, frame, names_of(rows).to_frame("model_id"), items, {key: kind})
    problems = row_problems(found_rows, max_response=spec.max_response, has_marks=True)
    if problems:
        raise DataError(f"{table.source}: " + " ".join(problems))
    return found_rows


def _ids_and_values(
    table: Table, spec: ReadingSpec, key: str, about: Sequence[str]
) -> tuple[pl.Series, IdKind | None, list[str], ResponseNumbers]:
    """Ids of the rows and their kind, names of the response columns, and the responses."""
    column = spec.column(key)
    if column not in table.frame.columns:
        raise DataError(
            f"{table.source}: there must be a column {column!r}; there are {shown(table.frame.columns, 12)}. "
            f"If the file calls it something else, add: {how(columns={key: '...'})}"
        )
    problems: list[str] = []
    found_ids = id_column(table, column, problems, name=key)
    others = [name for name in table.frame.columns if name not in {column, *about}]
    if not others:
        problems.append(f"there must be one column of responses at least, got only {shown(table.frame.columns)}.")
        raise DataError(f"{table.source}: " + " ".join(problems))
    may_be_models = key != "item_id" or spec.format != "auto"
    all_models = f"\nIf all are models, add: {remedy(*WIDE_ITEMS)}"
    if not may_be_models and (no_models := _no_models(table.frame, others)):
        raise DataError(
            f"{table.source}: every column but {column} must hold the responses of a model, and some are called "
            f"otherwise.{no_models}{all_models}"
        )
    responses = response_numbers(table.frame[others], spec, table.source)
    known = ~np.isnan(responses.values)
    is_neither = known & (responses.values != 0.0) & (responses.values != spec.max_response)  # right nor wrong
    shares = [others[place] for place in np.flatnonzero(is_neither.any(axis=0)).tolist()]
    answers = (name for name in others if is_called(name, ANSWERS) and max(map(len, others)) > 1)  # x, y, z
    no_answers = [] if may_be_models else [*filter(is_measure, shares), *answers]
    if responses.bad:
        problems.append(_not_responses(table, spec, key, about, responses))
    elif 0 < len(no_answers) < len(others):
        problems.append(
            f"every column but {column} must hold the responses of a model, and some are called as answers, or as "
            f"measures of answers: {shown(no_answers)}.{_how_to_leave_out(no_answers)}{all_models}"
            f"{_how_to_compare_each(table.frame, column, others)}"
        )
    elif unlike := _on_other_scales(responses.values / spec.max_response, others):
        scale = range_advice(responses.values[known], has_marks=True)
        is_inside = ~(responses.values > spec.max_response).any(axis=0)
        inside = [others[place] for place in np.flatnonzero(is_inside).tolist() if not is_measure(others[place])]
        long = _as_long(table.frame, spec, key, others, inside)
        out = "" if long and len(inside) == 1 else _how_to_leave_out([*unlike])
        problems.append(
            f"responses must lie in [0, 1] and on one scale, and {len(unlike)} of {len(others)} columns end elsewhere "
            f"than the rest: {first_few([f'{name!r} at {top:g}' for name, top in unlike.items()])}."
            f"{long}{out}\nIf all columns are on one scale: {scale}"
        )
    elif (
        found_ids is not None
        and (unlike := _on_other_scales(responses.values.T / spec.max_response, found_ids[0]))
        and 2 * len(unlike) < table.frame.height
        and min(unlike.values()) > 1.0
    ):
        problems.append(
            f"responses must lie in [0, 1] and on one scale, and {len(unlike)} of {table.frame.height} rows end "
            f"above the rest: {first_few([f'{name!r} at {top:g}' for name, top in unlike.items()])}. Delete them; "
            f"or, if all rows are on one scale: {range_advice(responses.values[known], has_marks=True)}"
        )
    else:
        is_mostly = 2 * np.count_nonzero(is_neither, axis=0) > np.count_nonzero(known, axis=0)
        mostly = [one for one, own in zip(others, is_mostly, strict=True) if own]
        _warn_of_no_responses(
            *(table.source, others, shares, mostly, key),
            is_told=spec.format != "auto",
            are_rows=found_ids is not None and bool(found_ids[0].is_duplicated().any()),
        )
    names = names_of(found_ids[0]).to_list() if found_ids is not None and spec.format == "auto" else []
    told = (one for one in names if is_called(one, (*HIGHEST, *ANSWERS, *ABOUT_THINGS)) and one != "y")
    odd = is_neither.any(axis=1) | ~(known & (responses.values == 0.0)).any(axis=1)  # no model's right and wrong
    beside = [one for one in told if key == "model_id" and (is_called(one, ANSWERS) or odd[names.index(one)])]
    if 0 < len(beside) < len(names):
        raise DataError(
            f"{table.source}: every row must hold the responses of a model, got {shown(beside)}, which may tell of "
            "items. Delete it, and write shares where marks end at its values; if it is a model, add: "
            + remedy(*WIDE_MODELS)
        )
    if problems or found_ids is None:
        raise DataError(f"{table.source}: " + " ".join(problems))
    return *found_ids, others, responses


def _no_models(frame: pl.DataFrame, others: Sequence[str]) -> str:
    """Say how columns that are called as answers, attempts or responses are read; empty where they may be models."""
    usual = {name for names in NAMES_IN_TURN for name in names["response"]}
    called = [name for name in others if plain_name(name) in usual or METRICS.fullmatch(plain_name(name))]
    taken = called[0] if len(called) == 1 else "..."
    to_take = f" Some are called as responses: {shown(called)}. To take one, add: {how(columns={'response': taken})}"
    to_list = how_to_list(frame.columns) if attempts_of(others) == others else ""
    return how_to_compare(frame) or to_list or to_take * bool(called)


def things_of(names: Sequence[str], key: str, shares: Sequence[str] = (), *, are_rows: bool = False) -> list[str]:
    """Return the columns that by name are what is known of items, or models, or sum them up.

    `shares` have something between 0 and 1; models have several rows if `are_rows`. Flags are beside items or models,
    not among them as functions are.
    """
    usual = (*ABOUT_THINGS, *((*MEANS, *USUAL_NAMES["response"]) if key == "model_id" else ()))
    measures = [name for name in shares if is_measure(name) and not SUMMARIES.search(name)]
    told = [name in measures or is_called(name, usual) for name in names]
    if key == "item_id" or are_rows:  # benchmarks may be called as what models are told apart by
        told = [
            one or kind_of(name) != "unknown" or is_called(name, TIMES) for one, name in zip(told, names, strict=True)
        ]
    are_flags = [OF_THINGS.match(name) is not None for name in names]
    rest = [place for place, one in enumerate(zip(told, are_flags, strict=True)) if not any(one)]
    are_among = any(are_flags[rest[0] : rest[-1]]) if rest else False
    return [name for name, one, flag in zip(names, told, are_flags, strict=True) if one or (flag and not are_among)]


def _warn_of_no_responses(
    source: str,
    names: Sequence[str],
    shares: Sequence[str],
    mostly: Sequence[str],
    key: str,
    *,
    is_told: bool,
    are_rows: bool,
) -> None:
    """Warn of columns that may hold something else: `shares` have some, `mostly` most between 0 and 1.

    Their names say nothing where somebody told the layout.
    """
    summaries = [name for name in shares if key == "model_id" and SUMMARIES.search(name)]
    if len(summaries) > 1:
        warn(
            f"{source}: {shown(summaries)} are called as metrics, and are read as items. If they sum up many items, "
            "bring the results of each item.",
            DataWarning,
        )
    things = [] if is_told else things_of(names, key, shares, are_rows=are_rows)
    if things:
        known, read = ("models", "items") if key == "model_id" else ("items", "models")
        layout = WIDE_MODELS if key == "model_id" else WIDE_ITEMS
        ways = f"add: {how(drop_columns=tuple(things))}; if not, {remedy(*layout)}"
        warn(f"{source}: {shown(things)} may tell of {known}, and count as {read}. If they do, {ways}", DataWarning)
        mostly = [name for name in mostly if name not in things]
    named = re.compile(r"\D.*\.\d+" if key == "model_id" else r".*\D\.\d+")  # qwen2.5 is a model beside qwen2
    twice = [name for name in names if named.fullmatch(name) and name.rpartition(".")[0] in names]
    if twice and not is_told:
        warn(
            f"{source}: {shown(twice)} may be columns whose name came twice, as pandas calls them, and count. "
            f"If they are the same, add: {how(drop_columns=tuple(twice))}",
            DataWarning,
        )
    # items may well be graded where most are not, and so may judges; models are asked the same items
    mostly = [name for name in mostly if "judge" not in map(kind_of, re.split(r"[\W\d_]+", name))]
    if mostly and len(shares) <= (len(names) // 10 if key == "model_id" else (len(names) - 1) // 2):
        warn(
            f"{source}: columns hold right and wrong answers, but {shown(mostly)} mostly something between, which "
            f"counts as responses, too. To leave out what is none: {how(drop_columns=tuple(mostly))}",
            DataWarning,
        )


def _lost_in_wide(
    table: Table, response: FloatArray, errors: IntArray | None, *, is_of_one: bool, spec: ReadingSpec
) -> IntArray | None:
    """Kind of the error of each cell whose attempt was lost, (n_cells,), 0 for others; None where none was lost.

    A cell tells them by a word of an error. An empty cell was not asked, but in a table of one model, whose items were
    all asked; where lost answers are to count, the two must not be confused.
    """
    kind = np.zeros(response.shape, dtype=np.int64) if errors is None else np.ascontiguousarray(errors).ravel()
    is_empty = np.isnan(response) & (kind == 0)
    if is_of_one:
        kind = np.where(is_empty, NO_ANSWER, kind)
    elif errors is None and is_empty.any() and spec.errors in {"wrong", "bounds"}:
        raise DataError(
            f"{table.source}: a wide table must tell lost answers from questions that were not asked, got "
            f"{plural(int(is_empty.sum()), 'empty cell')}. Write 'error' or 'timeout' into the cells whose answer was "
            f"lost, give a long table, or leave {remedy('errors', '--errors')} out."
        )
    return kind if kind.any() else None


def _not_responses(table: Table, spec: ReadingSpec, key: str, about: Sequence[str], responses: ResponseNumbers) -> str:
    """Say which columns of a wide table hold something else than responses, and what may be done about them."""
    column = spec.column(key)
    others = [name for name in table.frame.columns if name not in {column, *about}]
    found = [
        f"{name!r} ({', '.join(map(repr, examples(table.frame[name].filter(mask))))})"
        for name, mask in responses.bad.items()
    ]
    told = [name for name, mask in responses.bad.items() if (mask | table.frame[name].is_null()).all()]
    texts = {name: as_text(table.frame[name].head(1000)).drop_nulls() for name in responses.bad}
    known = {name: [response_of(word) is not None for word in text] for name, text in texts.items()}
    verdicts = [name for name, own in known.items() if 2 * sum(own) > len(own)]
    letters = [name for name in told if texts[name].str.contains(OPTION).all()]
    ids, scenario = table.frame[column].drop_nulls(), ""
    names_model = key == "item_id" and any(plain_name(name) in USUAL_NAMES["model_id"] for name in others)
    if 2 * ids.n_unique() <= ids.len() or (names_model and ids.is_duplicated().any()):
        advice = _if_long(table.frame, spec, key, told, others)
    elif key == "model_id" and 2 * len(letters) > len(others):
        advice = (
            f" {shown(letters)} hold letters. If they were answered, write 1 where the letter is right and 0 elsewhere."
        )
    elif verdicts and (rest := [name for name in others if name not in verdicts]):
        advice = f" {shown(verdicts)} say in words what is right.{_how_to_leave_out(rest)}"
    elif not (advice := _how_to_compare_each(table.frame, column, others) if key == "item_id" else ""):
        scenario = "" if verdicts else _scenario_advice(table, responses, about)
        advice = _how_to_leave_out(told) if 0 < len(told) < len(others) else responses.advice
    kept, word = ", ".join(name for name in (column, *about) if name), "an item" if key == "model_id" else "a model"
    is_share = any(re.search(r"\d\s*%'", text) for text in found)
    signs = " Percent signs are read where all responses have one." if is_share else ""
    return (
        f"every column{f' but {kept}' * bool(kept)} must hold the responses of {word}, got {len(found)} that "
        f"hold something else: {first_few(found)}.{signs}{scenario}{advice.lstrip() if scenario else advice}"
    )


FEW_ROWS = 3
OPTION = r"^\s*[A-Za-z]\s*$"


def _on_other_scales(values: FloatArray, names: Sequence[str] | pl.Series) -> dict[str, float]:
    """Return the columns of (n_rows, n_columns) that mostly leave [0, 1] unlike most others, and where they end."""
    with np.errstate(invalid="ignore"):
        outside = np.count_nonzero((values < 0.0) | (values > 1.0), axis=0)
    is_far = 2 * outside > np.count_nonzero(~np.isnan(values), axis=0)
    if not is_far.any():
        return {}
    tops = np.max(np.where(np.isnan(values), -np.inf, values), axis=0)
    scales = np.where(is_far, np.where(tops > 1.0, np.searchsorted([1.0, 10.0, 100.0], tops), 4), 0)
    is_unlike = scales != np.bincount(scales).argmax()
    lows = np.min(np.where(np.isnan(values), np.inf, values), axis=0)
    is_unlike &= is_far | (lows < 1.0) | (lows[~is_unlike].min() < 1.0)  # of marks from 1 an item may have 1 alone
    unlike = np.flatnonzero(is_unlike & ~np.isin(tops, tops[~is_unlike]))  # easy and hard items of one scale end alike
    if len(values) < FEW_ROWS and 2 * unlike.size >= len(names):  # then a mark may be 1 by chance
        return {}
    return {names[place]: float(tops[place]) for place in unlike.tolist()}


def how_to_compare(frame: pl.DataFrame) -> str:
    """Say how answers are compared with what is right where one column of each is called so; empty where none is.

    Most answers must be among the right ones: of others, such as texts, each would be wrong.
    """
    columns = frame.columns
    found = [[name for name in columns if is_called(name, usual)] for usual in (RIGHT_ANSWERS, GIVEN_ANSWERS)]
    answers = [name for name in columns if is_called(name, ("answer",))]
    right, given = (own or answers for own in found)
    has_response = any(plain_name(name) in USUAL_NAMES["response"] for name in columns)
    if has_response or not len(right) == len(given) == 1 or right == given:
        return ""
    texts = [as_text(frame[own[0]]) for own in (given, right)]
    numbers = [text.cast(pl.Float64, strict=False) for text in texts]
    if _are_among(*texts):
        both = [jq_key(own[0]) for own in (given, right)]
    elif _are_among(*numbers) and not any(own.null_count() for own in numbers):  # 1 and 1.0
        both = [f"({jq_key(own[0])} | tonumber)" for own in (given, right)]
    else:
        return ""
    row = row_program(columns)
    program = row.replace("response: ...", f"response: ({' == '.join(both)})")
    if program == row:  # a column with dots in its name is called as a response
        return f" To read the rows, add: {how(jq=program)}"
    return f" To compare {given[0]!r} with {right[0]!r}, add: {how(jq=program)}"


def _how_to_compare_each(frame: pl.DataFrame, ids: str, others: Sequence[str]) -> str:
    """Say how the answers of many models are compared with the one column of right ones; empty if they may be none."""
    right = [name for name in others if is_called(name, RIGHT_ANSWERS)]
    if len(right) != 1:
        return ""
    texts = {name: as_text(frame[name]) for name in others}
    given = [name for name in others if name != right[0] and _are_among(texts[name], texts[right[0]])]
    if not given:
        return ""
    key, each = jq_key(right[0]), " or ".join(f".key == {json.dumps(one)}" for one in given)
    if len(given) > 5:
        each = " and ".join(f".key != {json.dumps(one)}" for one in frame.columns if one not in given)
    row = f"{{model_id: .key, item_id: $row{jq_key(ids)}, response: (.value == $row{key})}}"
    program = f". as $row | to_entries[] | select({each}) | {row}"
    return f"\nIf the others are answers to compare with {right[0]!r}, add: {how(jq=program)}"


def _are_among(answers: pl.Series, right: pl.Series) -> bool:
    return 2 * int(answers.is_in(right.drop_nulls().unique().implode()).sum()) > answers.count()


def how_to_list(columns: Sequence[str]) -> str:
    """Say how columns that are one attempt each are read as such; empty where there are none."""
    attempts = attempts_of(columns)
    row = row_program([name for name in columns if name not in attempts])
    program = row.replace("response: ...", f"response: [{', '.join(map(jq_key, attempts))}]")
    return f" To read {shown(attempts)} as attempts, add: {how(jq=program, repeats='count')}" if attempts else ""


def _if_long(frame: pl.DataFrame, spec: ReadingSpec, key: str, told: Sequence[str], others: Sequence[str]) -> str:
    """Say how a table in which models, or items, come again and again is read as a long one.

    Or how another column goes before their ids, where it tells them apart and there are several responses.
    """
    other, word = ("item_id", "Models") if key == "model_id" else ("model_id", "Items")
    usual = [name for name in others if plain_name(name) in USUAL_NAMES[other]]
    usual = usual or [name for name in others if other == "model_id" and may_name_model(name)]
    rest = [name for name in others if name not in told and not is_measure(name)]
    first, response = (some[0] if len(some) == 1 else "..." for some in (usual or told, rest))
    ids, scenario = spec.column(key), spec.column("scenario")
    beside = [scenario] if key == "item_id" and scenario in frame.columns else [] if usual or len(told) > 1 else told
    may = ("agent", "unknown") if key == "model_id" else ("task", "version", "unknown")
    beside = [name for name in beside if kind_of(name) in may] if len(rest) > 1 else []
    beside = [name for name in beside if name == scenario or as_text(frame[name]).str.contains(r"\p{L}").any()]
    apart = [name for name in beside if frame[[name, ids]].is_unique().all()]
    joined = "".join(f"\nIf {one!r} tells them apart, add: {how(columns={key: f'{one}+{ids}'})}" for one in apart)
    alone = how(columns={other: first, **(counts_of(others) or {"response": response})})
    listed = how_to_list(frame.columns).replace(" ", "\n", 1)
    return f" {word} have several rows. If a row is one response, add: {alone}{joined}{listed}"


def _as_long(frame: pl.DataFrame, spec: ReadingSpec, key: str, others: Sequence[str], inside: Sequence[str]) -> str:
    """Say how a table is read as a long one, if a column numbers the rows of each model; empty if none does.

    `inside` are the columns that have responses, as far as names and numbers tell.
    """
    ids = spec.column(key)
    if not inside or 2 * frame[ids].n_unique() > frame.height:
        return ""
    n_values = {name: frame[name].n_unique() for name in others if name not in inside}
    few = [name for name, n in n_values.items() if 2 * n <= frame.height and frame[[name, ids]].is_unique().all()]
    first = min(few, key=n_values.__getitem__, default="")
    return _if_long(frame, spec, key, [first], [first, *inside]) if first else ""


def _how_to_leave_out(columns: Sequence[str]) -> str:
    """Say how columns that hold no responses are left out of a wide table."""
    tables = remedy("models=..., items=...", "--models, --items")
    return (
        f" To leave these out, add: {how(drop_columns=tuple(columns))}\nWhat is known of "
        f"models and items belongs into tables of their own ({tables})."
    )


def _scenario_advice(table: Table, responses: ResponseNumbers, about: Sequence[str]) -> str:
    """Name a column of words that come again and again, which may be the items' scenario where none is told."""
    if not about or about[0] in table.frame.columns:
        return ""
    texts = {name: as_text(table.frame[name]) for name in responses.bad}  # lists of some kinds cannot be counted
    words = [name for name, text in texts.items() if text.str.contains(r"\p{L}").any()]
    others = [name for name in words if not (is_called(name, ANSWERS) or "model" in plain_name(name))]
    alike = [name for name in others if 2 * texts[name].n_unique() <= table.frame.height]
    if not 0 < 2 * len(alike) <= table.frame.width:
        return ""
    return f" If {alike[0]!r} is the scenario of an item, add: {how(columns={'scenario': alike[0]})}\n"
