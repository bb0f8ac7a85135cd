"""Tables as arrays: reading, splitting, encoding and writing."""
