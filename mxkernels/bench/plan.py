"""What a run measures: a Plan holds the choices, `cases` spells them out one comparison a Case."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from mxkernels.quantize.shapes import SCALE_LAYOUTS, SWIZZLE
from mxkernels.quantize.variants import VARIANTS, Variant
from mxkernels.registry import KERNELS

Shape = tuple[int, ...]

WHOLE = ("host", "linear", "cold")
"""Families that bring rows of their own and take no shape."""

FAMILIES = ("host", "limits", "cast", "cast3d", "both", "dequantize", "swizzle", "cold", "linear")
DATA = ("randn", "specials", "subnormals")

CAST_SHAPES: tuple[Shape, ...] = (
    (16384, 16384),
    *product((8192, 32768, 131072), (2048, 7168)),
)
EXPERT_SHAPES: tuple[Shape, ...] = tuple(
    (experts, *matrix) for matrix in ((8192, 5120), (7168, 2048)) for experts in (1, 8, 32)
)
ODD_SHAPES: tuple[Shape, ...] = ((3, 96, 416), (5, 160, 1408), (2, 384, 1152))
SHAPES: dict[str, tuple[Shape, ...]] = {
    "limits": ((16384, 16384),),
    "cast": CAST_SHAPES,
    "cast3d": EXPERT_SHAPES + ODD_SHAPES,
    "both": ((16384, 16384), (8, 8192, 5120)),
    "dequantize": ((16384, 16384), (8, 8192, 5120)),
    "swizzle": ((131072, 224),),
}
"""The literature's, by family; those of swizzle are scale matrices (blocks of K = 7168)."""

ADVERSARIAL_SHAPES: dict[str, tuple[Shape, ...]] = {
    "cast": ((16384, 16384),),
    "cast3d": ((8, 7168, 2048), (3, 96, 416)),
}
"""Where the default run also takes inputs with NaN, Inf, any bit pattern, and subnormals."""

QUICK_SHAPES: tuple[Shape, ...] = ((16384, 16384), (32, 7168, 2048))
TUNE_SHAPES: tuple[Shape, ...] = ((16384, 16384), (8, 8192, 5120))

USUAL: dict[str, tuple[str, ...]] = {
    "cast": ("dim0", f"1x32 row {SWIZZLE} n", "dim1", "32x1_n", "32x32_n"),
    "cast3d": ("32x1_n", "32x1_t", "32x32_n", "32x32_t"),
    "both": ("both col plain", f"both col {SWIZZLE}"),
    "dequantize": ("1x32 plain", f"1x32 {SWIZZLE}", "32x1 plain", "32x32 plain"),
    "swizzle": ("whole", "groups M 32", "groups K 32"),
}
"""The variants of the default run, each the literature's name or the words of the contract."""

SQUARE: Shape = (16384, 16384)
MATRIX_VARIANTS = ("1x32 row plain n", f"1x32 row {SWIZZLE} n", "32x1 col plain_t n")
"""What the default run takes of the matrices beside the square one, as the literature does."""


def text(variant: Variant) -> str:
    """A variant in the words of the contract: block, payload order, scale layout, input order.

    >>> text(VARIANTS["dim1"])
    '32x1 col plain_t n'
    """
    rows, columns = variant.block
    return f"{rows}x{columns} {variant.payload_order} {variant.scale_layout} {variant.input_order}"


def parsed(words: str) -> Variant:
    """The variant of such a text.

    >>> parsed("32x1 col plain_t n") == VARIANTS["dim1"]
    True
    """
    block, payload_order, scale_layout, input_order = words.split()
    rows, columns = map(int, block.split("x"))
    return Variant((rows, columns), payload_order, scale_layout, input_order)


NAMES = {text(variant): name for name, variant in VARIANTS.items()}
"""The literature's name of a variant's text, where there is one."""


@dataclass(frozen=True)
class Case:
    """One comparison: whatever implements it is verified and timed in turns."""

    family: str
    shape: Shape = ()
    dtype: str = ""
    data: str = ""
    variant: str = ""
    recipe: str = ""

    @property
    def site(self) -> tuple[Shape, str, str]:
        """What cases have in common that share inputs and limits."""
        return self.shape, self.dtype, self.data

    def labels(self) -> dict[str, Any]:
        """The columns that name it in a row."""
        named = {"name": NAMES[self.variant]} if self.variant in NAMES else {}
        return asdict(self) | {"shape": list(self.shape)} | named


