"""What quantize promises beyond the bytes of one block: shapes, strides, padding, outputs."""

import math

import pytest
import torch

import mxref
from mxref import casting, tiles

BLOCKS = [(1, 32), (32, 1), (32, 32)]
SHAPES = [
    (1,), (31,), (32,), (33,), (0,), (1, 1), (0, 64), (64, 0), (33, 65), (64, 96), (129, 40),
    (3, 32, 64), (2, 1, 33), (0, 5, 7), (2, 3, 40, 33), (1, 2, 1, 2, 35),
]  # fmt: skip


def values(shape: tuple[int, ...], dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(math.prod(shape) + len(shape))
    spread = torch.randint(-20, 20, shape, generator=generator).float()
    return (torch.randn(shape, generator=generator) * 2.0**spread).to(dtype)


def naive(
    x: torch.Tensor, recipe: str, block: tuple[int, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Block by block, each as a contiguous run of elements: the geometry by its definition."""
    logical = tiles.logical_shape(x.shape, block)
    if x.numel() == 0:
        return torch.zeros(x.shape, dtype=torch.uint8), torch.zeros(logical, dtype=torch.uint8)
    flat = x.reshape(-1, x.shape[-2] if x.dim() > 1 else 1, x.shape[-1])
    payload = torch.zeros(flat.shape, dtype=torch.uint8)
    scale = torch.zeros(logical, dtype=torch.uint8).reshape(flat.shape[0], -1, logical[-1])
    for m in range(flat.shape[0]):
        for i in range(scale.shape[1]):
            for j in range(scale.shape[2]):
                rows = slice(i * block[0], (i + 1) * block[0])
                columns = slice(j * block[1], (j + 1) * block[1])
                tile = flat[m, rows, columns]
                amax_first = tile.abs().flatten().argmax()
                run = tile.flatten()[amax_first].repeat(32)
                byte = mxref.quantize(run, recipe).scale.view(torch.uint8)
                scale[m, i, j] = byte[0]
                one = torch.zeros(1, 32 * -(-tile.numel() // 32), dtype=x.dtype)
                one[0, : tile.numel()] = tile.flatten()
                given = byte.repeat(one.shape[1] // 32).reshape(1, -1)
                codes = mxref.quantize(one, recipe, scale=given).payload.view(torch.uint8)
                payload[m, rows, columns] = codes[0, : tile.numel()].reshape(tile.shape)
    return payload.reshape(x.shape), scale.reshape(logical)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_is_cut_into_the_same_blocks(shape, block):
    if len(shape) < 2 and block[0] > 1:
        pytest.skip("needs two dimensions")
    x = values(shape)
    payload, scale = mxref.quantize(x, "floor", block=block)
    expected_payload, expected_scale = naive(x, "floor", block)
    assert (payload.shape, payload.dtype) == (x.shape, torch.float8_e4m3fn)
    assert (scale.shape, scale.dtype) == (expected_scale.shape, torch.float8_e8m0fnu)
    assert payload.is_contiguous()
    assert scale.is_contiguous()
    assert torch.equal(payload.view(torch.uint8), expected_payload)
    assert torch.equal(scale.view(torch.uint8), expected_scale)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("limit", [1, 32, 100, 1024, 5000])
@pytest.mark.parametrize("shape", [(70, 100), (3, 2, 33, 65), (5, 4000), (4000, 5)], ids=str)
def test_pieces_do_not_show_in_the_bytes(monkeypatch, shape, limit, block):
    x = values(shape)
    whole = mxref.quantize(x, block=block)
    monkeypatch.setattr("mxref.blocks.PIECE", limit)
    cut = mxref.quantize(x, block=block)
    assert torch.equal(whole.payload.view(torch.uint8), cut.payload.view(torch.uint8))
    assert torch.equal(whole.scale.view(torch.uint8), cut.scale.view(torch.uint8))
    assert torch.equal(mxref.dequantize(*whole, block=block), mxref.dequantize(*cut, block=block))


@pytest.mark.parametrize("limit", [1, 64, 4096])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", SHAPES[8:], ids=str)
def test_pieces_cover_every_element_once(shape, block, limit):
    seen = torch.zeros(shape, dtype=torch.int64)
    least = block[0] * block[1]
    for index in tiles.pieces(shape, block, limit):
        assert seen[index].numel() <= max(limit, least)
        seen[index] += 1
    assert bool((seen == 1).all())


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[::2, 1::3],
        lambda x: x[:, :1].expand(-1, 70),
        lambda x: x[:1].expand(70, -1),
        lambda x: x.flip(0),
        lambda x: x.reshape(4, 33, -1).permute(1, 2, 0),
        lambda x: x.flatten()[1 : 1 + 96 * 64].reshape(96, 64),
    ],
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_strides_do_not_show_in_the_bytes(view, block, dtype):
    base = values((132, 100), dtype)
    before = base.clone()
    x = view(base)
    strided = mxref.quantize(x, block=block)
    dense = mxref.quantize(x.clone(memory_format=torch.contiguous_format), block=block)
    assert torch.equal(strided.payload.view(torch.uint8), dense.payload.view(torch.uint8))
    assert torch.equal(strided.scale.view(torch.uint8), dense.scale.view(torch.uint8))
    assert torch.equal(base, before)


def test_outputs_are_new_and_detached():
    x = values((32, 64)).requires_grad_()
    payload, scale = mxref.quantize(x)
    assert not payload.requires_grad
    again = mxref.quantize(x)
    assert payload.data_ptr() != again.payload.data_ptr()
    assert scale.data_ptr() != again.scale.data_ptr()
    assert mxref.dequantize(payload, scale).data_ptr() != payload.data_ptr()


def test_a_given_scale_comes_back_as_the_same_tensor():
    x = values((32, 64))
    for dtype in (torch.uint8, torch.float8_e8m0fnu):
        scale = torch.full((2, 32), 120, dtype=torch.uint8).t().view(dtype)
        result = mxref.quantize(x, scale=scale)
        assert result.scale is scale
        contiguous = mxref.quantize(x, scale=scale.contiguous()).payload
        assert torch.equal(result.payload.view(torch.uint8), contiguous.view(torch.uint8))


def test_the_number_of_threads_does_not_show_in_the_bytes():
    x, threads = values((257, 1030), torch.float32), torch.get_num_threads()
    expected = mxref.quantize(x)
    try:
        torch.set_num_threads(1 if threads > 1 else 2)
        actual = mxref.quantize(x)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(actual.payload.view(torch.uint8), expected.payload.view(torch.uint8))
    assert torch.equal(actual.scale.view(torch.uint8), expected.scale.view(torch.uint8))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_widening_keeps_every_bit_that_decides(device):
    bits = torch.arange(-(1 << 15), 1 << 15).to(torch.int16)
    for dtype in (torch.bfloat16, torch.float16):
        values = bits.view(dtype).to(device)
        wide = casting.widened(values).cpu()
        nan = bits.view(dtype).isnan()
        assert torch.equal(wide.isnan(), nan)
        assert torch.equal(wide.view(torch.int32) < 0, bits < 0)
        assert torch.equal(wide[~nan].to(dtype).view(torch.int16), bits[~nan])


def recipes_of(element):
    """Every recipe with a name, or the same four rules for another element."""
    if element == "e4m3":
        return list(mxref.RECIPES)
    return [mxref.Recipe(element=element, round=r) for r in ("floor", "rceil", "ceil", "even")]


@pytest.mark.gpu
@pytest.mark.parametrize("element", ["e4m3", "e5m2"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_the_device_does_not_show_in_the_bytes(dtype, element):
    integer = torch.int32 if dtype == torch.float32 else torch.int16
    bits = torch.randint(-(1 << 31), 1 << 31, (1 << 10, 1 << 10)).to(integer)
    x = bits.view(dtype)
    for block in BLOCKS:
        for recipe in recipes_of(element):
            host = mxref.quantize(x, recipe, block=block)
            device = mxref.quantize(x.cuda(), recipe, block=block)
            assert device.payload.is_cuda
            assert torch.equal(
                host.payload.view(torch.uint8), device.payload.cpu().view(torch.uint8)
            )
            assert torch.equal(host.scale.view(torch.uint8), device.scale.cpu().view(torch.uint8))
            values_ = mxref.dequantize(*device, block=block).cpu().view(torch.int32)
            assert torch.equal(values_, mxref.dequantize(*host, block=block).view(torch.int32))


@pytest.mark.gpu
@pytest.mark.xdist_group("large")
def test_device_memory_is_bounded():
    x = torch.randn(1 << 30, device="cuda", dtype=torch.bfloat16)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = mxref.quantize(x)
    outputs = result.payload.nbytes + result.scale.nbytes
    assert torch.cuda.max_memory_allocated() - before - outputs < 2 << 30
