"""The harness's own command in this process: what it is called with, and what it must not be told."""

import contextlib
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from itembank.errors import DataError, ParameterError
from itembank.files.atomic import adding_files
from itembank.responses.secrets import is_secret, without_secrets
from itembank.spreadsheets import is_number
from itembank_harnesses.readers.lm_eval_files import name_in

OURS = "the items come from the bank"
PLACE = "-o says where logs go"
OWNED: Mapping[str, str] = {
    "--samples": f"{OURS}; and lm_eval would draw other few-shot examples for them",
    "--limit": OURS,
    "--log_samples": "samples are always logged",
    "--output_path": PLACE,
    "--predict_only": "without metrics there is nothing to estimate from",
}
"""Arguments of lm_eval that a run of ours decides, and why."""
SHORT = {"-E": "--samples", "-L": "--limit", "-s": "--log_samples", "-o": "--output_path", "-x": "--predict_only"}
SHORT_OTHERS = {"-m": "--model", "-a": "--model_args", "-t": "--tasks", "-f": "--num_fewshot", "-C": "--config"}
OTHER_COMMANDS = ("ls", "validate")
USUAL_SEED = 1234
"""Of few-shot examples, where the harness is told no other."""
NO_MODEL = "dummy"
"""A model of the harness that is made at once and asks for nothing."""
HOW_IT_RUNS = frozenset(
    (
        *("batch_size", "max_batch_size", "device", "device_map", "device_map_option", "parallelize", "offload_folder"),
        *("max_memory_per_gpu", "max_cpu_memory", "gpus", "cache_dir", "token", "base_url", "num_concurrent"),
        *("max_retries", "timeout", "header", "verify_certificate", "ca_cert_path", "tensor_parallel_size"),
        *("data_parallel_size", "pipeline_parallel_size", "gpu_memory_utilization", "swap_space", "max_num_seqs"),
        *("max_num_batched_tokens", "enforce_eager", "tp_size", "dp_size", "mem_fraction_static"),
        "distributed_executor_backend",
    )
)
"""Of --model_args: where and how fast a model runs. What it answers depends on the others."""
OF_TEMPLATES = ("--apply_chat_template", "--fewshot_as_multiturn")


