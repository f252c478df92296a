# Tables of W&B: a list of columns and one of rows
.columns as $names | .data[] | [$names, .] | transpose | map({key: .[0], value: .[1]}) | from_entries |
  {model_id: .model, item_id: .question_id, response: .correct, error}
