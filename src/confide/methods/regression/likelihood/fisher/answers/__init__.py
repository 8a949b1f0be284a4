"""A release of Fisher scoring read: figures, effects, levels at a boundary, what is not answered."""
