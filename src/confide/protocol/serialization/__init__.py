"""Values in files: exact text forms, codecs, the envelope, and the checks of what is read back."""
