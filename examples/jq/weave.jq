# W&B Weave, exported calls (JSON Lines); a model is its name with the digest of its version
select(.op_name | contains("Evaluation.predict_and_score")) | {
  model_id: (.inputs.model | split("/")[-1]), item_id: (.inputs.example | split("/")[-1]),
  response: .output.scores.exact_match, error: .exception, seconds: .output.model_latency
}
