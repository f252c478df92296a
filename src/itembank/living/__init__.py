"""Banks that change: models and items added, linked, recalibrated; what differs between two."""
