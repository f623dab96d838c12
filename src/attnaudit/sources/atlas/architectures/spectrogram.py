"""Spectrograms of sound through windows that are learnt, in bands that are evenly spaced in mel."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

#: The power of a band that counts as silence.
_SILENCE = 1e-5


class Spectrogram(nn.Module):
    """Power in bands of frequency, seen through a Hann window and through Gaussian ones that are learnt.

    Args:
        rate: samples per second.
        hop: samples from frame to frame.
        window: samples of a frame.
        bands: how many, evenly spaced in mel.
        lowest: frequency in Hz.
        highest: frequency in Hz.
        windows: how many are learnt, within the frame.
    """

    hann: Tensor
    bands: Tensor

    def __init__(
        self, rate: int, hop: int, window: int, bands: int, lowest: float, highest: float, windows: int
    ) -> None:
        super().__init__()
        self.hop, self.window = hop, window
        self.width = nn.Parameter(-torch.ones(windows))
        self.centre = nn.Parameter(torch.logit(torch.arange(1, windows + 1) / (windows + 1)))
        self.register_buffer("hann", torch.hann_window(window), persistent=False)
        self.register_buffer("bands", mel_bands(rate, window, bands, lowest, highest), persistent=False)

    def forward(self, sound: Float[Tensor, "batch samples"]) -> Float[Tensor, "batch windows frames bands"]:
        """Logarithms of power: 0 is silence, 1 a power of 1, where the whole recording has variance 1."""
        frames = -(-sound.shape[1] // self.hop) + 1
        after = (frames - 1) * self.hop + self.window // 2 - sound.shape[1]
        cut = pad(sound, (self.window // 2, after)).unfold(1, self.window, self.hop)
        level, spread = cut.mean((1, 2), keepdim=True), cut.std((1, 2), keepdim=True)
        shown = ((cut - level) / (spread + 1e-8))[:, None] * self._windows()[:, None]
        power: Tensor = torch.fft.rfft(shown, norm="ortho").abs() ** 2 @ self.bands
        return 1 - (power + _SILENCE).log() / math.log(_SILENCE)

    def _windows(self) -> Float[Tensor, "windows samples"]:
        """The Hann window, and Gaussian ones whose place and width are shares of the frame."""
        places = torch.arange(self.window, device=self.width.device)
        centres, widths = (own.sigmoid()[:, None] * self.window for own in (self.centre, self.width))
        return torch.cat([self.hann[None], (-0.5 * ((places - centres) / (widths / 2)) ** 2).exp()])


def mel_bands(rate: int, window: int, bands: int, lowest: float, highest: float) -> Float[Tensor, "frequencies bands"]:
    """Triangles that reach from the middle of the last band to that of the next, with m = 2595 log10(1 + f / 700)."""
    first, last = (2595 * math.log10(1 + own / 700) for own in (lowest, highest))
    middles = 700 * (10 ** (torch.linspace(first, last, bands + 2, dtype=torch.float64) / 2595) - 1)
    hertz = torch.linspace(0, rate / 2, window // 2 + 1, dtype=torch.float64)[:, None]
    gaps = middles.diff()
    up, down = (hertz - middles[:-2]) / gaps[:-1], (middles[2:] - hertz) / gaps[1:]
    return torch.minimum(up, down).clamp_min(0).float()
