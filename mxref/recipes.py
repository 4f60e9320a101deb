"""Recipe: which bytes. One choice per axis, as strings, and the table of the named recipes.

The axes are those on which shipped quantizers differ. A dialect is one row of choices; one that
is not gets a new value on an axis, never a special case. Imports formats only.

Known and left out, because no bytes of them were recorded and they were not run: the host code of
CUDA's own header and CUTLASS, FlashInfer's CUDA kernel, microxcaling, JAX's scaled_dot_general and
ONNX's cast. docs/dialects.md has a paragraph for each axis and the table of who agrees with whom.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from mxref.formats import ELEMENTS

AXES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # how amax is brought to the element's range before its exponent is read
        "ratio": (
            "exponent",
            "mul_rcp_f32",
            "div_f32",
            "div_in_input_dtype",
            "log2_f32",
            "rcp_approx_ftz",
        ),
        "round": ("floor", "rceil", "ceil", "even", "even_fp4"),
        "byte_min": ("00", "01"),
        "byte_max": ("fe", "f7"),
        # a ratio at or below 2^-127, the smallest scale
        "tiny": ("nv", "bump", "flush", "amax_floor(1e-4)", "amax_floor(1e-10)"),
        "nan_scale": ("ff", "fe", "00", "dropped", "dropped_from_1"),
        "inf_scale": ("ff", "fe", "exponent"),
        "byte0_multiplier": ("2^127", "2^126", "1", "0"),
        "byte255_multiplier": ("nan", "0", "-inf", "2^-128"),
        "overflow": ("satfinite", "nan_above_464", "preclamp_nan_max", "preclamp_nan_min"),
        "element_round": ("rne", "half_away"),
        "nan_code": ("7f", "sign", "ff"),
        "poison": ("block", "element"),
        "minus_zero": ("keep", "plus"),
        "flush": ("none", "inputs", "ratio", "both", "multiplier"),
    }
)
"""Every axis and its values."""

_NATURAL_RATIO = {"rceil": "mul_rcp_f32"}

_NONSENSE = (
    # a logarithm has no mantissa left to round
    (("ratio", "log2_f32"), ("round", "even")),
    (("ratio", "log2_f32"), ("round", "even_fp4")),
    # the instruction was measured for 448 alone
    (("ratio", "rcp_approx_ftz"), ("element", "e5m2")),
    # e5m2 has an Inf above its maximum, and 464 is a midpoint of e4m3
    (("overflow", "nan_above_464"), ("element", "e5m2")),
)
"""Pairs of choices that contradict each other."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The numerics of a quantizer: one choice per axis. Which bytes, not where they lie.

    Fields left out take the contract of this project: NaN or Inf poisons its block (scale 0xFF,
    every payload 0x7F), elements round to nearest even and saturate, -0 and subnormals are kept.
    `ratio` left out is the one that belongs to `round`: "mul_rcp_f32" for "rceil", else "exponent".
    `name` and `known_by` (run, emulated or src: how the row was established) do not take part in
    comparisons. docs/dialects.md explains every axis and who agrees with whom.

    ============  ===================================================================
    round         byte, for amax = max|x| of the block, element emax and maximum
    ============  ===================================================================
    floor         floor(log2 amax) - emax                        (OCP MX v1.0, 6.3)
    rceil         ceil(log2(amax * fp32(1/maximum)))             (PTX cvt.rp.ue8m0x2)
    ceil          ceil(log2 amax) - emax                         (torchao)
    even          floor(log2(amax + half an element ulp)) - emax (torchao, microxcaling)
    even_fp4      even with half an ulp of e2m1                  (torchao's constant for fp4)
    ============  ===================================================================

    Raises ValueError for an axis value that is not in `AXES`, for a name that is another rule's and
    for two choices that contradict each other; TypeError for a value that is no string.

    >>> from dataclasses import replace
    >>> Recipe(round="floor") == RECIPES["floor"]
    True
    >>> replace(RECIPES["rceil"], element="e5m2").label
    'rceil/e5m2'
    >>> Recipe(round="RCEIL")
    Traceback (most recent call last):
    ValueError: round='RCEIL': expected one of 'floor', 'rceil', 'ceil', 'even', 'even_fp4'
    """

    name: str = field(default="", compare=False)
    element: str = "e4m3"
    round: str = "rceil"
    ratio: str = ""
    byte_min: str = "00"
    byte_max: str = "fe"
    tiny: str = "nv"
    nan_scale: str = "ff"
    inf_scale: str = "ff"
    byte0_multiplier: str = "2^127"
    byte255_multiplier: str = "nan"
    overflow: str = "satfinite"
    element_round: str = "rne"
    nan_code: str = "7f"
    poison: str = "block"
    minus_zero: str = "keep"
    flush: str = "none"
    known_by: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not isinstance(value, str):
                raise TypeError(f"{each.name}={value!r}: expected a string")
        if self.name in AXES["round"] and self.name != self.round:
            raise ValueError(
                f"name={self.name!r}: the name of another rule than round={self.round!r}"
            )
        if not self.ratio:
            object.__setattr__(self, "ratio", _NATURAL_RATIO.get(self.round, "exponent"))
        for axis, allowed in (("element", tuple(ELEMENTS)), *AXES.items()):
            value = getattr(self, axis)
            if value not in allowed:
                expected = ", ".join(map(repr, allowed))
                raise ValueError(f"{axis}={value!r}: expected one of {expected}")
        for (one, its), (other, forbidden) in _NONSENSE:
            if (getattr(self, one), getattr(self, other)) == (its, forbidden):
                raise ValueError(f"{one}={its!r} does not go with {other}={forbidden!r}")

    @property
    def label(self) -> str:
        """A short name: the named recipe's own, with the element where it is not e4m3."""
        name = self.name or self.round
        return name if self.element == "e4m3" else f"{name}/{self.element}"

    @property
    def shown(self) -> str:
        """The label as people see it: with `(unverified)` where the source was never run.

        >>> RECIPES["gfloat"].shown, RECIPES["te"].shown
        ('gfloat', 'te (unverified)')
        """
        return self.label if self.known_by in ("", "run") else f"{self.label} (unverified)"


def _dialect(name: str, known_by: str = "run", **choices: str) -> tuple[str, Recipe]:
    return name, Recipe(name=name, known_by=known_by, **choices)


_ELEMENT_ONLY = {"poison": "element"}
_DIVIDES_BY_INF = {"poison": "element", "byte255_multiplier": "0"}
_TORCH_CPU = {"nan_code": "sign"}
_DROPS_NAN = {"poison": "element", "nan_scale": "dropped"}
_EXPONENT_BITS = {**_TORCH_CPU, **_DIVIDES_BY_INF, "inf_scale": "exponent"} | {
    "byte0_multiplier": "2^126"
}

_DIALECTS = (
    _dialect(
        "deepgemm", ratio="div_f32", tiny="amax_floor(1e-4)", byte_min="01", nan_scale="fe",
        inf_scale="fe", **_ELEMENT_ONLY, **_TORCH_CPU,
    ),
    _dialect(
        "fbgemm", ratio="log2_f32", inf_scale="fe", byte0_multiplier="1",
        byte255_multiplier="2^-128", **_ELEMENT_ONLY, **_TORCH_CPU,
    ),
    _dialect(
        "flashinfer_cute", "emulated", inf_scale="fe", byte0_multiplier="0",
        byte255_multiplier="0", overflow="preclamp_nan_max", flush="multiplier", **_DROPS_NAN,
    ),
    _dialect(
        "flashinfer_ref", ratio="div_f32", nan_scale="00", inf_scale="fe", byte0_multiplier="0",
        **_ELEMENT_ONLY, **_TORCH_CPU,
    ),
    _dialect("gfloat", round="floor", inf_scale="fe", nan_code="ff"),
    _dialect("quack_floor", round="floor", **_EXPONENT_BITS),
    _dialect(
        "quack_rceil", ratio="div_f32", tiny="bump", byte0_multiplier="2^126", **_DIVIDES_BY_INF,
        **_TORCH_CPU,
    ),
    _dialect(
        "sglang_col", "emulated", tiny="amax_floor(1e-10)", byte255_multiplier="-inf",
        overflow="preclamp_nan_min", flush="multiplier", **_DROPS_NAN,
    ),
    _dialect("te", "emulated", inf_scale="fe", **_DROPS_NAN),
    _dialect("te_fma", "emulated", inf_scale="fe", minus_zero="plus", **_DROPS_NAN),
    _dialect("torchao018_ceil", round="ceil", **_EXPONENT_BITS),
    _dialect("torchao018_even", round="even", **_EXPONENT_BITS),
    _dialect("torchao018_floor", round="floor", **_EXPONENT_BITS),
    _dialect("torchao018_rceil", ratio="log2_f32", inf_scale="fe", byte0_multiplier="1"),
    _dialect(
        "triton_kernels_up", "emulated", ratio="div_f32", tiny="bump",
        nan_scale="dropped_from_1", byte0_multiplier="0", **_DIVIDES_BY_INF,
    ),
    _dialect("vllm", "emulated", ratio="log2_f32", nan_scale="00", inf_scale="fe", **_TORCH_CPU),
)  # fmt: skip

RECIPES: Mapping[str, Recipe] = MappingProxyType(
    dict((*(_dialect(name, round=name) for name in ("floor", "rceil", "ceil", "even")), *_DIALECTS))
)
"""The named recipes. For another element: `dataclasses.replace(RECIPES[name], element=...)`."""


def resolve(recipe: object) -> Recipe:
    """The Recipe that `recipe` is or names; ValueError for an unknown name, TypeError otherwise."""
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str):
        raise TypeError(
            f"recipe={recipe!r}: expected a name or a Recipe, got {type(recipe).__name__}"
        )
    if recipe not in RECIPES:
        expected = ", ".join(map(repr, RECIPES))
        raise ValueError(f"recipe={recipe!r}: expected one of {expected}, or a Recipe")
    return RECIPES[recipe]
