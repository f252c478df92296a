# simple-evals: EVAL_MODEL_DATE_TIME_allresults.json of HealthBench, the one eval whose answers have ids.
# HealthBench cuts its mean off at 0; here every score is cut off.
.metadata.example_level_metadata[] | {
  model_id: ($stem | capture("^healthbench_((hard|consensus|meta)_)?(?<model>.+?)_\\d{8}_\\d{6}").model), item_id: .prompt_id,
  response: [.score | numbers | [., 0] | max][0]
}
