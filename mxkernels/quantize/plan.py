"""What a Triton launch knows of a tensor: grid, sizes, which masks and widths are needed."""

from dataclasses import dataclass
from typing import Any

import torch

from mxkernels import arch
from mxkernels.quantize.configs import Family, TileConfig, tile_interpreted
from mxkernels.quantize.plans import Buffers
from mxkernels.quantize.shapes import tile_count

DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
BITS = {torch.bfloat16: torch.int16, torch.float16: torch.int16, torch.float32: torch.int32}


def default(x: torch.Tensor, meant: Family) -> TileConfig:
    """The configuration taken when the caller names none."""
    if x.device.type == "cpu":
        return tile_interpreted(*x.shape[1:])
    # rounding in integers, below sm_90, takes as many registers as a wide input does
    return meant.default(x.numel(), x.itemsize if arch.hardware_e4m3(x.device) else 4)


@dataclass(slots=True)
class Launch:
    """A kernel, its grid, its arguments after the tensors, and what it is compiled with.

    `swapped`: of both directions, the kernel takes the buffers of columns first. `compiled` is what
    Triton launched the first time: all that its choice depends on (integers, alignment, dtypes,
    device) is the same each time, so it need not be found anew.
    """

    kernel: Any
    grid: tuple[int]
    arguments: tuple[Any, ...]
    options: dict[str, int]
    device: torch.device
    swapped: bool = False
    compiled: Any = None

    def start(self, x: torch.Tensor, buffers: Buffers) -> None:
        """Launch on tensors that lie as those the launch was made for."""
        if self.device.type == "cuda" and self.device.index != torch.cuda.current_device():
            with torch.cuda.device(self.device):
                self.start(x, buffers)
            return
        tensors = [buffer.view(torch.uint8) for buffer in buffers]
        if self.swapped:
            tensors = tensors[2:] + tensors[:2]
        bits = x.view(BITS[x.dtype])
        if self.compiled is None:
            # The interpreter returns None.
            launched = self.kernel[self.grid](bits, *tensors, *self.arguments, **self.options)
            # A compiled kernel takes three sizes of a grid.
            self.compiled = launched and launched[(*self.grid, 1, 1)]
        else:
            self.compiled(bits, *tensors, *self.arguments)


def compile_options(warps: int, registers: int | None = None) -> dict[str, int]:
    """What Triton takes of a configuration; AMD's back end bounds no registers.

    >>> compile_options(4, 168)
    {'num_warps': 4, 'maxnreg': 168}
    """
    bounded = registers is not None and torch.version.hip is None
    return {"num_warps": warps} | ({"maxnreg": registers} if bounded else {})


def over_tiles(
    kernel: Any,
    x: torch.Tensor,
    turned: torch.Tensor | None,
    scales: Buffers,
    config: TileConfig,
    rule: str,
    *way: object,
    padded: bool,
) -> Launch:
    """The launch of a kernel that takes a tile of `x`, of rank 3, a program.

    `turned`: the payload that is stored transposed. `way`: what the kernel takes between its dtype
    and its constants. `padded`: swizzled scales; tiles cover their padding to 128 x 4, masks end
    at x.
    """
    matrices, rows, columns = x.shape
    unit = 128 if padded else 1
    down = tile_count(rows, unit, config.rows)
    across = tile_count(columns, unit, config.columns)
    even = rows % max(config.rows, unit) == 0 and columns % max(config.columns, unit) == 0
    widest = max(config.rows * max(x.stride(1), columns), config.columns * rows)
    # Words of four bytes need aligned columns and an aligned buffer.
    aligned = turned is not None and rows % 4 == 0 and turned.data_ptr() % 4 == 0
    sizes = rows, columns, x.stride(1), x.stride(0) if matrices > 1 else 0
    steps = [scale.numel() // matrices for scale in scales]
    tile = config.rows, config.columns, config.kept, config.vector, config.rows_first, config.stream
    constants = arch.hardware_e4m3(x.device), even, aligned, widest >= 2**31, *tile
    arguments = (*sizes, *steps, down, across, rule, DTYPES[x.dtype], *way, *constants)
    options = compile_options(config.warps, config.registers)
    return Launch(kernel, (matrices * down * across,), arguments, options, x.device)
