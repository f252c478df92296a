# DeepEval: one metric by its name, which may end in [GEval]; a case that was not scored is a lost answer
(.testRunData // .) | (.hyperparameters.model // $stem) as $model | .testCases[] |
  {model_id: $model, item_id: .name} +
  (first(.metricsData[]? | select(.name | startswith("Correctness"))) // {} | {response: .score, error, judge: .evaluationModel})
