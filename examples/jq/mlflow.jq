# MLflow: a list of columns and one of rows, in a folder a run; judges' marks of 1 to 5
.columns as $names | .data[] | [$names, .] | transpose | map({key: .[0], value: .[1]}) | from_entries |
  {model_id: $folder, item_id: .inputs, response: [."answer_correctness/v1/score" | numbers | (. - 1) / 4][0]}
