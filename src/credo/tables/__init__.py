"""Tables: reading them, their columns and rows, encoding, and what `auto` chooses for them."""
