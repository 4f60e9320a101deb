"""Inputs: fills that reach every branch of the arithmetic, and ways to lie in memory."""

import torch

FILLS = ("random bits", "one binade", "thresholds", "small", "zeros", "poisoned")
STRIDES = ("contiguous", "swapped", "reversed", "columns", "every second", "expanded")


def bit_dtype(dtype):
    return torch.int32 if dtype == torch.float32 else torch.int16


def filled(count, fill, dtype, seed):
    """`count` values; the bits where random are all patterns, NaN and subnormals among them."""
    generator = torch.Generator().manual_seed(seed)
    if fill == "zeros":
        return torch.zeros(count, dtype=dtype) * torch.randn(count, generator=generator).to(dtype)
    if fill == "one binade":
        return (1 + torch.rand(count, generator=generator)).to(dtype)
    info = torch.iinfo(bit_dtype(dtype))
    bits = torch.randint(info.min, info.max + 1, (count,), generator=generator)
    if fill == "poisoned" or fill == "random bits":
        finite = torch.randn(count, generator=generator).to(dtype)
        raw = bits.to(bit_dtype(dtype)).view(dtype)
        rate = 0.002 if fill == "poisoned" else 1.0
        return torch.where(torch.rand(count, generator=generator) < rate, raw, finite)
    if fill == "small":
        return (bits % 1024).to(bit_dtype(dtype)).view(dtype)
    # Around 2^k and 1.75 * 2^k, where the rules change their mind.
    mantissa = {torch.bfloat16: 7, torch.float16: 10, torch.float32: 23}[dtype]
    nudge = torch.randint(-1, 2, (count,), generator=generator)
    edge = torch.randint(0, 2, (count,), generator=generator) * (3 << (mantissa - 2))
    base = bits >> mantissa << mantissa
    return (base + edge + nudge).clamp(info.min, info.max).to(bit_dtype(dtype)).view(dtype)


def strided(shape, strides, offset, make):
    """A tensor of this shape whose memory lies as `strides` and the storage offset say."""
    shape = tuple(shape)
    order = list(range(len(shape)))
    if strides == "reversed":
        order.reverse()
    elif strides == "swapped":
        order[-2:] = order[-2:][::-1]
    storage = tuple(shape[dim] for dim in order)
    if strides == "columns":
        storage = (*shape[:-1], shape[-1] + 7)
    elif strides == "every second":
        storage = tuple(2 * size for size in shape)
    elif strides == "expanded":
        storage = (1, *shape[1:])
    count = torch.Size(storage).numel()
    x = make(count + offset)[offset:].view(storage)
    if strides == "columns":
        x = x[..., 3 : 3 + shape[-1]]
    elif strides == "every second":
        x = x[tuple(slice(None, None, 2) for _ in shape)]
    elif strides == "expanded":
        x = x.expand(shape)
    return x.permute(order)
