"""Kernel smooths and kernel regression at public points."""
