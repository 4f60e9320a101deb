"""Quantized tensors in safetensors files, and back, byte for byte.

A tensor `name` is two entries: `name.payload` (float8_e4m3fn or float8_e5m2, contiguous) and
`name.scale`, whose E8M0 bytes are stored as uint8 since not every safetensors knows the dtype. The
file's metadata, key "mx", is JSON: for each name its block, scale layout and recipe.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch

from mxkernels import arguments
from mxkernels.arch import installed
from mxkernels.quantize.shapes import SCALE_LAYOUTS
from mxref import Quantized

KEY = "mx"


class Stored(NamedTuple):
    """An MX tensor and what has to be known to read it; `quantized` may have any strides."""

    quantized: Quantized
    block: tuple[int, int] = (1, 32)
    scale_layout: str = "plain"
    recipe: str = ""


def save_quantized(path: str | Path, tensors: Mapping[str, Stored | Quantized]) -> None:
    """Write MX tensors to a safetensors file; a bare Quantized has block (1, 32), plain scales.

    Payloads are stored contiguously: a column-major one loses its order in memory and no byte. The
    file is replaced if it exists.

    Raises TypeError or ValueError for a value that is no MX tensor, a block or layout that does not
    exist; RuntimeError where safetensors is not installed. Source: safetensors; POLICY: scales are
    uint8 entries, the description is metadata.

    >>> import mxkernels, tempfile
    >>> q = mxkernels.quantize(torch.ones(2, 64))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_quantized(folder + "/w.safetensors", {"fc.weight": q})
    ...     found = load_quantized(folder + "/w.safetensors")["fc.weight"]
    >>> torch.equal(found.quantized.scale.view(torch.uint8), q.scale.view(torch.uint8)), found.block
    (True, (1, 32))
    """
    _require_safetensors()
    from safetensors.torch import save_file

    entries, known = {}, {}
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"tensors has the name {name!r}: expected a string")
        stored = value if isinstance(value, Stored) else Stored(value)
        payload, scale = _pair(name, stored.quantized)
        block = arguments.block_pair(stored.block)
        arguments.one_of("scale_layout", stored.scale_layout, SCALE_LAYOUTS)
        # safetensors refuses tensors that share memory
        entries[f"{name}.payload"] = payload.detach().contiguous().clone()
        entries[f"{name}.scale"] = scale.detach().view(torch.uint8).contiguous().clone()
        known[name] = {
            "block": list(block),
            "scale_layout": stored.scale_layout,
            "recipe": stored.recipe,
        }
    save_file(entries, str(path), metadata={KEY: json.dumps(known)})


def load_quantized(path: str | Path, device: str = "cpu") -> dict[str, Stored]:
    """The MX tensors of a file that `save_quantized` wrote: payloads contiguous, scales E8M0.

    Raises FileNotFoundError, ValueError for a file without MX metadata, RuntimeError where
    safetensors is not installed. A doctest: `save_quantized`.
    """
    _require_safetensors()
    from safetensors import safe_open

    with safe_open(str(path), framework="pt", device=device) as file:
        text = (file.metadata() or {}).get(KEY)
        if text is None:
            raise ValueError(f"path={str(path)!r}: no {KEY!r} in its metadata, no MX tensors")
        found = {}
        for name, row in json.loads(text).items():
            payload, scale = (file.get_tensor(f"{name}.{part}") for part in Quantized._fields)
            pair = Quantized(payload, scale.view(torch.float8_e8m0fnu))
            block = arguments.block_pair(row["block"])
            found[name] = Stored(pair, block, row["scale_layout"], row["recipe"])
    return found


def _pair(name: str, pair: object) -> tuple[torch.Tensor, torch.Tensor]:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"tensors[{name!r}]={pair!r}: expected a Quantized or a Stored")
    payload, scale = pair
    for part, value, allowed in (
        ("payload", payload, (torch.float8_e4m3fn, torch.float8_e5m2)),
        ("scale", scale, (torch.float8_e8m0fnu, torch.uint8)),
    ):
        if not isinstance(value, torch.Tensor) or value.dtype not in allowed:
            found = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
            expected = ", ".join(map(str, allowed))
            raise TypeError(f"tensors[{name!r}].{part} is {found}: expected one of {expected}")
    return payload, scale


def _require_safetensors() -> None:
    if not installed("safetensors"):
        raise RuntimeError("safetensors is not installed: pip install 'mxref[train]'")
