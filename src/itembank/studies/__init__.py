"""Leave-models-out comparison of selections and estimates."""
