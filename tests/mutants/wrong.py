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
from tests.mutants.more_faults import (
    all_but_last,
    at_least_epsilon,
    bump,
    carry_lost,
    clamped_at_240,
    column_major,
    column_swizzle_untransposed,
    emax_of_e4m3,
    encoded,
    first_expert,
    first_row,
    inf_is_254,
    last_rows_stale,
    log2_rounded,
    maximum_240,
    moved,
    nan_at,
    nan_dropped_to_maximum,
    next_block,
    nibbles_swapped,
    other_dtype,
    overflow_to_zero,
    pairs,
    pairs_swapped,
    raw,
    reciprocal_stored,
    scale_of_transposed_shape,
    sign_lost,
    signed,
    square_transposed,
    stale_padding,
    stochastic,
    tail_reads_on,
    tiles_by_columns,
    truncated_to_bf16,
    unbiased,
    underflow_loses_sign,
    whole_row,
    whole_tensor,
)
from tests.mutants.right import nan_is_ff


class Mutant(NamedTuple):
    """`fn` claims to be what `claims` say; `check` is one that must catch it, on `dtype`.

    `cause` is part of the text that names the true cause.
    """

    name: str
    check: str
    cause: str
    fn: Callable[[Tensor], Any]
    dtype: torch.dtype = torch.bfloat16
    claims: dict[str, Any] = {}  # noqa: RUF012 - never changed


FLOOR = {"recipe": "floor"}
SWIZZLED = {"scale_layout": "swizzle_32_4_4"}
COLUMNS = {"block": (32, 1)}
SQUARE = {"block": (32, 32)}
E5M2 = {"recipe": mxref.Recipe(round="floor", element="e5m2")}
FP32 = torch.float32


RULES = (
    Mutant("an unknown mode is floor", "every_amax", "recipe 'floor'", fault(rule="floor")),
    Mutant("rceil where floor is meant", "thresholds", "recipe 'rceil'", fault(), claims=FLOOR),
    Mutant("ceil where rceil is meant", "every_amax", "recipe 'ceil'", lambda x: raw(x, "ceil")),
    Mutant("even where floor is meant", "every_amax", "recipe 'even'",
           lambda x: raw(x, "even"), claims=FLOOR),
    Mutant("floor in column blocks", "every_amax", "recipe 'floor'",
           fault(rule="floor", block=(32, 1)), claims=COLUMNS),
    Mutant("subnormal ratio flushed", "thresholds", "subnormal ratio",
           fault(byte=flushed_ratio), FP32),
    Mutant("log2 in fp32", "thresholds", "log2", fault(byte=log2_in_fp32), FP32),
    Mutant("log2 rounded, not floored", "every_amax", "log2 is rounded",
           fault(rule="floor", byte=log2_rounded), claims=FLOOR),
    Mutant("448 doubles the scale", "edge_blocks", "exactly at a threshold", fault(byte=at_least)),
    Mutant("448 and an ulp does not", "thresholds", "one ulp above",
           fault(byte=one_ulp_high), FP32),
    Mutant("the ratio of 0x04600001 not rounded", "edge_blocks", "0x04600001",
           fault(byte=exact_ratio), FP32),
    Mutant("ceil counts up after the clamp", "thresholds", "after the clamp",
           fault(byte=ceil_after_clamp), FP32, {"recipe": "ceil"}),
    Mutant("tiny amax bumped to byte 1", "subnormals", "byte 1", fault(byte=bump)),
    Mutant("amax at least 1e-4", "edge_blocks", "at least 0.0001",
           fault(byte=at_least_epsilon(1e-4))),
    Mutant("amax at least 1e-10", "edge_blocks", "at least 1e-10",
           fault(byte=at_least_epsilon(1e-10))),
    Mutant("scale one too high", "edge_blocks", "off by +1", fault(byte=moved(1))),
    Mutant("scale one too low", "edge_blocks", "off by -1", fault(rule="floor", byte=moved(-1)),
           claims=FLOOR),
    Mutant("the maximum is 240", "every_amax", "maximum of 240", fault(byte=maximum_240)),
    Mutant("emax of e4m3 in e5m2", "edge_blocks", "off by +7",
           fault(rule="floor", element="e5m2", byte=emax_of_e4m3), claims=E5M2),
    Mutant("scale without bias", "edge_blocks", "without the bias", on_bytes(unbiased)),
    Mutant("scale stored as its reciprocal", "edge_blocks", "reciprocal",
           on_bytes(reciprocal_stored)),
)  # fmt: skip

