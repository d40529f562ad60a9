"""Ingest, fit and score as users know them: each a list of stages in order."""
