"""The keys of every JSON output of the command line: their meaning, described once, and the outputs that have them.

`scripts/make_cli_reference.py` makes a page of it, terminals and `print` show scores in points by it, and a test compares
it with what commands print.
"""

from dataclasses import dataclass
from functools import cache

UNITS = {
    "score": "a score, an error or the width of an interval, from 0 to 1; a terminal shows points from 0 to 100",
    "difference": "a difference of scores, from -1 to 1; a terminal shows points with their sign",
    "share": "a share or a probability, from 0 to 1",
    "count": "a whole number, or the mean of such",
    "number": "any other number",
    "ability": "on the scale of abilities, which have mean 0 and standard deviation 1 over past models",
    "cost": "an amount in the unit of the cost: tokens, seconds, dollars",
    "flop": "training compute in floating-point operations",
    "text": "words, for people",
    "name": "one of a few names",
    "id": "an id of a model, an item, a scenario, a bank or a score",
    "file": "a path or an address",
    "flag": "true or false",
    "list": "a list of ids, names, numbers or sentences",
    "rows": "a list of objects, whose keys are told below",
    "object": "an object, whose keys are told below",
    "map": "an object whose keys are names from the data or the call",
}
POINTS = {"score": "z", "difference": "+z"}
"""Units that people read in points, and how their numbers are formatted."""

