"""The checks, one file each, in the order in which they run.

A new check is a new file with a `CHECK`, and its name in this tuple. `matrices` comes first: a
target that raises there has declined the dtype, and no other check of it runs.
"""

from mxref.testing.check import Check
from mxref.testing.checks import (
    edge_blocks,
    empty,
    every_amax,
    every_fp32_amax,
    fuzz,
    input_unchanged,
    large,
    matrices,
    multiples,
    new_numbers,
    nonfinite,
    offsets,
    payload_order,
    payload_table,
    positions,
    ragged,
    random_bits,
    ranks,
    repeatable,
    result_kept,
    rows,
    shapes,
    strides,
    subnormals,
    thresholds,
    ties,
)

CHECKS: tuple[Check, ...] = (
    matrices.CHECK,
    edge_blocks.CHECK,
    nonfinite.CHECK,
    new_numbers.CHECK,
    subnormals.CHECK,
    every_amax.CHECK,
    thresholds.CHECK,
    ties.CHECK,
    payload_table.CHECK,
    random_bits.CHECK,
    positions.CHECK,
    shapes.CHECK,
    payload_order.CHECK,
    input_unchanged.CHECK,
    repeatable.CHECK,
    result_kept.CHECK,
    multiples.CHECK,
    rows.CHECK,
    ragged.CHECK,
    empty.CHECK,
    ranks.CHECK,
    strides.CHECK,
    offsets.CHECK,
    every_fp32_amax.CHECK,
    large.CHECK,
    fuzz.CHECK,
)
