"""How close each strategy of tinyBenchmarks section 5 comes to the full score of models it has not seen."""
