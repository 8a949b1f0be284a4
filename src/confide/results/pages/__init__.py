"""How a result is shown: text, pictures, HTML, other people's documents."""
