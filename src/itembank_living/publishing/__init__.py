"""Banks for others: pushed to the Hugging Face Hub, pulled from it, published with a small subset, built by recipes."""
