"""Texts as the words that they hold, hashed into few features.

A word is a run of letters, digits and underscores in lower case, or a sign beyond ASCII such as an emoji. Its CRC-32
says which feature it counts in, and with which sign, so that words which share a feature cancel on average: the inner
product of two texts is that of their bags of words, plus noise of mean 0. Weinberger, Dasgupta, Langford, Smola and
Attenberg (2009), Feature hashing for large scale multitask learning.

Exported predictors take this module along: NumPy alone will do.
"""

import collections
import re
import zlib
from collections.abc import Sequence

import numpy as np

LENGTH = 2.0  # of a text; 1 predicted numbers a little better, 3 classes
WORD = re.compile(r"\w+|[^\w\s\x00-\x7f]")


def words_of(text: str) -> list[str]:
    """The words of a text, as often as they come.

    Example:
        >>> words_of("Two rooms, TWO baths 😀")
        ['two', 'rooms', 'two', 'baths', '😀']
    """
    return WORD.findall(text.lower())


def word_counts(texts: Sequence[str], size: int) -> np.ndarray:
    """Signed counts [texts, size]: a word that comes c times adds ±(1 + log c) to its feature."""
    counts = np.zeros((len(texts), size))
    places: dict[str, tuple[int, float]] = {}
    for row, text in enumerate(texts):
        for word, times in collections.Counter(words_of(text)).items():
            if word not in places:
                code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
                places[word] = code % size, 1.0 if code >> 16 & 1 else -1.0
            place, sign = places[word]
            counts[row, place] += sign * (1.0 + np.log(times))
    return counts


def word_features(texts: Sequence[str], rarity: Sequence[float]) -> np.ndarray:
    """Counts times the rarity of each feature, every text scaled to `LENGTH`; texts without words are 0."""
    features = word_counts(texts, len(rarity)) * np.asarray(rarity, np.float64)
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return LENGTH * features / np.where(length > 0, length, 1.0)
