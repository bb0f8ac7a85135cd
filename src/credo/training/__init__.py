"""The one loop that trains, samples, shows progress, checkpoints and resumes every method."""
