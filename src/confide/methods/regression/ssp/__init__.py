"""Many lines from one release of second moments."""
