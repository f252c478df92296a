"""Names as leaderboards write them, paired by hand."""

import pytest

from itembank.readers.model_names import ModelName, likeness


def alike(one, other):
    return likeness(ModelName.of(one), ModelName.of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("meta-llama_Meta-Llama-3-8B-Instruct", "LLama3-8b-Ins"),
        ("meta-llama/Llama-3.1-70B-Instruct", "Meta-Llama-3.1-70B-Instruct"),
        ("claude-3-5-sonnet-20240620", "Claude-3.5-Sonnet-20240620"),
        ("anthropic/claude-3.7-sonnet:thinking", "Claude-3.7-Sonnet (Thinking)"),
        ("gpt4_1106_preview", "gpt-4-1106-preview"),
        ("gpt-4o-2024-05-13", "GPT-4O-20240513"),
        ("databricks-dbrx-instruct", "DBRX-Ins"),
        ("command-r-plus", "Command-R+"),
        ("gemini-1.5-flash-002", "Gemini-Flash-1.5-002"),
        ("openai/o4-mini (medium)", "O4-Mini (Med)"),
        ("QwQ-32B-Preview (N=1)", "qwen/qwq-32b-preview"),
        ("Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-0.1"),
        ("google/gemma-2-9b-it", "gemma-2-9b-instruct"),
        ("mistral-large-2407", "Mistral-Large-2024-07-24"),  # a month, and a day in it
    ],
)
def test_names_that_differ_only_in_how_they_are_written(one, other):
    found = alike(one, other)
    assert (found.score, found.differs) == (1.0, "")


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ("claude-3-opus-20240229", "Claude-3-Opus", "date"),
        ("gpt-4o-2024-05-13-FC", "GPT-4O-2024-05-13", "fc"),
        ("Meta-Llama-3-8B", "LLama3-8b-Ins", "instruct"),  # a base model and its tuned one are two
        ("Mixtral-8x7B-v0.1", "TheBloke/Mixtral-8x7B-v0.1-GPTQ", "gptq"),
        ("LLama3.1-405b-Ins-FP8", "meta-llama/llama-3.1-405b-instruct", "fp8"),
        ("Llama-3-8B-Instruct-Q4_K_M", "Llama-3-8B-Instruct", "q4_k_m"),
        ("gpt-4o-mini", "gpt-4o", "mini"),
        ("command-r", "command-r-plus", "plus"),
        ("O3-Mini-2025-01-31 (High)", "openai/o3-mini", "high date"),
        ("Llama-2-7b-hf", "Llama-3-7b", "2 3 hf"),
    ],
)
def test_names_that_may_be_two_models_are_never_sure(one, other, differs):
    found = alike(one, other)
    assert 0.0 < found.score < 1.0
    assert found.differs == differs
    assert found == alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Qwen2.5-7B-Instruct", "Qwen2.5-72B-Instruct"),
        ("gpt-4-0613", "gpt-4-1106"),
        ("Claude-3.5-Sonnet-20240620", "Claude-3.5-Sonnet-20241022"),
        ("mistral-large-2402", "mistral-large-2407"),
    ],
)
def test_other_sizes_and_dates_are_other_models(one, other):
    assert alike(one, other).score == 0.0


def test_a_name_of_nothing_but_its_maker_keeps_it():
    assert ModelName.of("openai").words == {"openai"}
    assert alike("openai", "google").score == 0.0
