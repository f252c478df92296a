"""Results of promptfoo: ``promptfoo eval -o results.json``, a file of all providers; in ``.jsonl``, a line a result."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from itembank.readers.collecting import laid_out
from itembank.readers.json_files import Record, each_record, listed, mapping
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import content_digest
from itembank.responses.error_kinds import is_error_word, is_of_run
from itembank_harnesses.readers.trials import mean_cost

RESULTS = {"testIdx", "success", "failureReason"}, {"provider", "success", "vars", "latencyMs"}
"""Keys of a result, now and before the end of 2024."""
OF_THE_RUN = ("_conversation", "sessionId")
"""Variables that promptfoo adds while a test runs, and that say nothing of what it asks."""


def is_promptfoo(record: Record) -> bool:
    """Whether an object is a result of promptfoo, or the file of all."""
    first = next(iter(_results(record)), None)
    return isinstance(first, dict) and any(first.keys() >= keys for keys in RESULTS)


def _results(record: Record) -> list[Any]:
    """Results in an object: those of a whole evaluation, or the object itself."""
    if "results" not in record:
        return [record]
    found = record["results"]
    return listed(found if isinstance(found, list) else mapping(found).get("results"))


def promptfoo_answers(file: Path, _spec: ReadingSpec) -> Iterator[Record]:
    """Give results: a model is a provider (with its prompt, where it has several), an item a test of the suite."""
    found, run = [], ""
    for record in each_record(file):
        found += _results(record)
        run = run or str(record.get("evalId") or "")
    with laid_out(file, "results of promptfoo"):
        numbers, is_repeated = _numbers(found)
        # columns of promptfoo's table, by provider and prompt: of two settings of one provider each has its own
        columns: dict[str, dict[str, set[Any]]] = {}
        for one in found:
            columns.setdefault(_provider(one), {}).setdefault(_prompt(one), set()).add(one.get("promptIdx"))
        for one in found:
            name, prompt, tokens = _provider(one), _prompt(one), mapping(mapping(one.get("response")).get("tokenUsage"))
            parts = [name, *([prompt] if len(columns[name]) > 1 else [])]
            parts += [f"#{one['promptIdx']}"] if len(columns[name][prompt]) > 1 else []
            latency = mean_cost([one.get("latencyMs")])
            error, digest = _error(one), content_digest(_asked(one)) if "vars" in one else None
            yield {
                "model_id": " + ".join(parts),
                "item_id": str(numbers.get(one.get("testIdx"), digest)),
                "response": None if error else float(bool(one["success"])),
                "error": error,
                "seed": f"{run} {one.get('testIdx')}" if is_repeated else one.get("repeatIndex"),
                "cost_usd": mean_cost([one.get("cost")]),
                "seconds": None if latency is None else latency / 1000.0,
                "input_tokens": mean_cost([tokens.get("prompt")]),
                "output_tokens": mean_cost([tokens.get("completion")]),
                "content_hash": digest,
            }


def _asked(told: Record) -> Record:
    """Variables of a test, or of a result, without those of the run."""
    return {key: value for key, value in mapping(told.get("vars")).items() if key not in OF_THE_RUN}


def _numbers(results: Sequence[Record]) -> tuple[dict[int, int], bool]:
    """Return the number of the test of each index, and whether tests come again, as `promptfoo eval --repeat` does it.

    Each time has an index of its own; a test is told by its variables and assertions. Those that come again leave no
    gap, so that a test has the same number with and without repeats.
    """
    tests: dict[str, int] = {}
    numbers: dict[int, int] = {}
    for index, one in sorted({one["testIdx"]: one for one in results if "testIdx" in one}.items()):
        test = mapping(one.get("testCase"))
        key = content_digest(_asked(test), test.get("assert"), test.get("description")) if test else str(index)
        numbers[index] = tests.setdefault(key, index - len(numbers) + len(tests))
    return numbers, len(tests) < len(numbers)


def _error(result: Record) -> str | None:
    """Return the error that a result ended in, of the provider or of all graders that did not say yes; else None."""
    if result["success"]:
        return None
    graded, text = mapping(result.get("gradingResult")), str(result.get("error") or "error")
    looks_so = not graded and (is_error_word(text) or is_of_run(text))
    asserted, error = 1, 2  # an assertion that does not hold, or an error of the provider, which is no wrong answer
    if result.get("failureReason", error if looks_so else asserted) == error:
        return text
    parts = [mapping(one) for one in listed(graded.get("componentResults"))] or [graded]
    failed = [one for one in parts if not one.get("pass")]
    return "judge" if failed and all(mapping(one.get("metadata")).get("graderError") for one in failed) else None


def _prompt(result: Record) -> str:
    """Name of a prompt: its label, else its number."""
    return str(mapping(result.get("prompt")).get("label") or f"prompt {result.get('promptIdx')}")


def _provider(result: Record) -> str:
    """Name of a provider: its label, else its id."""
    told = result.get("provider")
    return str(told.get("label") or told["id"]) if isinstance(told, dict) else str(told)
