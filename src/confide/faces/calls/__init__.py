"""The calls behind the public names of each family, and the questions that they answer."""
