"""Code that runs on blocks of records, in a process of its own."""
