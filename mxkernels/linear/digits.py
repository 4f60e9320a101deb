"""The training task: scikit-learn's handwritten digits, and a small transformer that reads them.

1,797 images of 8 x 8 pixels with values 0 to 16 (the test set of UCI's Optical Recognition of
Handwritten Digits), a row of pixels being a token. The split is the same for every run.
"""

from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from mxkernels.arch import installed

HELD_OUT = 360
WIDTH, HEADS, HIDDEN, BLOCKS = 128, 4, 256, 2


class Digits(NamedTuple):
    """Images (n, 8, 8) fp32 in 0..1, labels (n,) int64: the training part, then the held-out."""

    images: torch.Tensor
    labels: torch.Tensor
    held_images: torch.Tensor
    held_labels: torch.Tensor


def raw(data: Path | None) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels 0 to 16 (n, 8, 8) uint8 and labels, from an .npz of `export` or from scikit-learn.

    Raises FileNotFoundError, ValueError for a file without such arrays, RuntimeError where neither
    a file nor scikit-learn is there.
    """
    if data is not None:
        import numpy as np

        if not data.is_file():
            raise FileNotFoundError(f"--data {str(data)!r}: no such file")
        with np.load(data) as held:
            if not {"images", "labels"} <= set(held.files):
                raise ValueError(f"--data {str(data)!r}: expected arrays 'images' and 'labels'")
            images, labels = held["images"], held["labels"]
    else:
        if not installed("sklearn"):
            raise RuntimeError(
                "scikit-learn is not installed: pip install 'mxref[train]', or --data FILE.npz"
            )
        from sklearn.datasets import load_digits

        found = load_digits()
        images, labels = found.images, found.target
    return torch.as_tensor(images).to(torch.uint8), torch.as_tensor(labels).to(torch.int64)


def export(data: Path) -> int:
    """Write the images and labels of scikit-learn to an .npz; returns how many there are."""
    import numpy as np

    images, labels = raw(None)
    np.savez_compressed(data, images=images.numpy(), labels=labels.to(torch.uint8).numpy())
    return len(images)


def load(data: Path | None, device: torch.device) -> Digits:
    """The split data on `device`: 360 images held out, chosen once and for all."""
    images, labels = raw(data)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    pixels = (images[order].to(torch.float32) / 16).to(device)
    labels = labels[order].to(device)
    return Digits(pixels[HELD_OUT:], labels[HELD_OUT:], pixels[:HELD_OUT], labels[:HELD_OUT])


class Block(nn.Module):
    """Attention and an MLP, each behind a LayerNorm; four linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.between = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, HIDDEN)
        self.down = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x (batch, tokens, WIDTH) -> the same shape."""
        batch, tokens, _ = x.shape
        split = self.qkv(self.before(x)).view(batch, tokens, 3, HEADS, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        x = x + self.out(mixed.reshape(batch, tokens, WIDTH))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Reader(nn.Module):
    """Rows of pixels as 8 tokens, BLOCKS blocks, the mean of the tokens to 10 classes."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(8, WIDTH)
        self.position = nn.Parameter(torch.randn(8, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(BLOCKS)))
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (batch, 8, 8) -> logits (batch, 10)."""
        return self.head(self.blocks(self.embed(images) + self.position).mean(1))
