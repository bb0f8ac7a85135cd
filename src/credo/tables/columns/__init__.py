"""What the columns of a table are, and how they are shown."""
