"""The least-squares line by rounds."""
