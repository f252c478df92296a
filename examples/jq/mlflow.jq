# MLflow: a list of columns and one of rows; a model is a run, whose folder has artifacts/; judges' marks of 1 to 5
($file | split("/") - ["artifacts"] | .[-2] // $folder) as $run |
  .columns as $names | .data[] | [$names, .] | transpose | map({key: .[0], value: .[1]}) | from_entries |
  {model_id: $run, item_id: .inputs, response: [."answer_correctness/v1/score" | numbers | (. - 1) / 4][0]}