@dataclass(frozen=True, slots=True)
class HarnessCall:
    """Arguments of the harness's command."""

    arguments: tuple[str, ...]

    @classmethod
    def of(cls, arguments: Sequence[str]) -> Self:
        """Check what comes after the two dashes."""
        given = list(arguments)
        if given[:1] == ["run"]:
            given = given[1:]
        if given and given[0] in OTHER_COMMANDS:
            raise ParameterError(f"lm_eval must be called with the arguments of its command run, got {given[0]!r}.")
        for argument in given:
            word = argument.partition("=")[0]  # which may be shortened
            owned = SHORT.get(word[:2], "")
            if word.startswith("--"):
                owned = next((one for one in OWNED if len(word) > 3 and one.startswith(word)), "")
            if owned:
                raise ParameterError(f"{owned} must be left out after the two dashes (--): {OWNED[owned]}.")
        return cls(tuple(given))

    def _by_owner(self) -> Iterator[tuple[str, str]]:
        """Each word of the call with the argument that it is, or is a value of."""
        owner = ""
        for word in self.arguments:
            if word.startswith("-") and not is_number(word):
                owner = word.partition("=")[0]
                owner = SHORT_OTHERS.get(owner, owner)
            yield owner, word

    def values(self, name: str) -> list[str]:
        """Return what was given for an argument; nothing where it is absent or alone."""
        found: list[str] = []
        for word in (word for owner, word in self._by_owner() if owner == name):
            start, equals, value = word.partition("=")
            is_name = start == name or SHORT_OTHERS.get(start) == name
            found += [word] if not is_name else [value] if equals else []
        return found

    def has(self, name: str) -> bool:
        """Whether an argument was given."""
        words = {SHORT_OTHERS.get(word, word) for word in (argument.partition("=")[0] for argument in self.arguments)}
        return name in words or any("_" in word and name.startswith(word) for word in words if word[:2] == "--")

    def without(self, *names: str) -> Self:
        """Return the call without these arguments and their values."""
        return type(self)(tuple(word for owner, word in self._by_owner() if owner not in names))

    def with_more(self, *arguments: str) -> Self:
        """Return the call with more arguments."""
        return type(self)((*self.arguments, *arguments))

    def without_model(self) -> Self:
        """Return a call that builds the same requests, chat templates apart, and makes no model."""
        return self.without("--model", *OF_TEMPLATES).with_more("--model", NO_MODEL)

    @property
    def model_id(self) -> str:
        """Id of the model as its logs will say it; empty where the arguments do not tell."""
        named = self._named("--model_args")
        return without_secrets(name_in(",".join(f"{key}={value}" for key, value in named.items())))

    @property
    def fewshot_seed(self) -> int | None:
        """Seed of few-shot examples; None where a file or the word None says it."""
        if self.has("--config") and not self.has("--seed"):
            return None
        seeds = ",".join(self.values("--seed") or [str(USUAL_SEED)]).split(",")
        seed = seeds[0] if len(seeds) == 1 else seeds[3] if len(seeds) > 3 else str(USUAL_SEED)
        return int(seed) if seed.strip().isdecimal() else None

    def as_of(self, arguments: Mapping[str, Any]) -> Self:
        """Return the call with these arguments of `simple_evaluate`, as `arguments_of` a bank; what is given stays."""
        more: list[str] = []
        if "apply_chat_template" in arguments:
            more += ["--apply_chat_template"] * (not self.has("--apply_chat_template"))
        if "fewshot_as_multiturn" in arguments and not self.has("--fewshot_as_multiturn"):
            more += ["--fewshot_as_multiturn", *([] if arguments["fewshot_as_multiturn"] else ["false"])]
        if "fewshot_random_seed" in arguments and not self.has("--seed"):
            more += ["--seed", f"0,1234,1234,{arguments['fewshot_random_seed']}"]
        return self if self.has("--config") else self.with_more(*more)

    @property
    def answering(self) -> dict[str, str]:
        """What answers depend on besides prompts: the model, and how it generates; in whatever order it was given."""
        named = self._named("--model_args")
        about = {name: value for name, value in named.items() if name not in HOW_IT_RUNS and not is_secret(name)}
        about |= {f"--gen_kwargs {name}": value for name, value in self._named("--gen_kwargs").items()}
        return {name: " ".join(self.values(name)) for name in ("--model", "--config") if self.has(name)} | about

    def _named(self, argument: str) -> dict[str, str]:
        """Return the values by name of an argument that is given as name=value,... or as JSON."""
        given = " ".join(self.values(argument))
        try:
            named = json.loads(given)
        except ValueError:
            named = dict(part.split("=", 1) for part in ",".join(given.split()).split(",") if "=" in part)
        return {str(name): str(value) for name, value in named.items()} if isinstance(named, dict) else {}


def run_command(
    call: HarnessCall,
    *,
    output: Path | None,  # Where it writes its logs; None writes none
    plugin: str | None = None,  # A module to import first, which registers a model; or its file
) -> None:
    """Run the harness's command in this process; what it prints on standard output goes to standard error."""
    from lm_eval.__main__ import cli_evaluate  # noqa: PLC0415

    if plugin is not None:
        importlib.import_module("lm_eval.models")  # which the harness does only while no model is registered
        import_plugin(plugin)
    # results come last, since they say that all samples are there
    with contextlib.nullcontext() if output is None else adding_files(output, last="results_") as folder:
        logged = () if folder is None else ("--output_path", str(folder), "--log_samples")
        kept, sys.argv = sys.argv, ["lm_eval", *call.arguments, *logged]
        try:
            with contextlib.redirect_stdout(sys.stderr):
                cli_evaluate()
        finally:
            sys.argv = kept


def import_plugin(name: str) -> None:
    """Import a module that registers models, by its name or its file; `DataError` says why it cannot be."""
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise DataError(f"{name}: there is no such file to import.")
        name = path.stem
        sys.path.append(str(path.parent.resolve()))
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise DataError(
            f"the module {name!r} cannot be imported: {error}. Give its file (--import FILE.py), or its name with its "
            "folder on PYTHONPATH."
        ) from error