AMAX = (
    Mutant("amax of half a block", "every_amax", "first 16 elements", fault(amax=first_half)),
    Mutant("amax without the last element", "every_amax", "first 31 elements",
           fault(amax=all_but_last)),
    Mutant("amax of 64 elements", "every_amax", "over 64 columns", fault(amax=pairs)),
    Mutant("one scale for the tensor", "edge_blocks", "per-tensor", fault(amax=whole_tensor)),
    Mutant("one scale for a row", "every_amax", "each row", fault(amax=whole_row)),
    Mutant("signed max", "every_amax", "signed", fault(amax=signed)),
    Mutant("amax in bf16", "thresholds", "bf16",
           fault(amax=lambda t: amax_of(t).to(FP32).to(torch.bfloat16).double()), FP32),
    Mutant("amax in bf16, floor", "thresholds", "bf16",
           fault(rule="floor", amax=lambda t: amax_of(t).to(FP32).to(torch.bfloat16).double()),
           FP32, FLOOR),
    Mutant("square: amax of the first row", "ties", "first row of a square",
           fault(block=(32, 32), amax=first_row), claims=SQUARE),
    Mutant("square: amax of half the columns", "positions", "first 16 columns",
           fault(block=(32, 32), amax=first_half), claims=SQUARE),
    Mutant("column blocks: last rows ignored", "ties", "last 8 are ignored",
           fault(block=(32, 1), amax=lambda t: amax_of(t[:, :, :24])), claims=COLUMNS),
)  # fmt: skip

SPECIAL = (
    Mutant("NaN dropped by fmax", "nonfinite", "NaN is dropped", fault(amax=nan_dropped)),
    Mutant("NaN dropped, its payload the maximum", "nonfinite", "NaN is dropped",
           nan_dropped_to_maximum),
    Mutant("NaN gives byte 0", "nonfinite", "NaN gives its block the scale byte 0",
           nan_at(0x7F, 0)),
    Mutant("NaN gives byte 254", "nonfinite", "NaN gives its block the scale byte 254",
           nan_at(0, 254)),
    Mutant("NaN block with zero payload", "nonfinite", "payload 0x00", nan_at(0, 255)),
    Mutant("Inf saturates", "nonfinite", "Inf is treated as finite", fault(amax=inf_saturated)),
    Mutant("Inf gives byte 254", "nonfinite", "Inf is treated as finite: scale 254", inf_is_254),
    Mutant("NaN poisons its element only", "nonfinite", "element only", on_bytes(element_only)),
    Mutant("square: NaN dropped", "nonfinite", "NaN is dropped",
           fault(block=(32, 32), amax=nan_dropped), claims=SQUARE),
    Mutant("column blocks: Inf saturates", "nonfinite", "Inf is treated as finite",
           fault(block=(32, 1), amax=inf_saturated), claims=COLUMNS),
    Mutant("sign kept on NaN", "edge_blocks", "sign is kept on NaN",
           on_bytes(lambda x, p, s: (p | (torch.signbit(x).to(torch.uint8) << 7), s)),
           claims={"nan": "strict"}),
    Mutant("NaN written as 0xFF", "nonfinite", "0xFF", nan_is_ff, claims={"nan": "strict"}),
    Mutant("raises for NaN only", "nonfinite", "NaN in input", refuses_nan),
)  # fmt: skip

ELEMENTS = (
    Mutant("NaN above 464", "payload_table", "saturation is missing",
           fault(rule="floor", overflow=nan_above_464), claims=FLOOR),
    Mutant("Inf above the e5m2 maximum", "payload_table", "saturation is missing",
           fault(rule="floor", element="e5m2", overflow=e5m2_inf), claims=E5M2),
    Mutant("overflow becomes zero", "payload_table", "overflow becomes zero",
           fault(rule="floor", overflow=overflow_to_zero), claims=FLOOR),
    Mutant("clamped at 240", "payload_table", "240", fault(rule="floor", overflow=clamped_at_240),
           claims=FLOOR),
    Mutant("truncates", "ties", "truncated", fault(rounding=torch.floor)),
    Mutant("truncates, square", "ties", "truncated", fault(rounding=torch.floor, block=(32, 32)),
           claims=SQUARE),
    Mutant("rounds half away", "ties", "half away", fault(rounding=half_away)),
    Mutant("carry lost in rounding", "ties", "carry", fault(rounding=carry_lost)),
    Mutant("stochastic rounding", "ties", "stochastic", fault(rounding=stochastic)),
    Mutant("rounds twice, through bf16", "ties", "twice, through bf16",
           fault(narrow=lambda v: v.to(FP32).to(torch.bfloat16).double()), FP32),
    Mutant("rounds twice, through fp16", "ties", "twice, through fp16",
           fault(narrow=lambda v: v.to(FP32).to(torch.float16).double()), FP32),
    Mutant("subnormal codes flushed", "ties", "flushed to zero",
           fault(narrow=lambda v: torch.where(v < 2.0**-6, v * 0, v))),
    Mutant("-0 becomes +0", "edge_blocks", "-0 is lost", fault(prepare=lambda x: x + 0.0)),
    Mutant("-0 from underflow becomes +0", "edge_blocks", "-0 is lost",
           on_bytes(underflow_loses_sign)),
    Mutant("the sign is lost", "edge_blocks", "sign is lost", on_bytes(sign_lost)),
    Mutant("subnormal inputs flushed", "subnormals", "subnormal inputs",
           fault(prepare=lambda x: flush(x.double()))),
    Mutant("subnormal inputs flushed, column blocks", "subnormals", "subnormal inputs",
           fault(prepare=lambda x: flush(x.double()), block=(32, 1)), claims=COLUMNS),
    Mutant("byte 0 multiplies by 2^126", "edge_blocks", "byte 0 is wrong: 2^126",
           fault(multiplier=byte_zero(2.0**126))),
    Mutant("byte 0 multiplies by 1", "subnormals", "byte 0 is wrong",
           fault(multiplier=byte_zero(1.0))),
    Mutant("fnuz bias", "edge_blocks", "bias",
           on_bytes(lambda x, p, s: ((p & 0x80) | ((p & 0x7F) + 8).clamp_max(0x7F), s))),
    Mutant("fp16 through bf16", "every_amax", "converted to bf16", fp16_as_bf16, torch.float16),
    Mutant("fp32 cut to bf16", "every_amax", "truncated to bf16",
           fault(prepare=truncated_to_bf16), FP32),
)  # fmt: skip

