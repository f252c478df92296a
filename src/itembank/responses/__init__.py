"""What models answered: the matrix, its codes, targets, and tables of items and models."""
