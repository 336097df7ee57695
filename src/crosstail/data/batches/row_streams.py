"""Endless random sequences of row numbers, each a pure function of the seed and the position."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

# SeedSequence pads with zeros, so [seed, d, 3] and [seed, d, 3, 0] are the same stream. The fourth number keeps the
# uses of a seed apart: 0 epochs, 1 rounds, 2 pairs, 3 augmentation, 4 views, 5 independent draws.
_ROUNDS, _PAIR, VIEWS, _DRAWN = 1, 2, 4, 5


class RowStream:
    """Blocks of equal length, each a function of its number; the most recent one is kept."""

    def __init__(self, length: int, make: Callable[[int], Rows]) -> None:
        self.length = length
        self._make = make
        self._kept: tuple[int, Rows] | None = None

    def block(self, number: int) -> Rows:
        if self._kept is None or self._kept[0] != number:
            self._kept = number, self._make(number)
        return self._kept[1]

    def take(self, start: int, count: int) -> Rows:
        """`count` rows from position `start`."""
        first, offset = divmod(start, self.length)
        if offset + count <= self.length:
            return self.block(first)[offset : offset + count]
        last = (start + count - 1) // self.length
        return np.concatenate([self.block(b) for b in range(first, last + 1)])[offset : offset + count]


def instance_stream(rows: Rows, y: Rows, seed: int, d: int) -> RowStream:
    """Epochs: block e is a permutation of the domain's rows."""
    return RowStream(len(rows), partial(_epoch, rows, seed, d))


def _epoch(rows: Rows, seed: int, d: int, e: int) -> Rows:
    return np.random.default_rng([seed, d, e]).permutation(rows)


def drawn_stream(class_balanced: bool, rows: Rows, y: Rows, seed: int, d: int) -> RowStream:
    """Independent draws: of the domain's rows, or with equal probability of a class and of one of its rows."""
    own = [rows[y == c] for c in np.unique(y)] if class_balanced else [rows]

    def block(number: int) -> Rows:
        generator = np.random.default_rng([seed, d, number, _DRAWN])
        chosen, place = generator.integers(len(own), size=1024), generator.random(1024)
        return np.array([own[k][int(p * len(own[k]))] for k, p in zip(chosen, place, strict=True)], np.int64)

    return RowStream(1024, block)


def class_balanced_stream(rows: Rows, y: Rows, seed: int, d: int) -> RowStream:
    """Rounds: each is a permutation of the domain's classes, with the next row of every class; `y` is (len(rows),)."""
    pairs = [_pair_stream(rows[y == c], seed, d, int(c)) for c in np.unique(y)]
    rounds = -(-1024 // len(pairs))  # per block: enough to make the cost of a block small
    return RowStream(rounds * len(pairs), partial(_rounds, pairs, rounds, seed, d))


def _rounds(pairs: list[RowStream], rounds: int, seed: int, d: int, block: int) -> Rows:
    samples = np.stack([pair.take(block * rounds, rounds) for pair in pairs], axis=1)  # (rounds, classes)
    return np.random.default_rng([seed, d, block, _ROUNDS]).permuted(samples, axis=1).ravel()


def _pair_stream(rows: Rows, seed: int, d: int, c: int) -> RowStream:
    repeated = np.tile(rows, (-(-256 // len(rows)), 1))
    return RowStream(repeated.size, partial(_permutations, repeated, seed, d, c))


def _permutations(rows: Rows, seed: int, d: int, c: int, block: int) -> Rows:
    return np.random.default_rng([seed, d, block, _PAIR, c]).permuted(rows, axis=1).ravel()
