"""Checks of what callers pass: every error names the argument, its value and what is allowed."""

from dataclasses import fields

import torch

from mxkernels.quantize.shapes import PAYLOAD_ORDERS, SCALE_LAYOUTS
from mxref import RECIPES, Recipe
from mxref.formats import BLOCKS, INPUTS
from mxref.recipes import resolve
from mxref.shown import shown

DTYPES = tuple(getattr(torch, row.torch_dtype) for row in INPUTS.values())


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """`value`, if it is one of these strings; TypeError or ValueError otherwise."""
    if isinstance(value, str) and value in allowed:
        return value
    expected = ", ".join(map(repr, allowed))
    if not isinstance(value, str):
        raise TypeError(f"{name}={value!r}: expected one of {expected}, got {type(value).__name__}")
    raise ValueError(f"{name}={value!r}: expected one of {expected}")


def block_pair(block: object) -> tuple[int, int]:
    """`block` as a pair out of `mxref.formats.BLOCKS`; TypeError or ValueError otherwise."""
    expected = ", ".join(map(str, BLOCKS))
    if not isinstance(block, (tuple, list)):
        raise TypeError(f"block={block!r}: expected one of {expected}, got {type(block).__name__}")
    for allowed in BLOCKS:
        # 1.0 and True equal 1
        if tuple(block) == allowed and type(block[0]) is int and type(block[1]) is int:
            return allowed
    raise ValueError(f"block={block!r}: expected one of {expected}")


def source(x: object, block: tuple[int, int]) -> torch.Tensor:
    """`x`, if it is a tensor that can be quantized in such blocks; TypeError or ValueError."""
    least = 1 if block[0] == 1 else 2
    if isinstance(x, torch.Tensor) and x.layout == torch.strided and x.dtype in DTYPES:
        if x.dim() >= least:
            return x
        raise ValueError(f"x has shape {tuple(x.shape)}: block={block} needs rank {least} or more")
    expected = ", ".join(map(str, DTYPES))
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x={shown(x)}: expected a tensor, got {type(x).__name__}")
    if x.layout != torch.strided:
        raise TypeError(f"x has layout {x.layout}: expected torch.strided")
    raise TypeError(f"x has dtype {x.dtype}: expected one of {expected}")


def recipe_name(recipe: object) -> str:
    """The name of the recipe; NotImplementedError for a Recipe that equals no named one."""
    row = resolve(recipe)
    if RECIPES.get(row.name) == row:
        return row.name
    for name, known in RECIPES.items():
        if known == row:
            return name
    base = RECIPES.get(row.round)
    compared = (each.name for each in fields(Recipe) if each.compare)
    odd = [name for name in compared if base and getattr(row, name) != getattr(base, name)]
    unbuilt = ", ".join(f"{name}={getattr(row, name)!r}" for name in odd) or f"round={row.round!r}"
    raise NotImplementedError(f"recipe {row.label!r}: no kernel is built for {unbuilt}")


def orders(payload_order: object, scale_layout: object) -> None:
    """ValueError or TypeError for a payload order or scale layout that does not exist."""
    one_of("payload_order", payload_order, PAYLOAD_ORDERS)
    one_of("scale_layout", scale_layout, SCALE_LAYOUTS)


def layout_pair(scale_layout: object) -> tuple[str, str]:
    """One scale layout for both directions, or a pair; TypeError or ValueError otherwise."""
    pair = scale_layout if isinstance(scale_layout, (tuple, list)) else (scale_layout, scale_layout)
    if len(pair) != 2:
        raise ValueError(f"scale_layout={scale_layout!r}: expected one name or a pair of names")
    first, second = (one_of("scale_layout", each, SCALE_LAYOUTS) for each in pair)
    return first, second
