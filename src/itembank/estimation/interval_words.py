"""What each kind of interval rests on, in words; without numpy, so that a command can load it."""

MEANING = {
    "calibrated": "Intervals are calibrated: their width comes from the errors made on the bank's own models when "
    "these are left out. Trust them less for a model unlike all of them.",
    "model-based": "Intervals come from the item model alone: they are too narrow where it is wrong.",
    "design": "Intervals come from how the items were drawn: they hold for any model, even where the item model is "
    "wrong.",
}
"""What each kind of interval rests on."""
