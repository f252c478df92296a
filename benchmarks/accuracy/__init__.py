"""How close each strategy of P1 section 5 comes to the full score of models it has not seen."""