_KEYS = """
schema_version|name|Which output this is, and the version of its keys.
rows|rows|One object for each line of the CSV.
abilities|list|Estimated abilities, one for each that the bank has.
ability|ability|Estimated ability.
ability_error|ability|Standard error of the ability.
ability_errors|list|Their standard errors.
actual|score|Score that the model really had.
address|file|Where the source is.
ahead|number|Training compute of the forecast over the largest that was fitted.
area|share|Probability that an item known to be bad is ranked before a good one.
arguments|map|What the change was asked for.
assessor|name|Way of choosing items and of predicting.
assumed_costs|map|What was assumed for answers that told no cost, by unit.
at|text|When the change was made.
at-cost|rows|Errors at what the reference spends.
at_items|count|Number of items that `error`, `half_width` and `coverage` are of.
bank|id|The bank's id.
banks|list|Ids of the two banks.
baseline|id|Model that the gate compares with.
baseline_score|score|Score of the baseline.
below_threshold|share|How often a candidate that is the same falls below the margin.
best_law|name|Law to read first.
best_law_reason|text|Why that law.
beyond|share|How surely the model is better than all past models.
beyond_compute|number|The correlation, beyond what training compute explains.
beyond_compute_lower|number|Lower end of its interval.
beyond_compute_upper|number|Upper end of its interval.
bias|difference|Mean of estimates less the truth.
bias_se|score|Standard error of the bias.
binary|flag|Whether all responses are 0 or 1.
bins|rows|Mean responses by predicted value.
both_sides|flag|Whether a rise counts as a drop does.
budget|number|Number of items, or the amount of cost, that the row is of.
by|text|Release of itembank that made the change.
by_chance|share|What chance alone would lead to.
by_chance_count|number|Drifted items that chance alone would show.
by_item_means|number|Correlation of the responses with the items' means alone.
calibration|rows|What came true of the probabilities of a defect.
calibration_error|share|Mean distance of observed from predicted means.
can_download|flag|Whether itembank can fetch it.
candidate|id|Model that the gate judges.
candidate_score|score|Score of the candidate.
cautions|list|Why faults may be hidden, or sound items look faulty.
changed_from|count|Number of the answer from which on the model answers otherwise.
changes|list|What is known to have changed since the bank was made.
checked_against|text|Published scores that the results are compared with.
column|name|Column whose groups of models are compared.
command|text|Command that does so.
comparison|rows|What each law was worth on the largest sizes, held out.
conclusion|text|What came out, in a sentence.
converged|flag|Whether the calibration converged.
correlation|number|Pearson correlation.
correlation_error|number|Standard error of the correlation.
correlation_lower|number|Lower end of its interval.
correlation_upper|number|Upper end of its interval.
correlations|rows|Correlations of the scores on any two tasks.
cost|cost|Cost in the unit that was asked for.
cost_of_task|cost|Cost of all items of the task.
cost_se|cost|Standard error of the cost.
cost_to_decide|map|Expected cost of the items that would decide, by unit.
cost_unit|name|Unit of the cost.
costs|map|Costs so far, by unit.
costs_by_budget|rows|The same as `errors`.
costs_listed|list|Units of cost that the responses have.
costs_named|text|Units of cost that the responses have, with commas.
coverage|share|Share of intervals that cover the true score.
coverage_se|share|Standard error of the coverage.
curves|rows|One object for each model, scenario, method and k.
decision_accuracy|share|Share of pairs of recipes that are put in the right order.
decisions|rows|How well small sizes order recipes.
density|share|Share of responses that exist.
design|name|Way of asking.
designs|rows|Ways of asking, and their errors.
detectable|score|Rise that is found nine times in ten.
detectable_difference|score|Smallest true difference of two models that shows as significant with the plan's power.
difference|difference|Difference of two scores: the second or the new one less the first.
difference_high|difference|Upper end of the difference's interval.
difference_low|difference|Lower end of the difference's interval.
difference_se|score|Standard error of the difference.
differences|rows|What differs between two banks.
differential|object|Items that differ between groups of models.
differs_by|number|How much the item differs, in log-odds.
differs_for|text|Group of models that the item differs for.
difficulty|ability|Ability at which half of the answers are right.
difficulty_high|ability|Upper end of the difficulty's interval.
difficulty_low|ability|Lower end of the difficulty's interval.
difficulty_sd|number|Spread of difficulties over items.
difficulty_sd_lower|number|Lower end of its interval.
difficulty_sd_upper|number|Upper end of its interval.
digest|text|Digest of all the ids.
disattenuated|number|The correlation, corrected for the errors of both sides.
disattenuated_lower|number|Lower end of its interval.
disattenuated_upper|number|Upper end of its interval.
discrimination_sd|number|Spread of discriminations over items.
discrimination_sd_lower|number|Lower end of its interval.
discrimination_sd_upper|number|Upper end of its interval.
drift|object|Which items new models answer otherwise than expected.
duplicate_of|id|Item that seems to be the same.
duplicate_ratio|number|Log-likelihood ratio that both are one item.
earlier|rows|Items of the stages before this one.
effective_items|number|Number of items of equal weight that would vary as much.
effective_share|share|The same, as a share of the chosen items.
eigenvalues|list|Eigenvalues of the item correlations, falling.
error|score|Mean absolute error.
error_of_negative_log|number|Mean absolute error of -log(pass@k).
error_standard_error|score|Standard error of the error.
error_words|text|What was wrong with the request.
errors|rows|One object for each row of errors.
estimand|name|What the score is of: one full run (`run`), or repeated runs (`expected`).
estimate|score|Estimated score on all items.
estimator|name|Way of estimating.
evidence|text|What speaks against the item.
exit_code|count|Exit code: 0 pass, 1 fail, 3 undecided.
expected|score|Score that the other answers make likely.
expected_error|score|Error that such estimates have on average.
explanation|text|Why this method was taken.
external_scores|list|Scores of past models that the items do not make.
failed|share|How often a candidate that is the same fails.
failure|share|Probability that k samples all fail.
false_alarm|share|A healthy candidate fails at most so often.
family|name|Distribution of responses.
fetched|text|Day when the results were fetched.
file|file|File that was written or read.
files|count|Number of files pushed.
first|list|Some of the ids.
first_found|map|Share of bad items among so many first, by their number.
first_scenario|id|First scenario.
fit|rows|How well each model fits the bank.
flagged|map|Number of items by reason.
flagged_effect|difference|What the items that differ do to the score of the group.
flips|object|Items whose answers changed.
flops|flop|Training compute.
folder|file|Folder that was written.
forecasts|rows|Scores that the laws forecast.
further_models|list|Models that should be run on the new items next.
gain|difference|By how much the mean error is smaller than when all items are asked at once.
gate|file|Folder of the gate.
goal|name|What was asked for: `half_width`, `difference` or nothing.
goal_value|score|Value that was asked for.
group|id|Group of models or items.
group_number|count|Number of the group of models that do not differ.
groups|rows|Answers of each model to each group of items.
groups_named|list|Groups of items that the model answers unusually.
half_width|score|Half-width of the interval.
half_width_beyond|score|The same, of a model better than all past models.
half_width_over_p95|number|The half-width over the 95th percentile of errors.
half_width_{}_models|score|The same, with so many past models.
harnesses|list|Harnesses that can run the items.
held|flag|Whether the interval covers the true score.
held-out|rows|Forecasts of the largest sizes from smaller ones.
held_out|rows|Errors of each number of abilities, on models held out.
high|score|Upper end of the interval.
highest_ability|ability|95th percentile of the models' abilities.
highest_score|score|Highest score of a past model.
hints|list|What else there is to say.
holds|text|What the source holds.
id|text|The id that the request had.
ids|list|The ids.
inclusion_probability|share|Probability with which the item came into the sample.
intercept|number|Intercept of the item.
intercept_error|number|Standard error of the intercept.
interval|name|Where the interval's width comes from.
is_binary|flag|Whether all responses are 0 or 1.
is_covered|flag|Whether the interval covers the true score.
is_descendant|flag|Whether the second bank came from the first.
is_exact|flag|Whether all items were run, so that nothing is estimated.
is_forecast|flag|Whether k is larger than the number of samples.
is_largest|flag|Whether it is the recipe's largest size.
is_limited|flag|Whether these models are too few to find small drifts.
is_new|flag|Whether the item is asked for the first time.
is_precise|flag|Whether the precision that was asked for is reached.
is_same_scale|flag|Whether abilities mean the same in both banks.
is_same_score|flag|Whether both banks give the score of the same items.
is_taken|flag|Whether this design is recommended.
item_id|id|The item.
item_model|name|Item response model.
item_model_bias|difference|Mean error of the scores that the item model predicts, cross-validated.
item_rest|number|Correlation of the item's responses with those to the other items.
items|rows|One object for each item.
items_added|object|Items that came.
items_aside|count|Items that count in no score.
items_changed|object|Items that changed.
items_counted|count|Number of items.
items_dropped|object|Items that went.
items_for_90|number|Items that a reliability of 0.9 takes.
items_kind|name|`all` items, or those above the minimum pass rate (`kept`).
items_to_decide|count|Further items that would decide.
items_to_run|list|Numbers of items that the bank was published for.
k|count|Number of samples of each item.
kendall|number|Kendall's tau-b of estimates and true scores.
kendall_se|number|Standard error of it.
key_ratio|number|Log-likelihood ratio that another answer is the right one.
kind|name|Kind of group: `scenario`, `subscenario` or `named`.
known|object|How well items known to be bad are found.
largest_flops|flop|Largest size that the law was fitted to.
largest_weight|share|Largest weight of an item.
last_event|text|When the session last changed.
law|name|Scaling law.
laws|list|Laws that were fitted.
left|map|What is left of the budget, by unit.
level|share|Confidence level of the intervals.
level_named|name|Error to be reached.
licence|text|Licence of the results.
link|object|How new items or models were put on the bank's scale.
linking_error|score|Standard error that the link adds to a score.
linking_models|count|Models that link new items to old ones.
loading_{}|number|Loading of the item on an ability.
loading_{}_error|number|Standard error of the loading.
log_likelihood|number|Mean log-likelihood of a hidden response.
log_likelihood_standard_error|number|Standard error of it.
logs|file|Folder of the run.
looks|rows|What each look of the gate found.
looks_listed|list|Numbers of items at which the gate looks.
low|score|Lower end of the interval.
lower|number|Lower end of the correlation's interval.
lower_bound|difference|One-sided lower bound of the difference, which proves a pass.
lowest_ability|ability|5th percentile of the models' abilities.
lowest_correlation|number|Lowest correlation of two scenarios.
lowest_score|score|Lowest score of a past model.
mae|score|Mean absolute error.
mae_se|score|Standard error of the mean absolute error.
margin|score|Drop that must not get through.
margin_held|score|Smallest margin that such a gate can hold.
margins|rows|What a gate does at each margin.
mcnemar_p|share|p-value of McNemar's test on the shared items.
mean|score|Mean response.
mean_absolute_error|score|Mean absolute error.
mean_discrimination|number|Mean discrimination of the items.
mean_error|difference|Mean of forecasts less the truth.
mean_response|score|Mean response.
mean_score|score|Mean score of the past models.
mean_task_score|score|Mean true score of the simulated models.
measured|rows|Errors of past models, by number of items.
measured_goal|score|What a trial of so many items came to.
median_correlation|number|Median correlation of two scenarios.
megabytes|count|Size of the download.
message|text|What was found, in a sentence.
method|name|How it was done.
methods|rows|One object for each way to predict.
methods_listed|list|Ways to pass@k.
methods_used|text|Methods that `auto` took.
minimum_pass_rate|share|Items with a lower pass rate are also left out of the errors.
misfit|number|Distance of the answers from what is usual; 1 on average.
miss|share|A candidate that is worse by the margin passes at most so often.
model_a|id|First model.
model_b|id|Second model.
model_id|id|The model.
models|rows|One object for each model and k.
models_added|object|Models that came.
models_ahead|name|Which models are meant: like past ones, or better.
models_counted|count|Number of models.
models_dropped|object|Models that went.
months_ahead|number|Months by which the model is newer than the newest past one.
months_old|number|Age of the newest past model in months.
most_alike|id|Task whose scores are most like this one's.
most_gigabytes|count|Size at which a download is refused.
n|count|How many there are.
n_answered|count|Items that the record has an answer to.
n_answers|count|Models that answered the item and link it.
n_bad|count|Items known to be bad.
n_best|count|Best models that answered the item.
n_best_right|number|Sum of their responses.
n_calibration|number|Mean number of past models.
n_calibration_models|count|Number of past models.
n_calibration_tasks|count|Number of tasks that may be asked.
n_cells|count|Number of responses.
n_chosen|count|Number of items chosen.
n_correct|count|Samples that are right.
n_dead|count|Items that nobody solves.
n_degenerate|count|Items that all models answered alike.
n_degenerate_items|count|Items that all models answered alike.
n_dims|count|Number of abilities.
n_dims_parallel|count|Number of abilities by parallel analysis.
n_drifted|count|Number of drifted items.
n_estimates|count|Number of estimates.
n_failed|count|Items that the record has no answer to.
n_final|count|Models at the end of their training.
n_flagged|count|Number of flagged items.
n_forecasts|count|Number of forecasts.
n_groups|count|Number of groups of related models.
n_held_out|number|Items that are predicted.
n_in_group|count|Number of models in the group.
n_items|count|Number of items.
n_items_a|count|Items that the first model ran.
n_items_aside|count|Items that count in no score.
n_items_b|count|Items that the second model ran.
n_items_first|count|Items of the gate's first look.
n_items_full|count|Items of a full run.
n_items_in_bank|count|Items whose parameters the bank holds.
n_items_mean|number|Mean number of items.
n_items_to_run|count|Number of items to run.
n_items_to_run_listed|list|Numbers of items that may be run.
n_items_used|count|Items that the errors are of.
n_iterations|count|Iterations of the calibration.
n_key|count|Best models that give the key.
n_left_out|count|Models whose results were left out.
n_missing|count|Responses that are missing.
n_models|count|Number of models.
n_negative|count|Items on which stronger models fail more often.
n_negative_items|count|Items on which stronger models fail more often.
n_never_solved|count|Items that no past model solved.
n_pairs|count|Pairs of estimates compared.
n_partitions|count|Number of divisions of models and items.
n_past|count|Past models that are compared with.
n_pending|count|Items asked and not answered yet.
n_recipes|count|Number of recipes.
n_reference|count|Answers that the group is compared with.
n_requests|count|Requests that would be sent.
n_responses|count|Number of responses.
n_results|count|Number of scores in the record.
n_rival|count|Best models that give the rival answer.
n_saturated|count|Items that everybody solves.
n_scenarios|count|Number of scenarios.
n_shared_items|count|Items that both models ran.
n_shown|count|Items that a model held out shows.
n_sizes|count|Number of sizes of the recipe.
n_source_items|count|Items of the source.
n_target_items|count|Items of the target.
n_tasks|count|Number of tasks.
n_total|count|Number of items of the whole score.
n_trials|count|Number of samples of an item.
n_unasked|count|Items that may still be asked.
n_warned|count|Scenarios with warnings.
n_without|count|Estimates without an interval.
name|id|Its name.
negative_log|number|-log(pass@k).
newest|text|Month or day of the newest past model.
newest_model|text|Day of the newest past model.
next_items|list|Items to run next.
noise|text|What varies.
noise_floor|rows|Standard errors that chance alone brings.
noise_ratio|number|Log-likelihood ratio that the answers have nothing to do with ability.
note|text|What a reader must know.
notes|list|What a reader must know.
observed|score|Mean response.
old_items|count|Old items that link the new ones.
only_a_right|count|Items that only the first model solved.
only_b_right|count|Items that only the second model solved.
open|share|Share of the score on items that tell such models apart.
operation|name|What was done.
order|name|What the items are in order of.
order_p_value|share|How often a session is as uneven from its beginning to its end.
other_task|id|The other task.
outfit|number|Mean squared standardised residual; 1 on average.
outlook|rows|What the item model expects of better models.
overall_is|name|Which mean the overall score is: `micro`, `macro` or `custom`.
overall_score_over|name|What the overall score is a mean over.
p95|score|95th percentile of the absolute errors.
p_holm|share|p-value, adjusted for the number of pairs (Holm).
p_value|share|How often chance alone does as much.
pair_accuracy|share|Share of pairs of models that are put in the right order.
pair_accuracy_se|share|Standard error of it.
paired_t_p|share|p-value of the paired t test on the shared items.
pairs|rows|One object for each pair of scenarios.
parent|id|Bank or past model that it descends from.
parents|list|Banks that it came from.
parts|rows|Weights of scenarios and subscenarios.
pass_at_k|score|Share of items that at least one of k samples solves.
passed|share|How often a candidate that is the same passes.
place|file|Where it is on this machine.
power|share|Power of the detectable difference.
precision|number|Geometric mean of the items' precision.
predicted|score|Predicted score or mean response.
predicted_{}|score|What another method predicts.
probability|share|Probability that the item is defective.
probability_b_better|share|Probability that the second model is better.
prompts|list|Prompts that past models were asked with.
range_covered|share|Part of the range of past scores that the linking models span.
rank|count|Place, 1 for the best.
ratio|number|Error or cost over that of the method compared with.
ratio_se|number|Standard error of the ratio.
ratio_to_reference|number|Cost over that of the reference.
ratio_to_reference_se|number|Standard error of that ratio.
raw_difference|difference|Difference of the means on the shared items.
reach|rows|What it costs to reach an error.
reached|flag|Whether the goal can be reached.
real|share|Share of items that were bad.
reason|name|The gravest reason.
reason_stopped|text|Why no more items are asked; null while they are.
reasons|text|All reasons, with commas.
recipe|id|Training recipe.
recipe_of_choice|map|What `select` was asked for.
recipes|list|Training recipes.
reference_budget|number|Number of items at which the reference spends as much.
relative_error|number|Error over that of the fewest abilities, less one.
relative_standard_error|number|Standard error of it.
reliability|share|Share of the variance of ability that so many items explain.
reliability_of|map|Reliability of the ability, by scenario.
repeats|rows|What more items, or more repeats, would tell.
residual|score|Root mean squared residual at the sizes fitted.
responses|text|Kind of responses.
revision|text|Commit of the source.
right_against_expectation|list|Items that the model solved most unexpectedly.
right_to_wrong|count|Items that only the baseline solved.
rival|text|Wrong answer that most of the best models give.
rmse|score|Root mean squared error.
root_mean_square|score|Root mean squared error of the predictions.
said|share|Mean probability that was stated.
scenario|id|The scenario.
scenarios|rows|One object for each scenario.
scenarios_listed|list|The scenarios.
score|score|Score.
score_effect|difference|What the items do to the score of the group at equal ability.
score_within_scenarios|name|How items are weighed within scenarios.
scores|rows|One object for each model and score.
second_scenario|id|Second scenario.
seconds_calibrate|number|CPU seconds of a calibration.
seconds_estimate|number|CPU seconds of the estimates of a fold.
seconds_select|number|CPU seconds of a selection.
seed|count|Seed of what was left to chance.
selection|name|Selection, or way to select.
selections|rows|One object for each selection.
selections_used|text|Selectors that `auto` took.
selector|name|Way to select.
sentence|text|The result in a sentence.
set|name|Tasks that were asked (`interpolation`), or others (`extrapolation`).
sha256|text|Digest of the rest.
share|share|Share.
share_known|share|Share of curves that the method knows.
share_missing|share|Share of responses that are missing.
share_of_target|share|Compute, as a share of the target's.
share_ordered|share|Share of pairs of models that so many items order rightly.
shares|list|Share of the items' variance that each eigenvalue explains.
signed_error|difference|Estimate less the true score.
since|text|Day from which on models are new.
sizes|rows|How precise each number of items is.
sizes_listed|list|Numbers of items that the bank was published for.
slope|number|Slope.
slope_error|number|Standard error of the slope.
smallest_detectable_difference|score|Smallest difference that would be found with the power asked for.
smallest_weight|share|Smallest weight of an item.
solved|share|Share of the score on items that nearly all such models solve.
source|id|Source of the data or of the transfer.
source_reliability|share|Reliability of the source's ability.
spearman|number|Rank correlation of estimates and true scores.
spearman_se|number|Standard error of it.
split|name|How models were divided.
spread|score|Standard deviation of the models' scores.
spread_over_starts|score|Standard deviation of the forecasts over starts of the fit.
stages_advice|text|Whether two stages would do better.
standard_error|score|Standard error.
standard_error_high|ability|Standard error of a high ability by all items.
standard_error_low|ability|Standard error of a low ability by all items.
standard_error_middle|ability|Standard error of a middling ability by all items.
standard_error_of_gain|score|Standard error of the gain.
status|name|Whether it is in the package, built, or a recipe.
strategy|name|Way of doing it.
subscenario|id|The subscenario.
suits|flag|Whether nothing was found that chance does not explain.
suspicion|number|How much the best models fail on the item beside others, in log-odds.
tail|rows|Items that fail most often.
taken|name|Design that is recommended.
target|id|The score: a scenario, `overall`, or another one.
target_digest|text|Digest of the items and weights of the score.
target_flops|flop|Training compute of the forecast.
target_id|id|Which items with which weights the score is of.
target_reliability|share|Reliability of the target's ability.
targets|list|Ids of the two scores.
task|id|The task.
tasks|rows|One object for each task.
text|text|Text of the item.
thresholds|list|95th percentile of each eigenvalue when responses are shuffled.
title|text|What it is.
tokens_from|text|Where the expected tokens come from.
told|list|Items whose answers were told.
tolerance|score|Drop that is healthy.
top_logit|number|Log-odds that one of the best models is right.
transfers|rows|One object for each scenario.
truth|score|True score.
truth_file|file|File of the true parameters.
typicality|share|Share of past models that fit no better.
typicality_a|share|Typicality of the first model.
typicality_b|share|Typicality of the second model.
undecided|share|How often a candidate that is the same stays undecided.
unit|name|Unit of the cost.
unlinked|list|Old items that were left out of the link.
unsolved|share|Share of the score on items that nearly all such models fail.
upper|number|Upper end of the correlation's interval.
upper_bound|difference|One-sided upper bound of the difference, which proves a fail.
verdict|name|The verdict.
verdicts|list|What was found, in sentences.
version|text|Version of the bank or the source.
versions|list|Versions of the two banks.
warned|list|Scenarios with warnings.
warnings|list|What may be wrong.
weight|share|Weight in the score.
weight_in_score|share|Weight of all its items in the score.
what|text|What differs.
whole_costs|map|Expected cost of the whole benchmark, by unit.
widening|number|Factor that intervals were widened by.
width|score|Mean width of the intervals.
without_responses_of|text|Models and bank whose responses this bank was published without.
worst|score|Largest absolute error.
worst_error|score|Largest absolute error.
worth|number|What the ranking of models would lose without the item, in average items.
wrong_against_expectation|list|Items that the model failed most unexpectedly.
wrong_to_right|count|Items that only the candidate solved.
z|number|Difference over its standard error.
{}|cost|Expected cost in the unit that the key names.
"""

