"""The plain text of golden vectors: words and hex numbers, so that any language reads it.

The file is a sequence of words separated by white space. First the head, a word and its value each:
format, spec, recipe, element, block (2 numbers), layout, contract ("none", -1 or -2), cases (their
number). Then for each case: case NAME, dtype bf16|fp16|fp32, shape RANK SIZE..., scale_shape RANK
SIZE..., x HEX..., payload HEX..., scale HEX..., each with as many numbers as its shape has
elements, in row-major order. Lines end with a line feed.
"""

import hashlib
from collections.abc import Iterator
from itertools import islice

import torch
from torch import Tensor

from mxref.formats import INPUTS
from mxref.recipes import Recipe
from mxref.vectors.sets import FORMAT, Case, Vectors

_PER_LINE = 32


def text(vectors: Vectors) -> str:
    """The text of the vectors, ASCII.

    >>> from mxref.vectors import make
    >>> text(make("rceil", dtypes=(torch.bfloat16,))).splitlines()[:4]
    ['format mxref-vectors-1', 'spec mxref-1', 'recipe rceil', 'element e4m3']
    """
    return "".join(f"{line}\n" for line in _lines(vectors))


def digest(vectors: Vectors) -> str:
    """The SHA-256 of the text, in hex: one name for every byte of the vectors.

    The same as `sha256sum vectors.txt` in a folder that `save` wrote.

    >>> from mxref.vectors import make
    >>> len(digest(make("floor", dtypes=(torch.bfloat16,))))
    64
    """
    return hashlib.sha256(text(vectors).encode("ascii")).hexdigest()


def name_of(recipe: Recipe) -> str:
    """The recipe's name as one word, without the element."""
    return "-".join((recipe.name or recipe.round).split())


def _lines(vectors: Vectors) -> Iterator[str]:
    contract = "none" if vectors.contract is None else vectors.contract
    yield f"format {FORMAT}"
    yield f"spec {vectors.spec}"
    yield f"recipe {name_of(vectors.recipe)}"
    yield f"element {vectors.recipe.element}"
    yield f"block {vectors.block[0]} {vectors.block[1]}"
    yield f"layout {vectors.scale_layout}"
    yield f"contract {contract}"
    yield f"cases {len(vectors.cases)}"
    for case in vectors.cases:
        yield f"case {case.name}"
        yield f"dtype {case.dtype}"
        yield f"shape {_sizes(case.bits)}"
        yield f"scale_shape {_sizes(case.scale)}"
        for name, numbers, width in case.arrays():
            yield name
            words = hexed(numbers, width)
            for start in range(0, len(words), _PER_LINE):
                yield " ".join(words[start : start + _PER_LINE])


def _sizes(tensor: Tensor) -> str:
    return " ".join(map(str, (tensor.dim(), *tensor.shape)))


def little_endian(numbers: Tensor, width: int) -> Tensor:
    """Integers as their bytes (uint8), a new last dimension; on any machine."""
    shifts = 8 * torch.arange(width)
    return ((numbers.to(torch.int64)[..., None] >> shifts) & 0xFF).to(torch.uint8)


def hexed(numbers: Tensor, width: int) -> list[str]:
    """Each integer in 2 * width capital hex digits."""
    if not numbers.numel():
        return []
    # the digits of a number begin with its highest byte
    digits = bytes(little_endian(numbers, width).flip(-1).reshape(-1).tolist())
    return digits.hex(" ", width).upper().split(" ")


def parse(content: str, recipe: Recipe) -> Vectors:
    """The vectors that a text holds, for the recipe that its head names; ValueError elsewhere."""
    words = iter(content.split())
    head = {name: _after(words, name) for name in ("format", "spec", "recipe", "element")}
    block = int(_after(words, "block")), int(_next(words))
    layout, contract = _after(words, "layout"), _after(words, "contract")
    if (head["format"], head["recipe"], head["element"]) != (
        FORMAT,
        name_of(recipe),
        recipe.element,
    ):
        raise ValueError(f"the head names {head}: expected {FORMAT}, {recipe.label}")
    cases = tuple(_case(words) for _ in range(int(_after(words, "cases"))))
    if next(words, None) is not None:
        raise ValueError("more words after the last case")
    direction = None if contract == "none" else int(contract)
    return Vectors(head["spec"], recipe, block, layout, direction, cases)


def _case(words: Iterator[str]) -> Case:
    name, dtype = _after(words, "case"), _after(words, "dtype")
    if dtype not in INPUTS:
        raise ValueError(f"case {name}: dtype {dtype}: expected one of {', '.join(INPUTS)}")
    shape, scale_shape = _shape(words, "shape"), _shape(words, "scale_shape")
    bits = _numbers(words, "x", shape)
    payload = _numbers(words, "payload", shape).to(torch.uint8)
    return Case(name, dtype, bits, payload, _numbers(words, "scale", scale_shape).to(torch.uint8))


def _shape(words: Iterator[str], name: str) -> tuple[int, ...]:
    return tuple(int(_next(words)) for _ in range(int(_after(words, name))))


def _numbers(words: Iterator[str], name: str, shape: tuple[int, ...]) -> Tensor:
    _expect(words, name)
    count = torch.Size(shape).numel()
    taken = [int(word, 16) for word in islice(words, count)]
    if len(taken) < count:
        raise ValueError(f"{name}: {len(taken)} numbers, expected {count}")
    return torch.tensor(taken, dtype=torch.int64).reshape(shape)


def _after(words: Iterator[str], name: str) -> str:
    _expect(words, name)
    return _next(words)


def _expect(words: Iterator[str], name: str) -> None:
    found = _next(words)
    if found != name:
        raise ValueError(f"the word {found!r}: expected {name!r}")


def _next(words: Iterator[str]) -> str:
    found = next(words, None)
    if found is None:
        raise ValueError("the text ends too early")
    return found
