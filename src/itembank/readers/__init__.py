"""From anybody's files to responses: tables, logs, public stores, built-in sets."""
