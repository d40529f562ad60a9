"""All settings in one checked place, a module for each thing they are about.

Read `job` for all of them together, `method` for those a model keeps, and `layers` for where they
come from.
"""
