"""A numeric column's distribution, and Table One: how they are read and shown."""
