"""The colour changes of `colour` and `Augment` in torch, for images (B, 3, H, W) that are on a device already."""

from collections.abc import Sequence

import torch
from torch import Tensor

_LUMA = (0.2989, 0.587, 0.114)


def recoloured(
    images: Tensor, flip: Tensor, factors: Tensor, grey: Tensor, *, order: Sequence[int], jitter: Sequence[float]
) -> Tensor:
    """Flip 8-bit images (B, S, S, 3) and jitter their colours, as `Augment` has drawn: (B, 3, S, S) in [0, 1]."""
    images = torch.where(flip[:, None, None, None], images.flip(2), images)
    x = images.permute(0, 3, 1, 2).to(torch.float32) / 255
    for k in order:
        if jitter[k]:
            x = _COLOURS[k](x, factors[k, :, None])
    return torch.where(grey[:, None, None, None], _luma(x), x).contiguous(memory_format=torch.channels_last)


def _luma(x: Tensor) -> Tensor:
    return sum((weight * x[:, c : c + 1] for c, weight in enumerate(_LUMA)), torch.zeros_like(x[:, :1]))


def _brightness(x: Tensor, factor: Tensor) -> Tensor:
    return (x * factor).clamp_(0, 1)


def _contrast(x: Tensor, factor: Tensor) -> Tensor:
    return torch.lerp(_luma(x).mean((2, 3), keepdim=True), x, factor).clamp_(0, 1)


def _saturation(x: Tensor, factor: Tensor) -> Tensor:
    return torch.lerp(_luma(x), x, factor).clamp_(0, 1)


def _hue(x: Tensor, shift: Tensor) -> Tensor:
    """See `colour.hue`: whole sixths of the circle rotate and mirror the channels, the rest is a soft threshold."""
    low, high = x.aminmax(dim=1, keepdim=True)
    whole = (6 * shift).trunc()
    part, whole = 6 * shift - whole, whole.long()
    channel, mirrored = torch.arange(3, device=x.device)[:, None, None], whole % 2 == 1
    source = torch.where(mirrored, channel + whole, channel - whole // 2) % 3
    turned = x.gather(1, source.expand(x.shape))
    turned = torch.where(mirrored, low + high - turned, turned)
    difference = (turned.roll(2, 1) - turned.roll(1, 1)) * torch.where(part > 0, 1.0, -1.0)
    bound = (high - low) * (1 - part.abs())
    return (turned - difference + difference.clamp(-bound, bound)).clamp(low, high)


_COLOURS = (_brightness, _contrast, _saturation, _hue)