@dataclass(frozen=True)
class Plan:
    """One run: what, where, how long. Empty tuples mean the defaults of this file."""

    families: tuple[str, ...] = FAMILIES
    shapes: tuple[Shape, ...] = ()
    dtypes: tuple[str, ...] = ("bfloat16",)
    recipes: tuple[str, ...] = ("floor", "rceil")
    variants: tuple[str, ...] = ()
    layouts: tuple[str, ...] = SCALE_LAYOUTS
    data: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    configs: str = "default"
    rounds: int = 40
    graph_rounds: int = 20
    graphs: bool = True
    budget: float = 480.0
    device: str = "cuda"

    def text(self) -> dict[str, Any]:
        """The plan as JSON holds it."""
        return asdict(self)


def cases(plan: Plan) -> list[Case]:
    """All of a plan: host first, then those that share inputs and limits one after another."""
    found = [case for family in plan.families for case in _of(plan, family)]
    places = {case.site: index for index, case in reversed(list(enumerate(found)))}
    order = FAMILIES.index
    return sorted(
        dict.fromkeys(found),
        key=lambda case: (
            order(case.family) if case.family in (*WHOLE, "swizzle") else 1,
            places[case.site],
            order(case.family),
            case.recipe,
        ),
    )


def _of(plan: Plan, family: str) -> Iterator[Case]:
    if family in WHOLE:
        yield Case(family)
        return
    recipes = plan.recipes if family in ("cast", "cast3d", "both") else ("",)
    dtypes = ("e8m0",) if family == "swizzle" else plan.dtypes
    variants = variants_of(plan, family) if family != "limits" else ("",)
    for data, shapes in _places(plan, family):
        for shape, dtype, recipe, variant in product(shapes, dtypes, recipes, variants):
            usual = family == "cast" and not plan.shapes and not plan.variants
            if usual and shape != SQUARE and variant not in MATRIX_VARIANTS:
                continue
            yield Case(family, shape, dtype, data, variant, recipe)


def _places(plan: Plan, family: str) -> Iterator[tuple[str, tuple[Shape, ...]]]:
    """The inputs and shapes of a family; adversarial inputs in the default run are fewer."""
    fits = {"cast": lambda shape: len(shape) == 2, "cast3d": lambda shape: len(shape) > 2}
    given = tuple(filter(fits.get(family, lambda shape: True), plan.shapes))
    if plan.shapes and family != "swizzle":
        for data in plan.data or ("randn",):
            yield data, given
        return
    if family in ("limits", "swizzle"):
        yield "randn", SHAPES[family]
        return
    for data in plan.data or DATA:
        asked = data in plan.data or data == "randn"
        yield data, SHAPES[family] if asked else ADVERSARIAL_SHAPES.get(family, ())


def variants_of(plan: Plan, family: str) -> list[str]:
    """The texts of a family's variants that a plan asks for, each with all words of one request.

    >>> variants_of(Plan(variants=("32x1 n",), layouts=("plain_t",)), "cast")
    ['32x1 row plain_t n', '32x1 col plain_t n']
    """
    if not plan.variants:
        asked = [text(VARIANTS[each]) if each in VARIANTS else each for each in USUAL[family]]
        return [each for each in asked if _layout_taken(plan, each)]
    known = claims(family)
    requests = [text(VARIANTS[each]) if each in VARIANTS else each for each in plan.variants]
    return [
        each
        for each in known
        if _layout_taken(plan, each)
        and any(r == "all" or set(r.split()) <= set(each.split()) for r in requests)
    ]


def _layout_taken(plan: Plan, variant: str) -> bool:
    named = set(variant.split()) & set(SCALE_LAYOUTS)
    return named <= set(plan.layouts)


def claims(family: str) -> list[str]:
    """Every variant that some spec claims."""
    if family == "swizzle":
        return list(USUAL["swizzle"])
    operation = {"both": "quantize_both", "dequantize": "dequantize"}.get(family, "quantize")
    found: dict[str, None] = {}
    for spec in KERNELS:
        if spec.op != operation:
            continue
        if family == "both":
            found |= dict.fromkeys(f"both col {layout}" for layout in spec.scale_layouts)
        elif family == "dequantize":
            pairs = product(spec.blocks, spec.scale_layouts)
            found |= dict.fromkeys(f"{b[0]}x{b[1]} {layout}" for b, layout in pairs)
        else:
            parts = (spec.blocks, spec.payload_orders, spec.scale_layouts, spec.input_orders)
            found |= dict.fromkeys(text(Variant(*each)) for each in product(*parts))
    return list(found)
