"""Values in files: codecs, the envelope, and the checks of what is read back."""
