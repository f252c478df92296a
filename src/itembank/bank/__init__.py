"""The item bank: the object, its folder, cache, history and selections."""
