"""`mxref explain`: the steps from values to bytes, the bytes from both implementations."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated

import torch
import typer

from mxref import exact
from mxref.blocks import quantize
from mxref.cli import element_steps, scale_rules, screen, values
from mxref.cli.errors import WrongCallError, unknown
from mxref.cli.scale_rules import Step
from mxref.formats import BLOCK_SIZE, ELEMENTS, FP32, INPUTS, SCALE_BIAS, SCALE_NAN, InputFormat
from mxref.recipes import RECIPES, Recipe
from mxref.rules import is_contract

Values = Annotated[
    list[str],
    typer.Argument(
        metavar="VALUE",
        help=f"Numbers of one block of 32, the rest zeros: {values.FORMS}.",
    ),
]
Dtype = Annotated[str, typer.Option("--dtype", help="bf16, fp16 or fp32: the input's format.")]
_NAMES = ", ".join(row.shown for row in RECIPES.values())
RecipeName = Annotated[str, typer.Option("--recipe", help=f"One of {_NAMES}.")]
BlockAmax = Annotated[
    str | None,
    typer.Option(
        "--block-amax", metavar="VALUE", help="One more element of the block, its largest."
    ),
]
Element = Annotated[str, typer.Option("--element", help=f"One of {', '.join(ELEMENTS)}.")]


@dataclass(frozen=True)
class Block:
    """One block with its answer: the numbers, and the bytes on which both implementations agree."""

    given: tuple[values.Given, ...]
    fmt: InputFormat
    recipe: Recipe
    byte: int
    payload: tuple[int, ...]


def explain(
    value: Values,
    dtype: Dtype = "bf16",
    recipe: RecipeName = "rceil",
    block_amax: BlockAmax = None,
    element: Element = "e4m3",
) -> None:
    """Print the steps from value to bytes."""
    for name, given, allowed in (
        ("--dtype", dtype, INPUTS),
        ("--recipe", recipe, RECIPES),
        ("--element", element, ELEMENTS),
    ):
        if given not in allowed:
            raise unknown(name, given, allowed)
    shown = list(value)
    stray = next((text for text in shown if text.startswith("--")), None)
    if stray:
        raise WrongCallError(f"no such option: {stray} (see mxref explain --help)")
    try:
        chosen = replace(RECIPES[recipe], element=element)
    except ValueError as error:
        raise WrongCallError(str(error)) from error
    block = answer(shown, block_amax, INPUTS[dtype], chosen)
    grid = screen.steps()
    for label, text in _scale_steps(block):
        grid.add_row(label, text)
    for index in range(len(shown)):
        if len(shown) > 1:
            grid.add_row("")
        for label, text in _value_steps(block, index, len(shown)):
            grid.add_row(label, text)
    screen.results().print(grid)


def answer(texts: list[str], block_amax: str | None, fmt: InputFormat, recipe: Recipe) -> Block:
    """The block that the call describes, with its bytes."""
    given = [values.parse(text, fmt) for text in texts]
    if block_amax is not None:
        given.append(_amax(block_amax, given, fmt))
    if len(given) > BLOCK_SIZE:
        raise WrongCallError(f"VALUE: {len(given)} numbers, a block has {BLOCK_SIZE}")
    bits = [each.bits for each in given]
    byte, payload = _agreed(bits + [0] * (BLOCK_SIZE - len(bits)), fmt, recipe)
    return Block(tuple(given), fmt, recipe, byte, tuple(payload[: len(bits)]))


def _amax(text: str, given: list[values.Given], fmt: InputFormat) -> values.Given:
    try:
        amax = values.parse(text, fmt)
    except WrongCallError as error:
        raise WrongCallError(str(error).replace("VALUE", "--block-amax", 1)) from None
    for each in given:
        if each.bits & fmt.magnitude_mask > amax.bits & fmt.magnitude_mask:
            raise WrongCallError(f"--block-amax={text!r}: VALUE {each.text} is larger in magnitude")
    return amax


def _agreed(bits: list[int], fmt: InputFormat, recipe: Recipe) -> tuple[int, list[int]]:
    """The bytes of the block; AssertionError where the two implementations differ."""
    signed = [each - (1 << fmt.bits) if each >> (fmt.bits - 1) else each for each in bits]
    integer = torch.int32 if fmt.bits == 32 else torch.int16
    x = torch.tensor(signed, dtype=integer).view(getattr(torch, fmt.torch_dtype))
    fast = quantize(x, recipe)
    byte, payload = exact.quantize_block(bits, fmt.name, recipe)
    found = (fast.scale.view(torch.uint8).tolist(), fast.payload.view(torch.uint8).tolist())
    if found != ([byte], payload):
        raise AssertionError(f"mxref.quantize and mxref.exact differ on {bits} ({fmt.name})")
    return byte, payload


def _scale_steps(block: Block) -> list[Step]:
    fmt, recipe = block.fmt, block.recipe
    rows = [("recipe", f"{recipe.shown}, element {recipe.element}, {fmt.name} input")]
    sizes = [each.bits & fmt.magnitude_mask for each in block.given]
    numbers = [size for size in sizes if size < fmt.exponent_mask]
    special = _special_steps(sizes, block)
    scale = _scale_in_words(block)
    if special and special[-1][0] == "byte":
        return [*rows, ("amax", special[-1][1]), scale]
    largest = max(numbers, default=0)
    number = values.value(largest, fmt) or Fraction(0)
    # the rest of a block that is not full are zeros, which count
    if not numbers and len(sizes) == BLOCK_SIZE and recipe.nan_scale == "dropped_from_1":
        number = Fraction(1)
    flushed = recipe.flush in ("inputs", "both") and number < Fraction(2) ** (1 - FP32.bias)
    wide = 0 if flushed else values.nearest(number, FP32)
    pattern = values.fields(wide, FP32.bits, FP32.mantissa_bits)
    text = f"{values.name(largest, fmt)}; as fp32 {pattern}, biased exponent {wide >> 23}"
    rows += [*special, ("amax", text + (", flushed to zero" if flushed and number else ""))]
    lines, byte = scale_rules.dialect(wide, recipe, fmt)
    if byte != block.byte:
        raise AssertionError(f"the steps lead to byte {byte}, the reference to {block.byte}")
    return [*rows, *lines, scale]


def _special_steps(sizes: list[int], block: Block) -> list[Step]:
    """What NaN and Inf do to the scale; the last step is called `byte` where they decide it."""
    fmt, recipe = block.fmt, block.recipe
    has_nan = any(size > fmt.exponent_mask for size in sizes)
    has_inf = fmt.exponent_mask in sizes
    dropped: list[Step] = []
    if has_nan and recipe.nan_scale.startswith("dropped"):
        dropped = [("NaN", f"nan_scale={recipe.nan_scale}: the maximum does not see it")]
    elif (has_nan or has_inf) and is_contract(recipe):
        name = values.name(max(sizes), fmt)
        return [("byte", f"{name}: a NaN or Inf poisons its whole block")]
    elif has_nan:
        return [("byte", f"NaN: nan_scale={recipe.nan_scale} gives the byte")]
    if has_inf and recipe.inf_scale == "exponent":
        return [*dropped, ("byte", f"Inf goes through ratio={recipe.ratio} and the clamps")]
    if has_inf:
        return [*dropped, ("byte", f"Inf: inf_scale={recipe.inf_scale} gives the byte")]
    return dropped


def _scale_in_words(block: Block) -> Step:
    value = "NaN" if block.byte == SCALE_NAN else f"2^{block.byte - SCALE_BIAS}"
    return "scale", f"byte {block.byte} = 0x{block.byte:02X} = {value}"


def _value_steps(block: Block, index: int, count: int) -> list[Step]:
    given, fmt = block.given[index], block.fmt
    label = "value" if count == 1 else f"value {index + 1} of {count}"
    rows = [
        (label, _origin(given, fmt)),
        ("bits", values.fields(given.bits, fmt.bits, fmt.mantissa_bits)),
    ]
    nan = any(each.bits & fmt.magnitude_mask > fmt.exponent_mask for each in block.given)
    if is_contract(block.recipe):
        element = ELEMENTS[block.recipe.element]
        steps = element_steps.steps(given.bits, fmt, block.byte, block.payload[index], element)
    else:
        element_block = element_steps.Under(fmt, block.byte, block.recipe, nan)
        steps = element_steps.dialect_steps(given.bits, block.payload[index], element_block)
    return [*rows, *steps]


def _origin(given: values.Given, fmt: InputFormat) -> str:
    shown = values.name(given.bits, fmt)
    if given.exact is not None:
        return f"{given.text}, rounded to {fmt.name}: {shown}"
    return given.text if given.text == shown else f"{given.text} = {shown}"
