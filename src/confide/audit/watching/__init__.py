"""A release under watch: recorded, replayed on a neighbour, and attacked where its noise cannot be taken off."""
