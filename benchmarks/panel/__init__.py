"""The default methods against published ones on five leaderboards, random and shifted splits."""
