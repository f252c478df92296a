"""Whether one model is better than another, from items both answered."""
