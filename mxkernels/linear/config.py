"""CastConfig: which kernel casts along each dimension, which recipe, which matmul."""

from dataclasses import dataclass, replace

import torch

from mxkernels import arguments, registry
from mxkernels.matmul import table
from mxkernels.quantize.shapes import SWIZZLE
from mxref.recipes import resolve as resolve_recipe

DIMENSIONS = {"dim0": ((1, 32), "row"), "dim1": ((32, 1), "col")}
"""What is cast along each dimension: the block, and the order in which its payload is stored."""


@dataclass(frozen=True)
class CastConfig:
    """The cast kernel of every dimension, named in the same way, the recipe and the matmul.

    `dim0` casts in blocks of (1, 32), along the last dimension; `dim1` in blocks of (32, 1), along
    the one before, payload transposed. Each is "auto" (the fastest one measured on a CUDA device,
    mxref elsewhere), "triton", "cuda", "compile" or "reference"; no choice has a hidden default and
    none is replaced by another. Where both name a kernel that can write both directions from one
    read, it does. `recipe` is a name in `mxref.RECIPES`; `matmul` "auto", "scaled_mm", "triton" or
    "dequantize" (`mxkernels.matmul`).

    Raises TypeError or ValueError, when made, for a name that does not exist. `resolve` raises for
    a choice that is not built (NotImplementedError) or cannot run (RuntimeError). POLICY: rceil.

    >>> CastConfig(dim1="reference").resolve("cpu")
    CastConfig(dim0='reference', dim1='reference', recipe='rceil', matmul='auto')
    >>> CastConfig(dim1="tritn")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: dim1='tritn': expected one of 'auto', 'triton', 'cuda', ... 'compile', 'reference'
    """

    dim0: str = "auto"
    dim1: str = "auto"
    recipe: str = "rceil"
    matmul: str = "auto"

    def __post_init__(self) -> None:
        for name in DIMENSIONS:
            arguments.one_of(name, getattr(self, name), registry.BACKENDS)
        arguments.one_of("matmul", self.matmul, table.NAMES)
        if not isinstance(self.recipe, str):
            raise TypeError(f"recipe={self.recipe!r}: expected the name of a recipe")
        resolve_recipe(self.recipe)

    @property
    def names(self) -> tuple[str, str, str, str]:
        """The fields, as ops take them."""
        return self.dim0, self.dim1, self.recipe, self.matmul

    def kernel(self, dimension: str, device: torch.device | str) -> str:
        """The cast kernel of "dim0" or "dim1" on a device, "auto" looked up.

        >>> CastConfig().kernel("dim0", "cpu")
        'reference'
        """
        name: str = getattr(self, dimension)
        if name != "auto":
            return name
        return registry.chosen_backend("quantize", (*DIMENSIONS[dimension], SWIZZLE), device)

    def one_read(self, device: torch.device | str) -> str | None:
        """The kernel that casts both directions from one read of their input, None without one."""
        name = self.dim0 if self.dim0 == self.dim1 else None
        if name == "auto":
            name = registry.chosen_backend("quantize_both", (SWIZZLE, SWIZZLE), device)
        built = {spec.backend for spec in registry.KERNELS if spec.op == "quantize_both"}
        return name if name in built else None

    def resolve(self, device: torch.device | str) -> "CastConfig":
        """This configuration with every cast by its name; raises for what cannot run on `device`.

        "auto" stays for `matmul`: its back end depends on the shapes, and `describe` shows it.
        """
        where = torch.device(device)
        single = self.one_read(where)
        named = {name: single or self.kernel(name, where) for name in DIMENSIONS}
        for dimension, name in named.items():
            if name == "reference":
                continue
            spec = registry.find("quantize", name)
            spec.require(self.recipe, *DIMENSIONS[dimension], SWIZZLE)
            lacking = spec.missing(where)
            if lacking:
                raise RuntimeError(f"{dimension}={name!r} cannot run here: {lacking}")
        if self.matmul != "auto":
            lacking = table.find(self.matmul).missing(where)
            if lacking:
                raise RuntimeError(f"matmul={self.matmul!r} cannot run here: {lacking}")
        return replace(self, **named)

    def describe(self, device: torch.device | str, m: int, n: int, k: int) -> str:
        """What runs for a linear layer of n features from k, on m tokens, a line each.

        >>> print(CastConfig().describe("cpu", 128, 64, 32))
        dim0: reference, blocks (1, 32), recipe rceil
        dim1: reference, blocks (32, 1), recipe rceil
        forward (128, 32) x (32, 64): dequantize
        dgrad (128, 64) x (64, 32): dequantize
        wgrad (64, 128) x (128, 32): dequantize
        """
        where = torch.device(device)
        found = self.resolve(where)
        single = self.one_read(where)
        both = f", both from one read by {single}" if single else ""
        lines = [
            f"{name}: {getattr(found, name)}, blocks {block}, recipe {self.recipe}{both}"
            for name, (block, _) in DIMENSIONS.items()
        ]
        for name, (rows, columns, depth) in products(m, n, k).items():
            chosen = table.resolve(self.matmul, where, rows, columns, depth)
            lines.append(f"{name} ({rows}, {depth}) x ({depth}, {columns}): {chosen}")
        return "\n".join(lines)


def products(m: int, n: int, k: int) -> dict[str, tuple[int, int, int]]:
    """Rows, columns and contracted size of the three products of a layer.

    >>> products(128, 64, 32)["wgrad"]
    (64, 32, 128)
    """
    return {"forward": (m, n, k), "dgrad": (m, k, n), "wgrad": (n, k, m)}
