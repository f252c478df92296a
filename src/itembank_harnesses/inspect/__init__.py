"""Runs inside Inspect: a session that feeds a task, a subset of its samples, and the estimate as a metric."""
