"""The laboratory: long runs over many settings and seeds. Nothing here is needed to make or read a release."""
