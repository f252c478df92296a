# RewardBench: lists side by side, a place an item
{model_id: .model} + ([.id, .results, .subset] | transpose[] | {item_id: .[0], response: .[1], scenario: .[2]})
