"""Where two files of vectors part, in a line: the case, the position, both bytes."""

import json
from typing import Any


def first_difference(name: str, found: bytes, expected: bytes) -> str | None:
    """None if the bytes are the same, else a line about the first one that is not."""
    if found == expected:
        return None
    at = _first(found, expected)
    place = _PLACES[name.rpartition(".")[2]](expected, at)
    line = f"{name}: {place}, byte {at} of the file: {_byte(found, at)}, expected "
    line += _byte(expected, at)
    if len(found) != len(expected):
        line += f" ({len(found)} bytes in all, expected {len(expected)})"
    return line


def _first(found: bytes, expected: bytes) -> int:
    """The first position in which they differ, by halving: slices compare at memory's speed."""
    low, high = 0, min(len(found), len(expected))
    if found[:high] == expected[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if found[low:middle] == expected[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _byte(data: bytes, at: int) -> str:
    if at >= len(data):
        return "the end of the file"
    shown = f" ({chr(data[at])!r})" if 32 <= data[at] < 127 else ""
    return f"0x{data[at]:02X}{shown}"


def _in_text(expected: bytes, at: int) -> str:
    """The case, and which of its arrays: the last such words at or before the position."""
    start = expected.rfind(b"\ncase ", 0, at + 1)
    if start < 0:
        return "the head"
    lines = expected[start + 1 : at + 1].decode("ascii").split("\n")
    whole = expected[start + 6 :].split(b"\n", 2)
    case, dtype = whole[0].decode("ascii"), whole[1].decode("ascii").removeprefix("dtype ")
    arrays = [line for line in lines[:-1] if line in ("x", "payload", "scale")]
    return f"case {case} of {dtype}, {arrays[-1] if arrays else 'its head'}"


def _in_tensors(expected: bytes, at: int) -> str:
    """The tensor whose bytes the position lies in, by the offsets in the header."""
    start = 8 + int.from_bytes(expected[:8], "little")
    header: dict[str, Any] = json.loads(expected[8:start])
    for tensor, described in header.items():
        if tensor != "__metadata__":
            begin, end = described["data_offsets"]
            if start + begin <= at < start + end:
                dtype, case, array = tensor.split("/")
                return f"case {case} of {dtype}, {array}, byte {at - start - begin} of it"
    return "the header" if at < start else "after the last case"


def _in_manifest(expected: bytes, at: int) -> str:
    line = expected.count(b"\n", 0, at) + 1
    return f"line {line}"


_PLACES = {"txt": _in_text, "safetensors": _in_tensors, "json": _in_manifest}
