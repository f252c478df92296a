# promptfoo's scores in place of pass and fail; `promptIdx` numbers pairs of provider and prompt
.results.results[] | {
  model_id: "\(.provider.id) + prompt \(.promptIdx)", item_id: .testIdx,
  response: (if .failureReason == 2 then null else .score end), error: (.failureReason == 2)
}
