"""One model, one item at a time: which items to ask next, and when to stop."""
