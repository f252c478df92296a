"""Banks that change: models and items added, linked, merged, recalibrated."""
