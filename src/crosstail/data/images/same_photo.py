"""Whether two thumbnails show the same photo, one of them perhaps mirrored, marked, recoloured or a part of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIDE, _PLACE = 64, 8  # pixels of a thumbnail, and of a place in it
_GRID = _SIDE // _PLACE
_LEAST = 8  # places with detail; with fewer, whole thumbnails are compared
_ALIKE = 0.995  # correlation of whole thumbnails
_NOISE = 2.0  # variance of detail that copies differ by, in squared grey levels: JPEG artefacts
# Correlation of a place in two copies, but for noise, and share of the places that reach it: a mark covers others. The
# place of a part in the whole is known to half a pixel, and the best of many is taken.
_COPY, _PART = (0.9, 2 / 3), (0.8, 0.8)
_CUT = 9  # 64ths of the width, and of the height, that a part lacks at most
_FIT, _FITTED = 0.9, 0.8  # correlations of a part with its place in the whole: of row and column means, of all pixels
_AT_ONCE = 128  # pairs: they fit the processor's cache

Floats = NDArray[np.float32]
Pixels = NDArray[np.uint8]
Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

_CUTS = [(before, after) for before in range(_CUT + 1) for after in range(_CUT + 1 - before)]
_FEW = [k for k, (before, after) in enumerate(_CUTS) if before % 2 == after % 2 == 0]  # 0 is no cut at all
_SWAPPED = [_FEW.index(_CUTS.index(_CUTS[k][::-1])) for k in _FEW]  # the same cuts of a mirrored photo


def smoothing(side: int, sigma: float) -> Floats:
    """A matrix (side, side) that smooths one axis of an image with a Gaussian."""
    place = np.arange(side)
    weight = np.exp(-0.5 * ((place[:, None] - place) / sigma) ** 2)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True), np.float32)


def halved(images: NDArray[Any]) -> Floats:
    """Images (P, H, W) at half the size: means of squares of four pixels."""
    x = images.astype(np.float32)
    x = x[:, ::2] + x[:, 1::2]
    x = x[:, :, ::2] + x[:, :, 1::2]
    return np.asarray(x / 4, np.float32)


def _stretching(side: int) -> Floats:
    """Matrices (K, side, side) that stretch what is left of one axis after each of the cuts."""
    before, after = np.array(_CUTS).T[:, :, None] * side / _SIDE
    at = before + (side - before - after) * (np.arange(side) + 0.5) / side - 0.5
    near = 1 - np.abs(np.arange(side) - at.clip(0, side - 1)[..., None])
    return np.asarray(near.clip(0), np.float32)


_BLUR, _BLUR_HALF = smoothing(_SIDE, 2.0), smoothing(_SIDE // 2, 2.0)
_HALF = _SIDE // 2
_STRETCH, _STRETCH_HALF = _stretching(_SIDE), _stretching(_HALF)
_LEVEL = np.eye(_HALF, dtype=np.float32) - smoothing(_HALF, 6.0)


class Photos:
    """Grey thumbnails (N, 64, 64) that are compared in pairs."""

    def __init__(self, images: Pixels) -> None:
        n = len(images)
        self.images = images
        self.halves = np.zeros((2, n, _HALF, _HALF), np.float16)  # as they are, and without what is blurred
        self.detail = np.zeros((n, _GRID, _GRID, _PLACE, _PLACE), np.int8)
        self.energy = np.zeros((n, _GRID, _GRID), np.float32)
        self.profiles = np.zeros((2, n, len(_FEW), _HALF), np.float32)  # of rows and of columns, after some cuts
        for some in _pieces(np.arange(n)):
            half = halved(images[some])
            self.halves[0, some] = half
            self.halves[1, some] = _sharp(half)
            x = images[some].astype(np.float32)
            detail = _by_place(np.rint(_detail(x)).clip(-127, 127))
            self.detail[some], self.energy[some] = detail, _common(detail, detail)
            for axis in (0, 1):
                self.profiles[axis, some] = _cut_profiles(x, axis, _STRETCH_HALF[_FEW])
        self._pair = np.zeros((2, _AT_ONCE, *self.detail.shape[1:]), np.float32)  # new memory takes longer to get

    def same(self, pairs: NDArray[np.int64], mirrored: Flags) -> Flags:
        """Which pairs (2, P) show the same photo (P,), where the second of a pair may be mirrored."""
        found = np.zeros(len(mirrored), np.bool_)
        for turn in (False, True):
            rows = np.flatnonzero(mirrored == turn)
            for some in _pieces(rows):
                found[some] = self._as_they_are(pairs[0, some], pairs[1, some], turn)
            for some in _pieces(rows[~found[rows]]):
                found[some] = self._as_parts(pairs[0, some], pairs[1, some], turn)
        return found

    def _as_they_are(self, one: Rows, other: Rows, turn: bool) -> Flags:
        a, b = self._pair[:, : len(one)]
        np.copyto(a, self.detail[one])
        np.copyto(b, self.detail[other][:, :, ::-1, :, ::-1] if turn else self.detail[other])
        energy = self.energy[other]
        found, detailed = _agree(_common(a, b), self.energy[one], energy[:, :, ::-1] if turn else energy, *_COPY)
        if len(few := np.flatnonzero(~detailed)):
            x, y = self.images[one[few]].astype(np.float32), _turned(self.images[other[few]], turn)
            found[few] = _correlation(x, y.astype(np.float32)) >= _ALIKE
        return found

    def _as_parts(self, one: Rows, other: Rows, turn: bool) -> Flags:
        """Which pairs agree after the cuts of one that best fit the row and column means of the other."""
        found = np.zeros(len(one), np.bool_)
        fits, cuts = zip(*(self._fit(axis, one, other, turn and axis == 1) for axis in (0, 1)), strict=True)
        fit = np.minimum(*fits)  # (2, P)
        best = fit.argmax(axis=0)
        for whole, rows in enumerate(np.flatnonzero((best == w) & (fit[w] >= _FIT)) for w in (0, 1)):
            x, y = one[rows], other[rows]
            a, b = self.halves[whole, x].astype(np.float32), self.halves[1 - whole, y].astype(np.float32)
            b = _turned(b, turn)
            y_cut, x_cut = (_STRETCH_HALF[_FEW][cut[whole, rows]] for cut in cuts)
            if whole:
                a, b = b, a
            near = _correlation(_sharp(y_cut @ a @ x_cut.swapaxes(1, 2)), b) >= _FITTED
            a, b = self.images[x[near]].astype(np.float32), _turned(self.images[y[near]], turn).astype(np.float32)
            found[rows[near]] = _is_part(b, a) if whole else _is_part(a, b)
        return found

    def _fit(self, axis: int, one: Rows, other: Rows, turn: bool) -> tuple[Floats, Rows]:
        """How well the best cut of either fits the profile of the other (2, P), and which of the few it is."""
        a, b = self.profiles[axis, one], self.profiles[axis, other]
        if turn:
            b = b[:, _SWAPPED, ::-1]
        found = np.stack([(a @ b[:, 0, :, None])[..., 0], (b @ a[:, 0, :, None])[..., 0]])
        return found.max(axis=2), found.argmax(axis=2)


def _is_part(whole: Floats, part: Floats) -> Flags:
    """Which images (P, 64, 64) agree after the cuts that fit the row and the column means best."""
    for axis in (0, 1):
        fit = _cut_profiles(whole, axis, _STRETCH_HALF) @ _cut_profiles(part, axis, _STRETCH_HALF[:1])[:, 0, :, None]
        stretch = _STRETCH[fit[..., 0].argmax(axis=1)]
        whole = whole @ stretch.swapaxes(1, 2) if axis else stretch @ whole
    a, b = _by_place(_detail(whole)), _by_place(_detail(part))
    agree, detailed = _agree(_common(a, b), _common(a, a), _common(b, b), *_PART)
    return agree & detailed


def _cut_profiles(x: Floats, axis: int, stretch: Floats) -> Floats:
    """Row or column means of images (P, 64, 64) after each cut (P, K, 32), without slow changes, of unit length."""
    profile = x.sum(axis=2 - axis) / _SIDE
    profile = (profile[:, ::2] + profile[:, 1::2]) / 2
    left = (profile @ stretch.reshape(-1, _HALF).T).reshape(len(x), len(stretch), _HALF) @ _LEVEL.T
    left -= left.mean(axis=2, keepdims=True)
    found: Floats = left / (np.linalg.norm(left, axis=2, keepdims=True) + 1e-3)
    return found


def _pieces(rows: Rows) -> list[Rows]:
    return [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]


def _detail(x: Floats) -> Floats:
    """What is left of images (P, 64, 64) without what is blurred."""
    return np.asarray(x - _BLUR @ x @ _BLUR.T, np.float32)


def _sharp(x: Floats) -> Floats:
    """The same of images (P, 32, 32)."""
    return np.asarray(x - _BLUR_HALF @ x @ _BLUR_HALF.T, np.float32)


def _by_place(x: NDArray[Any]) -> NDArray[Any]:
    """Pixels (P, 64, 64) by place, (P, 8, 8, 8, 8)."""
    return np.ascontiguousarray(x.reshape(len(x), _GRID, _PLACE, _GRID, _PLACE).swapaxes(2, 3))


def _common(a: Floats, b: Floats) -> Floats:
    """Mean products (P, 8, 8) of the pixels of each place."""
    places, pixels = a.shape[:3], _PLACE * _PLACE
    return np.asarray((a.reshape(*places, 1, pixels) @ b.reshape(*places, pixels, 1))[..., 0, 0] / pixels, np.float32)


def _turned(images: NDArray[Any], turn: bool) -> NDArray[Any]:
    return images[:, :, ::-1] if turn else images


def _agree(common: Floats, a: Floats, b: Floats, least: float, share: float) -> tuple[Flags, Flags]:
    """Which pairs agree in a share of the places with detail, and which have enough of these; from mean products."""
    places = np.maximum(a, b) > 1
    geometric = np.sqrt(a * b)
    close = places & (common * (geometric + _NOISE) > least * geometric * geometric)
    number = places.sum(axis=(1, 2))
    return close.sum(axis=(1, 2)) >= share * number, number >= _LEAST


def _correlation(x: Floats, y: Floats) -> Floats:
    """Correlations (P,) of images."""
    x, y = (z - z.mean(axis=(1, 2), keepdims=True) for z in (x, y))
    lengths = np.linalg.norm(x, axis=(1, 2)) * np.linalg.norm(y, axis=(1, 2))
    found: Floats = np.einsum("pij,pij->p", x, y) / (lengths + 1e-3)
    return found
