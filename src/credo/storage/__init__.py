"""Files: written atomically, read as data, never as code."""
