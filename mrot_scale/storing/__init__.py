"""A stream of rows becomes a store: Zarr features, Parquet identifiers, a schema."""
