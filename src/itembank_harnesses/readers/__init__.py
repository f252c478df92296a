"""Readers of logs of harnesses, results of leaderboards and trials of agents: one file a source."""
