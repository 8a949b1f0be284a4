"""What single mechanisms promise, in closed form or by exact bounds."""
