"""From a tensor and buffers to a launch of a CUDA kernel.

What is decided once for a shape, its strides and a request is a Plan: the kernel, the grid and
every argument but the addresses. Plans are remembered, so that a call that was made before costs a
look-up and a launch.
"""

from typing import Any, NamedTuple

import torch

from mxkernels import arch, cubins
from mxkernels.quantize import cuda_configs
from mxkernels.quantize.canonical import Both, Case, both, canonical
from mxkernels.quantize.cuda_configs import CudaFlat, CudaTile
from mxkernels.quantize.plans import Buffers, planned
from mxkernels.quantize.shapes import SWIZZLE, tile_count

TYPES = {torch.bfloat16: 0, torch.float16: 1, torch.float32: 2}
UE8M0 = "rceil_ue8m0"
"""rceil by the instruction cvt.rp.ue8m0x2.f32, a macro of the kernels."""

RULES = {"floor": 0, "rceil": 1, "ceil": 2, "even": 3, UE8M0: 1}
BLOCKS = {(1, 32): 0, (32, 1): 1, (32, 32): 2}
LAYOUTS = {"plain": 0, "plain_t": 1, SWIZZLE: 2}
ROWS_FIRST, ALIGNED, ALIGNED_ROW, ALIGNED_COLUMN, FOLDED = 4, 8, 16, 32, 64

MOST_DOWN = 65535
"""The limit of a grid's second and third dimension."""


class Plan(NamedTuple):
    """A kernel, its launch configuration and its arguments after the addresses.

    `swapped`: of both directions, the kernel takes the buffers of columns first.
    """

    kernel: Any
    launch: Any
    arguments: tuple[int, ...]
    device: int
    swapped: bool = False

    def start(self, x: torch.Tensor, buffers: Buffers) -> None:
        """Launch on tensors that lie as those the plan was made for."""
        if self.swapped:
            buffers = (*buffers[2:], *buffers[:2])
        self.run(x.data_ptr(), *[buffer.data_ptr() for buffer in buffers])

    def run(self, *addresses: int) -> None:
        """Launch on torch's current stream of the device, which need not be the current one."""
        device = self.device
        if device == torch._C._cuda_getDevice():
            cubins.launcher()(
                cubins.stream(device), self.launch, self.kernel, *addresses, *self.arguments
            )
        else:
            with torch.cuda.device(device):
                self.run(*addresses)


def launch_config(grid: tuple[int, ...], block: tuple[int, ...]) -> Any:
    """`cuda.core.LaunchConfig`."""
    from cuda.core import LaunchConfig

    return LaunchConfig(grid=grid, block=block)


def index_of(device: torch.device) -> int:
    """The index of the CUDA device that holds a tensor."""
    return int(device.index)


def hardware_cast(device: torch.device) -> bool:
    """Whether mx_arithmetic.cuh takes the cast of the hardware: from sm_89 on."""
    return device.type == "cuda" and arch.capability(index_of(device)) >= 89


_PLANS: dict[tuple[Any, ...], Plan] = {}


def plan_cuda(
    x: torch.Tensor,
    buffers: Buffers,
    recipe: str,
    block: tuple[int, int],
    payload_order: str,
    scale_layout: str,
    config: CudaFlat | CudaTile | None,
) -> tuple[Plan, torch.Tensor]:
    """The plan of a request, and x or the copy of it that the plan is for.

    A CudaFlat asks for the kernel without tiles, where blocks simply follow one another.
    """

    def make() -> tuple[Plan, torch.Tensor]:
        case = canonical(x, block, payload_order, scale_layout)
        if isinstance(config, CudaFlat) and not case.along:
            raise ValueError(
                f"config={config!r}: expected a CudaTile for block={block}, "
                f"payload_order={payload_order!r}, scale_layout={scale_layout!r}"
            )
        return plan_of(case, *buffers, recipe, config), case.x

    return planned(_PLANS, x, buffers, (recipe, block, payload_order, scale_layout, config), make)


def plan_both_cuda(
    x: torch.Tensor,
    buffers: Buffers,
    recipe: str,
    layouts: tuple[str, str],
    config: CudaTile | None,
) -> tuple[Plan, torch.Tensor]:
    """The same of both directions."""

    def make() -> tuple[Plan, torch.Tensor]:
        case = both(x, buffers, layouts)
        swapped = case.buffers[0] is not buffers[0]
        return plan_of_both(case, recipe, config)._replace(swapped=swapped), case.x

    return planned(_PLANS, x, buffers, (recipe, layouts, config), make)


def plan_of(
    case: Case,
    payload: torch.Tensor,
    scale: torch.Tensor,
    recipe: str,
    config: CudaFlat | CudaTile | None,
) -> Plan:
    """The plan of one direction."""
    x, block, layout = case.x, case.block, case.scale_layout
    if not isinstance(config, CudaTile):
        if _follows(case, payload):
            return _flat(x, recipe, config or cuda_configs.FLAT[0])
        config = None
    meant = cuda_configs.family(block, turned=case.turned)
    hardware = hardware_cast(x.device)
    config = config or cuda_configs.default(meant, x.numel(), hardware=hardware)
    macros = (
        ("MX_BLOCK", BLOCKS[block]),
        ("MX_TURNED", int(case.turned)),
        ("MX_LAYOUT", LAYOUTS[layout]),
    )
    payloads = (None, payload) if case.turned else (payload, None)
    tiles = _Tiles(x, payloads, (scale,), config, padded=layout == SWIZZLE, tall=block[0] > 1)
    return tiles.plan("tile.cu", "quantize_tile", macros, recipe)


