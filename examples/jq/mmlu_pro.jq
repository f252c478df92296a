# MMLU-Pro's eval_results: a list of questions with `pred`, a file a model
.[] | {
  model_id: $stem, item_id: .question_id, scenario: .category,
  response: (.pred == .answer), content: {question, options, answer}
}
