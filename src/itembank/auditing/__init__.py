"""What answers say of items and models: wrong keys, leaks, drift, misfit."""
