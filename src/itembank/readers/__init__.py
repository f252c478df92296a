"""From anybody's files to responses: tables, built-in sets, and what readers of logs and public stores share."""
