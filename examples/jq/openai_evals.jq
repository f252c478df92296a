# OpenAI's evals write events: `match` and `error` end a sample, and the first line names the model
select(.type == "match" or .type == "error") | {
  model_id: $first.spec.completion_fns[0], scenario: $first.spec.base_eval, item_id: .sample_id,
  response: .data.correct, error: (if .type == "error" then .data.type else null end)
}
