"""Selection among candidates that are themselves private."""
