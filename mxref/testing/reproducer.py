"""A failure as a snippet of Python that runs as it is and shows the failure again.

Short where one block alone shows it: the snippet holds that block's bits and bytes. Else it asks
for the check's own input again, or for the check, which are the same on every machine.
"""

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pprint import pformat
from typing import Any

import torch

from mxref.recipes import RECIPES
from mxref.testing.arrange import arrange
from mxref.testing.check import Setting
from mxref.testing.claims import INPUT_FORMATS, Claims
from mxref.testing.diff import Difference, first_difference
from mxref.testing.judge import Judge, Refused, Wrong

_IMPORTABLE = re.compile(r"(?!__main__)[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def reproducer(
    fn: Callable[..., Any], name: str, setting: Setting, check: str, difference: Difference | None
) -> str:
    """The snippet for a failure of `check`; `difference` is None where no block is to blame."""
    alone = _alone(fn, setting, difference) if difference else None
    if alone is not None:
        return _block_snippet(name, setting, alone)
    return _check_snippet(name, setting, check)


def _alone(fn: Callable[..., Any], setting: Setting, found: Difference) -> Difference | None:
    """The difference that the block shows at the corner of the smallest matrix, if it does."""
    if len(found.input_bits) != setting.block_elements:
        return None
    x = setting.matrix(torch.tensor([found.input_bits]))
    judge = Judge(fn, setting.claims)
    try:
        actual = judge.ask(x.clone())
        return first_difference(x, actual, judge.expected(x, actual), setting.claims)
    except (Refused, Wrong):
        return None


def _head(name: str) -> str:
    module, _, attribute = name.partition(":")
    if _IMPORTABLE.fullmatch(name):
        found = f"from {module} import {attribute} as target"
    elif name.endswith("()") and _IMPORTABLE.fullmatch(name[:-2]):
        found = f"from {module} import {attribute[:-2]}\n\ntarget = {attribute}.quantize"
    else:
        found = (
            f"if 'target' not in globals():  # the target was {name}\n"
            "    raise SystemExit('set target to the function x -> (payload, scale) first')"
        )
    return f"import torch\nimport mxref\n\n{found}\n\n"


def _block_snippet(name: str, setting: Setting, found: Difference) -> str:
    """`found` was seen in a matrix of one block and zeros: this builds the same one."""
    claims, fmt = setting.claims, setting.fmt
    assert found.expected is not None
    rows, columns = arrange(torch.zeros(1, setting.block_elements), claims.block, claims.step).shape
    bits = [b - (1 << fmt.bits) if b >> (fmt.bits - 1) else b for b in found.input_bits]
    at = ", ".join(map(str, found.block_index))
    top, left = found.block_index[0] * claims.block[0], found.block_index[1] * claims.block[1]
    tile = f"[{top}:{top + claims.block[0]}, {left}:{left + claims.block[1]}]"
    lines = [
        f"# {found.message}",
        f"bits = {_listed(bits)}",
        f"patterns = torch.zeros({rows}, {columns}, dtype=torch.{_integer(setting)})",
        f"patterns{tile} = torch.tensor(bits).reshape{claims.block}",
        f"x = patterns.view({setting.dtype}).to({str(claims.device)!r})",
        f"expected_scale = {found.expected.scale}",
        f"expected_payload = {_listed(found.expected.payload)}",
        "",
        "payload, scale = target(x)",
        f"payload = payload.view(torch.uint8){tile}.reshape(-1).tolist()",
        *_scale_lines(claims, at),
    ]
    if claims.nan == "any":
        # every code that is NaN as the canonical one
        last = claims.element.inf_code or claims.element.nan_code - 1
        lines.append(f"payload = [c if c & 0x7F <= {last} else 0x7F for c in payload]")
    lines += [
        "print('scale  ', scale, 'expected', expected_scale)",
        "print('payload', payload)",
        "print('expected', expected_payload)",
        "assert (scale, payload) == (expected_scale, expected_payload), 'bytes differ'",
    ]
    return _head(name) + "\n".join(lines) + "\n"


def _listed(values: Sequence[int]) -> str:
    """A list as Python text; long runs of one value are written as a product."""
    runs = [(value, len(list(group))) for value, group in groupby(values)]
    if len(runs) > 8:
        return pformat(list(values), width=96, compact=True)
    return " + ".join(f"[{value}] * {count}" for value, count in runs)


def _scale_lines(claims: Claims, at: str) -> list[str]:
    if claims.scale_layout == "plain":
        return [f"scale = int(scale.view(torch.uint8)[{at}])"]
    keywords = f"block={claims.block}, shape=tuple(x.shape), contract={claims.contract}"
    return [
        "scale = scale.view(torch.uint8).reshape(-1)",
        f"scale = mxref.layouts.decode(scale, {claims.scale_layout!r}, {keywords})",
        f"scale = int(scale[{at}])",
    ]


def _check_snippet(name: str, setting: Setting, check: str) -> str:
    """The check alone, on this dtype: its inputs are made again from the seed."""
    claims = setting.claims
    known = RECIPES.get(claims.recipe.name) == claims.recipe
    arguments = {
        "recipe": repr(claims.recipe.name) if known else f"mxref.{claims.recipe!r}",
        "block": claims.block,
        "scale_layout": repr(claims.scale_layout),
        "contract": claims.contract,
        "dtypes": f"({setting.dtype},)",
        "device": repr(str(claims.device)),
        "level": repr(claims.level),
        "multiple_of": claims.multiple_of,
        "nan": repr(claims.nan),
        "payload_order": repr(claims.payload_order),
        "flushes_subnormals": claims.flushes_subnormals,
        "deterministic": claims.deterministic,
        "exact_scales": claims.exact_scales,
        "seed": claims.seed,
        "checks": f"({check!r},)",
    }
    listed = "".join(f"    {key}={value},\n" for key, value in arguments.items())
    body = f"report = mxref.testing.verify(\n    target,\n{listed})\n"
    return _head(name) + body + "print(report)\nassert report.passed, report.failures[0].message\n"


def _integer(setting: Setting) -> str:
    return f"int{INPUT_FORMATS[setting.dtype].bits}"