_GROUPS = {
    "@estimate": "model_id target estimate low high level standard_error interval estimand n_items n_total n_missing "
    "typicality beyond months_ahead method bank target_id parent",
    "@session": "n_items n_pending n_unasked costs left whole_costs assumed_costs reason_stopped is_precise conclusion",
    "@difference": "difference low=difference_low high=difference_high",
    "@responses": "file n_models n_items n_responses n_missing density mean_response n_trials costs=costs_named",
    "@calibration": "bank n_models n_items method item_model family n_dims converged n_degenerate_items",
    "@bank": "bank name models=models_counted items=items_counted",
    "@transfer": "source target correlation correlation_lower correlation_upper disattenuated source_reliability "
    "target_reliability n_calibration_models n_models n_source_items n_target_items method level methods models",
    "@methods": "method error error_standard_error bias correlation coverage width",
    "@models": "model_id group flops ability standard_error=ability_error k predicted lower=low upper=high actual "
    "predicted_{}",
}
"""Keys that several outputs have together."""

_SCHEMAS = """
responses: import, download
  rows: @responses n_scenarios is_binary
sources: download --list
  rows: name holds n_models n_items licence checked_against can_download version most_gigabytes address
eee: export eee
  rows: file model_id n_results
simulate: simulate
  rows: file truth=truth_file n_models n_items n_tasks n_dims n_missing mean_task_score costs=costs_listed
sample-data: sample-data
  rows: file models=models_counted items=items_counted
calibrate: calibrate
  rows: @calibration n_scenarios n_iterations n_items_to_run half_width half_width_{}_models
info: info BANK
  .: @calibration name version parent target_id n_items_aside n_items_in_bank density binary external_scores
  .: without_responses_of items_to_run measured source revision fetched licence notes prompts message n_negative_items
  .: score_within_scenarios overall_score_over costs=costs_listed newest_model months_old n_never_solved outlook scenarios
  measured: n_items error half_width coverage
  outlook: models=models_ahead score open solved unsolved
  scenarios: target n_items weight mean_score lowest_score highest_score item_model_bias precision
info-responses: info RESPONSES
  .: @responses n_scenarios responses scenarios
  scenarios: scenario n_items n_models density mean_response
info-differences: info BANK OTHER
  .: banks versions targets is_same_score is_same_scale is_descendant differences
  differences: what n ids
info-log: info --log
  rows: operation version bank target_id parents by at note arguments items_added items_dropped items_changed
  rows: models_added models_dropped link
  rows.items_added: n digest first
  rows.items_dropped: n digest first
  rows.items_changed: n digest first
  rows.models_added: n digest first
  rows.models_dropped: n digest first
  rows.link: method n_models n_items linking_error
bank-list: bank list
  rows: name status sizes=sizes_listed n_items n_models newest months_old at_items error half_width coverage title
  rows: harnesses licence source revision fetched megabytes notes place
bank-build: bank build
  rows: name bank n_models n_left_out n_items n_items_to_run=n_items_to_run_listed revision folder
bank: bank add-items, add-models, add-scores, merge, note, recalibrate, retire
  rows: @bank version target_id items_aside
bank-link: bank add-items --dry-run
  .: bank linking_models range_covered old_items unlinked linking_error further_models items
  items: item_id scenario n_answers mean_response loading_{} loading_{}_error intercept intercept_error difficulty
  items: low=difficulty_low high=difficulty_high
publish-tiny: publish-tiny
  rows: bank items=items_counted n_total mean_error=error coverage
push: push
  rows: bank name files
pull: pull
  rows: @bank
selection: select, and the files that it writes; version 2 has earlier stages
  .: method bank target target_digest seed explanation recipe=recipe_of_choice items earlier sha256
  items: item_id scenario weight inclusion_probability
  earlier: item_id scenario weight
estimate: estimate
  rows: @estimate
run: run
  .: bank overall_is logs scores
  scores: @estimate
run-dry: run --dry-run
  rows: bank task n_items_first n_items n_items_full n_requests tokens_from {}
check: check BANK RESPONSES
  .: bank suits changes verdicts hints fit groups drift level scores
  fit: model_id n_items n_past misfit typicality outfit p_value verdict groups=groups_named order_p_value changed_from
  fit: wrong_against_expectation right_against_expectation
  groups: model_id group kind n_items n_reference mean expected difference p_value detectable verdict
  drift: n_models since n_items n_drifted by_chance=by_chance_count is_limited verdicts items
  drift.items: item_id scenario n_models difference standard_error z verdict
  scores: model_id target n_chosen n_items n_total truth estimate error=signed_error expected_error low high held verdict
check-items: check BANK or RESPONSES
  .: n_models n_items n_flagged flagged n_dead n_saturated order cautions known differential items
  known: n_bad area first=first_found calibration
  known.calibration: said real n_items
  differential: column level n_flagged scores notes
  differential.scores: scenario group score_effect n_items n_flagged flagged_effect
  items: item_id scenario subscenario probability suspicion key_ratio noise_ratio slope slope_error top_logit n_models
  items: mean item_rest n_best n_best_right worth duplicate_of duplicate_ratio rival n_rival n_key differs_for differs_by
  items: reason reasons evidence text
compare: compare
  rows: model_a model_b target @difference probability_b_better standard_error p_value p_holm
  rows: smallest_detectable_difference n_shared_items n_items_a n_items_b only_a_right only_b_right raw_difference
  rows: mcnemar_p paired_t_p typicality_a typicality_b level estimand method interval bank target_id note
ranking: compare --ranking
  rows: target rank group=group_number n_in_group model_id score
gate: gate, gate next, run --gate
  .: verdict sentence @difference level lower_bound upper_bound margin tolerance both_sides false_alarm miss baseline
  .: candidate baseline_score n_items n_total is_exact flips method estimand bank items_to_decide cost_to_decide
  .: next_items looks scenarios notes exit_code repeats
  flips: right_to_wrong wrong_to_right share
  looks: n_items @difference
  scenarios: scenario n_items baseline=baseline_score candidate=candidate_score right_to_wrong wrong_to_right
gate-self-test: gate --self-test
  .: sentence n_items flips @difference margin_held noise_floor margins
  flips: right_to_wrong wrong_to_right
  noise_floor: noise score difference=difference_se
  margins: margin failed passed undecided below_threshold
gate-start: gate start
  .: gate bank n_total looks=looks_listed next_items
plan: plan
  .: target goal goal_value n_items half_width detectable_difference measured=measured_goal reached message estimand level
  .: power selector method n_total bank stages_advice sizes
  sizes: n_items half_width half_width_beyond detectable_difference mean_absolute_error {}
plan-session: plan --session
  .: target n_items taken message command n_models level bank designs
  designs: design n_items mean_absolute_error standard_error gain standard_error_of_gain half_width is_taken command
replay: replay
  rows: @estimate n_answered n_failed cost cost_unit reason_stopped is_precise
session-ask: session ask
  .: items @session
  items: item_id scenario subscenario is_new
session-tell: session tell
  .: told @session
session-serve: session serve, one object a line
  .: id items told scores error=error_words warnings @session
  items: item_id scenario subscenario is_new
  scores: @estimate
session: session status, session run
  .: model_id last_event bank target_id @session ability=abilities ability_errors method typicality scores
  scores: @estimate
quickstart: quickstart
  rows: strategy selection method selections_used methods_used mean_absolute_error worst_error spearman coverage level
study: study table
  rows: split selector estimator budget target n_estimates n_without mae mae_se p95 worst bias bias_se rmse spearman
  rows: spearman_se kendall kendall_se pair_accuracy pair_accuracy_se coverage coverage_se half_width half_width_over_p95
  rows: effective_items n_items=n_items_mean cost n_calibration seconds_calibrate seconds_select seconds_estimate
study-ratios: study table --against
  rows: split selector estimator budget target ratio ratio_se n_pairs
prediction: study table, of a prediction study
  .: tasks errors cost=costs_by_budget at-cost reach
  tasks: task n_items n_held_out
  errors: n_calibration_tasks set assessor budget mae mae_se bias bias_se cost n_items=n_items_mean n_partitions
  cost: n_calibration_tasks set assessor budget mae mae_se bias bias_se cost n_items=n_items_mean n_partitions
  at-cost: n_calibration_tasks set reference_budget cost assessor mae mae_se
  reach: n_calibration_tasks set level=level_named mae assessor cost cost_se ratio ratio_se ratio_to_reference
  reach: ratio_to_reference_se
prediction-differences: study table --against, of a prediction study
  rows: n_calibration_tasks set assessor budget difference difference_se ratio ratio_se
dimensions: study dimensions
  .: n_dims n_dims_parallel n_models n_items n_items_used share_missing eigenvalues thresholds shares message held_out
  held_out: n_shown n_dims error error_standard_error relative_error relative_standard_error log_likelihood
  held_out: log_likelihood_standard_error
homogeneity: study homogeneity
  .: n_scenarios n_warned warned budget level scenarios
  scenarios: scenario n_items n_models n_degenerate difficulty_sd difficulty_sd_lower difficulty_sd_upper
  scenarios: discrimination_sd discrimination_sd_lower discrimination_sd_upper mean_discrimination n_negative
  scenarios: lowest_ability highest_ability standard_error_low standard_error_middle standard_error_high reliability
  scenarios: share_ordered items_for_90 warnings
predictions: study predictions
  .: bank_id=bank family scenarios bins
  scenarios: scenario n_models n_items n_cells correlation standard_error=correlation_error by_item_means slope bias
  scenarios: root_mean_square calibration_error by_chance
  bins: scenario n_cells predicted observed standard_error
weights: study weights
  .: bank selections parts
  selections: selection method n_items effective_items effective_share largest_weight smallest_weight
  parts: scenario subscenario n_items weight_in_score selection n_chosen weight effective_items
tasks: study tasks
  .: unit level tasks correlations
  tasks: task n_items n_models score spread cost cost_of_task most_alike correlation
  correlations: task other_task correlation lower upper n_models
pretrain: scaling pretrain
  .: target_flops level recipes scenarios=scenarios_listed laws best_law best_law_reason n_models n_final message forecasts
  .: comparison decisions held-out
  forecasts: scenario recipe law score low high n_sizes beyond=ahead residual spread_over_starts slope slope_error note
  comparison: law mean_absolute_error mean_error coverage width n_forecasts widening decision_accuracy residual
  decisions: scenario law share_of_target decision_accuracy n_recipes
  held-out: scenario recipe law largest_flops flops beyond=ahead is_largest score low high actual error=signed_error
  held-out: is_covered
pretrain-curves: scaling pretrain --show curves
  rows: scenario recipe law flops score low high
test-time: scaling test-time
  .: methods=methods_listed level budget minimum_pass_rate notes curves errors tail
  curves: model_id scenario k method pass_at_k low high negative_log is_forecast n_items truth
  errors: method items=items_kind error error_of_negative_log coverage share_known
  tail: model_id scenario item_id n_correct n_trials failure share
transfer: scaling transfer --source
  .: @transfer
  methods: @methods
  models: @models
transfers: scaling transfer
  .: transfers
  transfers: @transfer
  transfers.methods: @methods
  transfers.models: @models
validity: scaling transfer --show validity
  .: n_models n_scenarios median_correlation lowest_correlation reliability=reliability_of interval level n_groups message
  .: pairs
  pairs: first=first_scenario second=second_scenario n_models correlation lower upper disattenuated disattenuated_lower
  pairs: disattenuated_upper beyond_compute beyond_compute_lower beyond_compute_upper
"""


