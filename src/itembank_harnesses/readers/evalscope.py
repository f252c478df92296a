"""Output of EvalScope: ``reviews/<model>/<dataset>_<subset>.jsonl``, of old releases and new ones.

Lines are in the order in which answers came, so items are told by their index; where old releases wrote none, by a
digest of the question. Tokens and seconds are those of ``predictions/`` in new releases.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from itembank.errors import DataError
from itembank.progress import ProgressCallback, silent
from itembank.readers.json_files import Record, each_record, listed, mapping
from itembank.readers.reading_specs import ReadingSpec
from itembank.readers.rows import ResponseRows, content_digest
from itembank_harnesses.readers.indented import read_indented
from itembank_harnesses.readers.logged import LoggedAnswer, LogKind, harness_rows
from itembank_harnesses.readers.runs import Run, SampleFile

KIND = LogKind("EvalScope reviews", "prompt and target", source="evalscope")
METRIC, OLD_METRIC = "acc", "result"
"""What releases since 1.0 call the metric of right and wrong answers, and where older ones keep it."""
WITH_UNDERSCORE = (
    *("a_okvqa", "aa_lcr", "air_bench_chat", "air_bench_foundation", "alpaca_eval", "arc_agi_2", "arena_hard"),
    *("bfcl_v3", "bfcl_v4", "bigcodebench_hard", "biomix_qa", "chinese_simpleqa", "cl_bench", "coin_flip"),
    *("commonsense_qa", "competition_math", "count_qa", "data_collection", "eq_bench", "general_fc", "general_mcq"),
    *("general_qa", "general_vqa", "gpqa_diamond", "hallusion_bench", "health_bench", "humaneval_plus"),
    *("imo_answerbench", "live_code_bench", "logi_qa", "longbench_v2", "maritime_bench", "math_500", "math_qa"),
    *("math_verse", "math_vision", "math_vista", "mbpp_plus", "med_mcqa", "minerva_math", "mm_bench", "mm_star"),
    *("mmlu_pro", "mmlu_redux", "mmmu_pro", "mri_mcqa", "multi_if", "multiple_humaneval", "multiple_mbpp"),
    *("music_trivia", "needle_haystack", "ocr_bench", "ocr_bench_v2", "olympiad_bench", "openai_mrcr", "poly_math"),
    *("process_bench", "real_world_qa", "science_qa", "simple_qa", "simple_vqa", "super_gpqa", "swe_bench_lite"),
    *("swe_bench_pro", "swe_bench_verified", "swe_bench_verified_mini", "tau2_bench", "tau_bench", "tool_bench"),
    *("trivia_qa", "truthful_qa", "wide_search"),
)
"""Data sets of EvalScope whose own names hold what comes between the names of data set and subset."""
SCORED = (None, "success", "fallback")
"""What the status of a score says when it is one."""


def is_evalscope(record: Record) -> bool:
    """Whether an object is a review."""
    return isinstance(record.get("sample_score"), dict) or ("review_id" in record and "choices" in record)


def evalscope_rows(paths: Sequence[Path], spec: ReadingSpec, *, progress: ProgressCallback = silent) -> ResponseRows:
    """Read output folders of EvalScope, or files of their ``reviews``."""
    names = []
    for asked in spec.metric:  # releases since 1.0 have another name for one of them
        task, equals, name = asked.rpartition("=")
        names += [asked, f"{task}{equals}{METRIC}"] if name == OLD_METRIC else [asked]
    spec = replace(spec, metric=tuple(dict.fromkeys(names)))
    return harness_rows(KIND, _file, _answers, paths, spec, progress=progress)


def _file(path: Path, spec: ReadingSpec) -> SampleFile:
    """Tell task, dataset and model of a file."""
    model, task, outputs = path.parent.name, path.stem, path.parents[2] if len(path.parents) > 2 else path.parent
    # the data set of <dataset>_<subset> is one of the reports, else of the configuration, else told by the name
    reported = [one.stem for one in (outputs / "reports" / model).glob("*.json")]
    if not reported:
        settings = [read_indented(one).get("dataset_args") for one in sorted(outputs.glob("configs/task_config*.yaml"))]
        reported = [name for one in settings for name in mapping(one)]
    known = [name for name in (*reported, *WITH_UNDERSCORE) if task == name or task.startswith(name + "_")]
    run = Run(model_name=model, groups={task: max(known, key=len, default=task.partition("_")[0])})
    return SampleFile(path, task, "", run, spec.model_id or model)


def _answers(file: SampleFile) -> Iterator[LoggedAnswer]:
    predictions = _predictions(file.path)
    rest = dict(predictions)
    for record in each_record(file.path):
        if not is_evalscope(record):
            raise DataError(f"{file.path}: every line must be a review with a score, got one without.")
        if "sample_score" not in record:
            yield from _old(record)
            rest.clear()
            continue
        for one in _new(record, predictions):
            yield one
            rest.pop(str(record.get("index")), None)
            if one.document != str(record.get("index")):  # of repeated ones predictions do not tell the item
                rest.clear()
    # with ignore_errors there is no review of an answer that could not be judged
    for index, one in rest.items():
        yield replace(one, document=index, attempt=index, error=one.error or "judge: no review")


def _new(record: Record, predictions: dict[str, LoggedAnswer]) -> Iterator[LoggedAnswer]:
    """Give the answer of a review since 1.0."""
    sample = mapping(record["sample_score"])
    score, index = mapping(sample.get("score")), record.get("index")
    group = sample.get("group_id")
    asked = [
        one.get("content") for one in map(mapping, listed(record.get("messages"))) if one.get("role") != "assistant"
    ]
    values, status = mapping(score.get("value")), score.get("status")
    predicted = predictions.get(str(index))
    yield LoggedAnswer(
        str(index if group is None else group),
        values,
        content_digest(asked, record.get("target")),
        str(sample.get("generation_index", index)),
        predicted.costs if predicted else {},
        error=(predicted.error if predicted else "") or ("" if values and status in SCORED else f"judge: {status}"),
    )


def _old(record: Record) -> Iterator[LoggedAnswer]:
    """Give the answers of a review before 1.0, one a choice; one without a choice is lost."""
    question = record.get("raw_input") or record.get("origin_prompt")
    content = content_digest(question)
    usage = mapping(record.get("usage"))
    tokens = {"input_tokens": usage.get("prompt_tokens"), "output_tokens": usage.get("completion_tokens")}
    for number, choice in enumerate(listed(record.get("choices")) or [{}]):
        value = mapping(mapping(choice).get("review")).get("result")
        metrics = value if isinstance(value, dict) else {METRIC: value}
        document = str(record["index"]) if "index" in record else content[:12]
        error = "" if value is not None else "judge" if choice else "no answer"
        yield LoggedAnswer(document, metrics, content, str(number), tokens, error)


def _predictions(path: Path) -> dict[str, LoggedAnswer]:
    """Costs and errors of each index, of the file of predictions that belongs to one of reviews."""
    beside = path.parents[2] / "predictions" / path.parent.name / path.name if len(path.parents) > 2 else path
    if beside == path or not beside.is_file():
        return {}
    found = {}
    for record in each_record(beside):
        output = mapping(record.get("model_output"))
        usage = mapping(output.get("usage"))
        costs = {unit: usage.get(unit) for unit in ("input_tokens", "output_tokens")}
        found[str(record.get("index"))] = LoggedAnswer(
            "", {}, costs={**costs, "seconds": output.get("time")}, error=str(output.get("error") or "")
        )
    return found
