"""Commands that help to choose, before anything is spent."""
