"""Files, data frames and cells as columns of numbers, categories and dates."""
