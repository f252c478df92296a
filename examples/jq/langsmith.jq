# LangSmith's runs, a line each; a run without feedback is a lost answer
select(.reference_example_id) | {
  model_id: .session_name, item_id: .reference_example_id,
  response: .feedback_stats.correctness.avg, error,
  input_tokens: .prompt_tokens, output_tokens: .completion_tokens, seconds: .latency
}