def plan_of_both(case: Both, recipe: str, config: CudaTile | None) -> Plan:
    """The plan of both directions."""
    x, buffers, layouts = case
    if config is None and not hardware_cast(x.device):
        config = cuda_configs.BOTH_IN_INTEGERS
    config = config or cuda_configs.default(cuda_configs.BOTH, 2 * x.numel())
    macros = (("MX_LAYOUT", LAYOUTS[layouts[0]]), ("MX_COLUMN_LAYOUT", LAYOUTS[layouts[1]]))
    scales = buffers[1], buffers[3]
    payloads = buffers[0], buffers[2]
    tiles = _Tiles(x, payloads, scales, config, padded=SWIZZLE in layouts, tall=True)
    return tiles.plan("both.cu", "quantize_both", macros, recipe)


def _follows(case: Case, payload: torch.Tensor) -> bool:
    """Whether whole, aligned blocks follow one another."""
    if not case.flat or case.x.shape[2] % 32 or case.x.data_ptr() % 16 or payload.data_ptr() % 8:
        return False
    return case.x.shape[1] == 1 or case.x.stride(1) == case.x.shape[2]


def _rule_macros(recipe: str) -> cubins.Macros:
    return (("MX_UE8M0_CVT", 1),) if recipe == UE8M0 else ()


def _flat(x: torch.Tensor, recipe: str, config: CudaFlat) -> Plan:
    macros = (
        ("MX_TYPE", TYPES[x.dtype]),
        ("MX_CHUNKS", config.chunks),
        ("MX_WARPS", config.warps),
        *_rule_macros(recipe),
    )
    device = index_of(x.device)
    blocks = x.numel() // 32
    each = config.warps * config.chunks * (32 // x.itemsize // 2)
    launch = launch_config(grid=(-(-blocks // each),), block=(32 * config.warps,))
    kernel = cubins.kernel("flat.cu", "quantize_flat", macros, device)
    return Plan(kernel, launch, (blocks, RULES[recipe]), device)


class _Tiles:
    """Grid, macros and arguments of a launch over tiles.

    `payloads`: in the order of the input and transposed, None where it is not asked for. `padded`:
    swizzled scales; tiles then cover the padding to 128 x 4.
    """

    def __init__(
        self,
        x: torch.Tensor,
        payloads: tuple[torch.Tensor | None, torch.Tensor | None],
        scales: Buffers,
        config: CudaTile,
        *,
        padded: bool,
        tall: bool,
    ):
        self.x, self.scales = x, scales
        self.config = config.for_size(x.itemsize, tall)
        count, rows, columns = x.shape
        unit = 128 if padded else 1
        height, width = config.tile
        if padded and any(scale.data_ptr() % 4 for scale in scales):
            raise ValueError("scale: expected a buffer aligned to 4 bytes for swizzled scales")
        self.down, self.across = tile_count(rows, unit, height), tile_count(columns, unit, width)
        strides = (x.stride(1) if rows > 1 else 0, x.stride(0) if count > 1 else 0)
        self.sizes = (rows, columns, *strides)
        wide = 16 // x.itemsize
        aligned = not x.data_ptr() % 16 and not any(stride % wide for stride in strides)
        row_wise, column_wise = (
            each is None or not (size % step or each.data_ptr() % step)
            for each, size, step in zip(payloads, (columns, rows), (wide, 16), strict=True)
        )
        self.flags = ALIGNED * aligned | ALIGNED_ROW * row_wise | ALIGNED_COLUMN * column_wise
        self.full = (
            aligned
            and row_wise
            and column_wise
            and not rows % max(height, unit)
            and not columns % max(width, unit)
            and not any(scale.data_ptr() % 4 for scale in scales)
        )

    def grid(self) -> tuple[int, ...]:
        """Tiles fastest along the direction of the configuration; one dimension where too many."""
        count = len(self.x)
        fast, slow = self.across, self.down
        if self.config.rows_first:
            fast, slow = slow, fast
            self.flags |= ROWS_FIRST
        if slow <= MOST_DOWN and count <= MOST_DOWN:
            return (fast, slow, count)
        self.flags |= FOLDED
        return (fast * slow * count,)

    def plan(self, file: str, name: str, macros: cubins.Macros, recipe: str) -> Plan:
        """The plan of kernel `name`."""
        config, device = self.config, index_of(self.x.device)
        macros = (
            ("MX_TYPE", TYPES[self.x.dtype]),
            *macros,
            ("MX_ROWS", config.rows),
            ("MX_LANES_DOWN", config.lanes_down),
            ("MX_WARPS_DOWN", config.warps_down),
            ("MX_WARPS_ACROSS", config.warps_across),
            ("MX_FULL", int(self.full)),
            ("MX_RESIDENT", config.resident if self.full else 1),
            ("MX_COLUMNS_FIRST", int(config.columns_first)),
            *_rule_macros(recipe),
        )
        threads = 32 * config.warps_down * config.warps_across
        launch = launch_config(grid=self.grid(), block=(threads,))
        steps = [scale.numel() // len(self.x) for scale in self.scales]
        arguments = (*self.sizes, *steps, self.down, self.across, RULES[recipe] | self.flags)
        return Plan(cubins.kernel(file, name, macros, device), launch, arguments, device)
