"""Rows of a table: copies of each other, and which of them are held out."""
