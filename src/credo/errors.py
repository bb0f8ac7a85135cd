"""Errors that a person can act on: one sentence with what was expected, what came and what to do."""


class CredoError(Exception):
    """Base class of everything that credo raises on purpose."""


class InputError(CredoError, ValueError):
    """The data, a file or an option is not usable as given; the sentence says what to do."""


class Refusal(CredoError, ValueError):
    """A method cannot do what was asked, for the mathematical reason that the sentence gives."""


class NoDensity(CredoError):
    """A distribution over parameters was asked for a density that it does not have."""


class ArtifactError(CredoError):
    """A run directory cannot be read: missing, damaged, foreign or of a newer format."""


class Unwritable(ArtifactError):
    """A file or folder cannot be written: a full disk, no permission; its previous content stays."""


class ConvergenceWarning(UserWarning):
    """A fit has come to its end and should not be believed as it is: chains diverged, or do not agree."""


class OutOfMemory(CredoError, MemoryError):
    """Memory does not suffice for what was asked; the sentence says what takes less."""
