"""What the responses say about the benchmark itself."""
