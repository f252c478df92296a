"""Runs inside lm-evaluation-harness, which is imported in functions only: its command, its prompts, chosen items."""