PLACES = (
    Mutant("last block ignored", "shapes", "last block of each row", on_bytes(last_block_ignored)),
    Mutant("tail ignored", "ragged", "tail block is ignored", tail_dropped),
    Mutant("tail reads on behind the row", "ragged", "reads beyond the row", tail_reads_on),
    Mutant("last rows never written", "shapes", "never written", on_bytes(last_rows_stale)),
    Mutant("scale transposed", "positions", "transposed", on_bytes(transposed)),
    Mutant("square: scale transposed", "positions", "transposed", square_transposed, claims=SQUARE),
    Mutant("plain where plain_t is claimed", "positions", "layout 'plain'",
           encoded("plain", (1, 32)),
           claims={"scale_layout": "plain_t"}),
    Mutant("plain_t not transposed, column blocks", "positions", "layout 'plain'",
           encoded("plain", (32, 1)), claims={**COLUMNS, "scale_layout": "plain_t"}),
    Mutant("scale one block too far", "positions", "shifted by 1", on_bytes(next_block)),
    Mutant("scale rows above 128 shifted", "positions", "rows are shifted by 128",
           on_bytes(shifted_rows)),
    Mutant("scale columns above 128 shifted", "positions", "columns are shifted by 128",
           on_bytes(shifted_columns)),
    Mutant("payload rows above 128 shifted", "positions", "rows are shifted by 128",
           on_bytes(payload_shifted)),
    Mutant("row and column swapped", "positions", "axis are swapped", swapped_axis),
    Mutant("payload stored column-major", "positions", "column-major", on_bytes(column_major)),
    Mutant("pairs of payload bytes swapped", "positions", "byte order", on_bytes(pairs_swapped)),
    Mutant("nibbles swapped", "edge_blocks", "nibbles", on_bytes(nibbles_swapped)),
    Mutant("scale not swizzled", "positions", "not swizzled",
           on_bytes(unswizzled), claims=SWIZZLED),
    Mutant("swizzled wrongly", "positions", "swizzled", on_bytes(wrong_swizzle), claims=SWIZZLED),
    Mutant("tiles of the swizzle by columns", "positions", "tiles by columns",
           on_bytes(tiles_by_columns), claims=SWIZZLED),
    Mutant("column blocks: swizzle not transposed", "positions", "swizzled transposed",
           column_swizzle_untransposed, claims={**SWIZZLED, **COLUMNS}),
    Mutant("square: swizzled for the other direction", "positions", "other direction",
           encoded("swizzle_32_4_4", (32, 32), -2),
           claims={**SWIZZLED, **SQUARE, "contract": -1}),
    Mutant("padding not zero", "shapes", "padding is not zero", on_bytes(dirty_padding),
           claims=SWIZZLED),
    Mutant("padding never written", "shapes", "padding is not zero", on_bytes(stale_padding),
           claims=SWIZZLED),
    Mutant("square tile repeated into the padding", "shapes", "padding is not zero",
           on_bytes(square_rows_repeated, block=(32, 32)),
           claims={**SWIZZLED, **SQUARE, "contract": -1}),
    Mutant("leading dimensions flattened into rows", "ranks", "flattened into rows",
           on_bytes(flattened_lead), claims=SWIZZLED),
    Mutant("every matrix has the scales of the first", "ranks", "dimension 0",
           on_bytes(first_expert)),
)  # fmt: skip

CALLS = (
    Mutant("input changed", "input_unchanged", "wrote into its input", cleans_input),
    Mutant("writes beside a view", "strides", "wrote into its input", writes_outside),
    Mutant("reads storage order", "strides", "strides are ignored", storage_order),
    Mutant("storage offset ignored", "offsets", "storage offset", offset_ignored),
    Mutant("output buffer used again", "result_kept", "result_kept", ReusedBuffer()),
    Mutant("not deterministic", "repeatable", "repeatable", Racy()),
    Mutant("payload of another dtype", "edge_blocks", "dtype", other_dtype),
    Mutant("scale of the transposed shape", "shapes", "stored transposed", scale_of_transposed_shape),
)  # fmt: skip

MUTANTS = (*RULES, *AMAX, *SPECIAL, *ELEMENTS, *PLACES, *CALLS)
