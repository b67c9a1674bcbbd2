"""A small load of records, made to fail in each of its places."""
