"""Banks that change: models and items added, linked, recalibrated, retired."""
