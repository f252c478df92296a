"""Public stores of past results, and what a folder of each looks like."""
