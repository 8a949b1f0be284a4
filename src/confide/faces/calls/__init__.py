"""The calls behind the public names of each family, and the progress of long ones."""