@dataclass(frozen=True, slots=True)
class Key:
    """What a key means: its unit (`UNITS`) and a sentence."""

    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Schema:
    """The keys of one output: for each object by its path ('' for the whole), what each key is described as.

    `{}` in a key stands for any text.
    """

    version: str
    commands: str
    keys: dict[str, dict[str, str]]


@cache
def described() -> dict[str, Key]:
    """What keys mean, by the names that `Schema.keys` describes them as."""
    lines = (line.split("|") for line in _KEYS.strip().splitlines())
    return {name: Key(unit, meaning) for name, unit, meaning in lines}


@cache
def schemas() -> dict[str, Schema]:
    """All outputs by their names."""
    found: dict[str, Schema] = {}
    keys: dict[str, dict[str, str]] = {}
    for line in _SCHEMAS.strip().splitlines():
        name, _, words = line.strip().partition(": ")
        if line.startswith(" "):
            listed = " ".join(_GROUPS.get(word, word) for word in words.split()).split()
            pairs = (word.partition("=") for word in listed)
            keys.setdefault(name.strip("."), {}).update({key: other or key for key, _, other in pairs})
        else:
            keys = {"": {"schema_version": "schema_version"}}
            found[name] = Schema(f"itembank.{name}/1", words, keys)
    for one in found.values():
        if "rows" in one.keys:
            one.keys[""]["rows"] = "rows"
    return found


def unit_of(key: str, schema: str) -> str:
    """Unit of a key of an output, or of a key of that name in any; empty for others."""
    own = schemas()[schema].keys.values() if schema else ()
    names = [keys[key] for keys in own if key in keys] or [key]
    return described()[names[0]].unit if names[0] in described() else ""
