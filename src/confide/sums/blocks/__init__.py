"""Code that runs on blocks of records, in a separate process."""
