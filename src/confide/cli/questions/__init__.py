"""Commands that put questions to records or to a release."""
