"""Everything at a path read again: what is missing, damaged, unexpected or not as it was told."""
