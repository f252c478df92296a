"""Item models: response probability, log-likelihood and information, on arrays."""
