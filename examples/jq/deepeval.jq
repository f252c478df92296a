# DeepEval: one metric by its name; a case that was not scored is a lost answer
(.testRunData // .) | (.hyperparameters.model // $stem) as $model | .testCases[] |
  {model_id: $model, item_id: .name} +
  (first(.metricsData[]? | select(.name == "Correctness")) // {} | {response: .score, error, judge: .evaluationModel})
