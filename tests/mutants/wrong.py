"""Wrong quantizers, each a fault that shipped or an obvious slip, with a check that catches it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

import mxref
from tests.mutants.faults import (
    Racy,
    ReusedBuffer,
    at_least,
    byte_zero,
    ceil_after_clamp,
    cleans_input,
    dirty_padding,
    e5m2_inf,
    element_only,
    exact_ratio,
    first_half,
    flattened_lead,
    flush,
    flushed_ratio,
    fp16_as_bf16,
    half_away,
    inf_saturated,
    last_block_ignored,
    log2_in_fp32,
    nan_above_464,
    nan_dropped,
    offset_ignored,
    on_bytes,
    one_ulp_high,
    payload_shifted,
    refuses_nan,
    shifted_columns,
    shifted_rows,
    square_rows_repeated,
    storage_order,
    swapped_axis,
    tail_dropped,
    transposed,
    unswizzled,
    writes_outside,
    wrong_swizzle,
)
from tests.mutants.model import amax_of, fault


class Mutant(NamedTuple):
    """`fn` claims to be what `claims` say; `check` is one that must catch it, on `dtype`."""

    name: str
    check: str
    fn: Callable[[Tensor], Any]
    dtype: torch.dtype = torch.bfloat16
    claims: dict[str, Any] = {}  # noqa: RUF012 - never changed


FLOOR = {"recipe": "floor"}
SWIZZLED = {"scale_layout": "swizzle_32_4_4"}
FP32 = torch.float32


MUTANTS = (
    Mutant("an unknown mode is floor", "every_amax", fault(rule="floor")),
    Mutant("rceil where floor is meant", "thresholds", fault(), claims=FLOOR),
    Mutant("NaN dropped by fmax", "nonfinite", fault(amax=nan_dropped)),
    Mutant("Inf saturates", "nonfinite", fault(amax=inf_saturated)),
    Mutant("NaN poisons its element only", "nonfinite", on_bytes(element_only)),
    Mutant("amax of half a block", "every_amax", fault(amax=first_half)),
    Mutant("NaN above 464", "payload_table",
           fault(rule="floor", overflow=nan_above_464), claims=FLOOR),
    Mutant("Inf above the e5m2 maximum", "payload_table",
           fault(rule="floor", element="e5m2", overflow=e5m2_inf),
           claims={"recipe": mxref.Recipe(round="floor", element="e5m2")}),
    Mutant("truncates", "ties", fault(rounding=torch.floor)),
    Mutant("rounds half away", "ties", fault(rounding=half_away)),
    Mutant("rounds twice, through bf16", "ties",
           fault(narrow=lambda v: v.to(FP32).to(torch.bfloat16).double()), FP32),
    Mutant("rounds twice, through fp16", "ties",
           fault(narrow=lambda v: v.to(FP32).to(torch.float16).double()), FP32),
    Mutant("subnormal codes flushed", "ties",
           fault(narrow=lambda v: torch.where(v < 2.0**-6, v * 0, v))),
    Mutant("-0 becomes +0", "edge_blocks", fault(prepare=lambda x: x + 0.0)),
    Mutant("subnormal inputs flushed", "subnormals", fault(prepare=lambda x: flush(x.double()))),
    Mutant("subnormal ratio flushed", "thresholds", fault(byte=flushed_ratio), FP32),
    Mutant("byte 0 multiplies by 2^126", "edge_blocks", fault(multiplier=byte_zero(2.0**126))),
    Mutant("byte 0 multiplies by 1", "subnormals", fault(multiplier=byte_zero(1.0))),
    Mutant("log2 in fp32", "thresholds", fault(byte=log2_in_fp32), FP32),
    Mutant("amax in bf16", "thresholds",
           fault(amax=lambda t: amax_of(t).to(FP32).to(torch.bfloat16).double()), FP32),
    Mutant("448 doubles the scale", "edge_blocks", fault(byte=at_least)),
    Mutant("448 and an ulp does not", "thresholds", fault(byte=one_ulp_high), FP32),
    Mutant("the ratio of 0x04600001 not rounded", "edge_blocks", fault(byte=exact_ratio), FP32),
    Mutant("ceil counts up after the clamp", "thresholds", fault(byte=ceil_after_clamp), FP32,
           {"recipe": "ceil"}),
    Mutant("fnuz bias", "edge_blocks",
           on_bytes(lambda x, p, s: ((p & 0x80) | ((p & 0x7F) + 8).clamp_max(0x7F), s))),
    Mutant("sign kept on NaN", "edge_blocks",
           on_bytes(lambda x, p, s: (p | (torch.signbit(x).to(torch.uint8) << 7), s)),
           claims={"nan": "strict"}),
    Mutant("last block ignored", "shapes", on_bytes(last_block_ignored)),
    Mutant("tail ignored", "ragged", tail_dropped),
    Mutant("scale transposed", "positions", on_bytes(transposed)),
    Mutant("scale rows above 128 shifted", "positions", on_bytes(shifted_rows)),
    Mutant("scale columns above 128 shifted", "positions", on_bytes(shifted_columns)),
    Mutant("payload rows above 128 shifted", "positions", on_bytes(payload_shifted)),
    Mutant("row and column swapped", "positions", swapped_axis),
    Mutant("scale not swizzled", "positions", on_bytes(unswizzled), claims=SWIZZLED),
    Mutant("swizzled wrongly", "positions", on_bytes(wrong_swizzle), claims=SWIZZLED),
    Mutant("padding not zero", "shapes", on_bytes(dirty_padding), claims=SWIZZLED),
    Mutant("square tile repeated into the padding", "shapes",
           on_bytes(square_rows_repeated, block=(32, 32)),
           claims={**SWIZZLED, "block": (32, 32), "contract": -1}),
    Mutant("leading dimensions flattened into rows", "ranks", on_bytes(flattened_lead),
           claims=SWIZZLED),
    Mutant("payload column-major where row-major is claimed", "payload_order",
           on_bytes(lambda x, p, s: (p.mT.contiguous().mT, s)), claims={"payload_order": "row"}),
    Mutant("input changed", "input_unchanged", cleans_input),
    Mutant("writes beside a view", "strides", writes_outside),
    Mutant("reads storage order", "strides", storage_order),
    Mutant("storage offset ignored", "offsets", offset_ignored),
    Mutant("output buffer used again", "result_kept", ReusedBuffer()),
    Mutant("not deterministic", "repeatable", Racy()),
    Mutant("raises for NaN only", "nonfinite", refuses_nan),
    Mutant("fp16 through bf16", "every_amax", fp16_as_bf16, torch.float16),
    Mutant("square: NaN dropped", "nonfinite", fault(block=(32, 32), amax=nan_dropped),
           claims={"block": (32, 32)}),
    Mutant("column blocks: last rows ignored", "ties",
           fault(block=(32, 1), amax=lambda t: amax_of(t[:, :, :24])), claims={"block": (32, 1)}),
)  # fmt: skip
