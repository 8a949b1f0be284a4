"""A least-squares line under the design of a survey."""
