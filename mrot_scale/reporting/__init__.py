"""A run as a page people look at, and the data behind it."""
