"""The methods, one folder a family; families never import each other."""
