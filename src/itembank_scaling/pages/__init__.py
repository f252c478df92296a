"""Pages of laws."""
