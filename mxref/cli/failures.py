"""A failure for people: the first wrong block in bits, its bytes, and the snippet to copy."""

from mxref.cli import screen, values
from mxref.formats import ELEMENTS, INPUTS, SCALE_BIAS, SCALE_NAN, ElementFormat, InputFormat
from mxref.testing.report import BlockBytes, Failure

_ROWS = 8
"""Differing elements that are shown in bits; the bytes of the block follow in full."""

_PER_LINE = 32


def show(failure: Failure, element: ElementFormat = ELEMENTS["e4m3"]) -> None:
    """Print the failure."""
    where = f", block {list(failure.block_index)}" if failure.block_index else ""
    dtype = f", {failure.dtype}" if failure.dtype else ""
    screen.plain(f"\nfailed: {failure.check}{dtype}{where}: {failure.message}")
    if failure.expected is not None and failure.actual is not None:
        _show_block(failure, failure.expected, failure.actual, element)
    for line in failure.verdict_lines():
        screen.plain(line)
    if failure.reproducer:
        screen.plain("\nreproducer:\n")
        screen.plain(failure.reproducer.rstrip("\n"))


def _show_block(
    failure: Failure, expected: BlockBytes, actual: BlockBytes, element: ElementFormat
) -> None:
    fmt = input_format(failure.dtype)
    wrong = "" if expected.scale == actual.scale else "  <- differs"
    screen.plain(f"scale: expected {_scale(expected.scale)}, actual {_scale(actual.scale)}{wrong}")
    differing = [
        at
        for at, pair in enumerate(zip(expected.payload, actual.payload, strict=False))
        if pair[0] != pair[1]
    ]
    if differing:
        columns = ("element", "input", "value", "expected", "actual")
        table = screen.table(*columns, numbers=columns[:1])
        for at in differing[:_ROWS]:
            bits = failure.input_bits[at] if at < len(failure.input_bits) else None
            table.add_row(
                str(at),
                "" if bits is None or fmt is None else _pattern(bits, fmt),
                "" if bits is None or fmt is None else values.name(bits, fmt),
                values.fields(expected.payload[at], 8, element.mantissa_bits),
                values.fields(actual.payload[at], 8, element.mantissa_bits),
            )
        screen.results().print(table)
        if len(differing) > _ROWS:
            screen.plain(f"and {len(differing) - _ROWS} more elements of this block")
    digits = 4 if fmt is None else fmt.bits // 4
    _show_bytes("input bits", failure.input_bits, digits)
    _show_bytes("expected payload", expected.payload, 2)
    _show_bytes("actual payload", actual.payload, 2)


def input_format(dtype: str) -> InputFormat | None:
    """The format that a failure's dtype names: bf16, bfloat16 or torch.bfloat16."""
    name = dtype.removeprefix("torch.")
    return next((row for row in INPUTS.values() if name in (row.name, row.torch_dtype)), None)


def _pattern(bits: int, fmt: InputFormat) -> str:
    return values.fields(bits, fmt.bits, fmt.mantissa_bits)


def _scale(byte: int) -> str:
    return f"0x{byte:02X} = " + ("NaN" if byte == SCALE_NAN else f"2^{byte - SCALE_BIAS}")


def _show_bytes(title: str, numbers: tuple[int, ...], digits: int) -> None:
    for start in range(0, len(numbers), _PER_LINE):
        line = " ".join(f"{each:0{digits}X}" for each in numbers[start : start + _PER_LINE])
        screen.plain(
            f"{title}: {line}" if len(numbers) <= _PER_LINE else f"{title} {start}: {line}"
        )
