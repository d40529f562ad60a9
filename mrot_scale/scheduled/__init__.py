"""A job for every night: partitions of a lake, models by policy, gates, and what is told of it."""
