"""A table, wherever it is and whatever its format, becomes a stream of record batches."""
