"""What only a GPU shows: graphs, streams, devices, no synchronisation, sizes past 2^31."""

import pytest
import torch

from mxkernels.registry import find
from tests.kernels.guarded import DIM0, Way, assert_bytes, bytes_of, expected

SPEC = find("quantize", "triton")
BOTH = find("quantize_both", "triton")
WAYS = [
    DIM0,
    Way((1, 32), "row", "swizzle_32_4_4"),
    Way((32, 1), "col", "plain_t"),
    Way((32, 32), "col", "swizzle_32_4_4"),
]
by_way = pytest.mark.parametrize("way", WAYS, ids=str)

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True, params=["triton", "cuda"])
def needs_cuda(request, monkeypatch):
    """Each test once for every back end with kernels of its own: SPEC and BOTH are its specs."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    for name, operation in (("SPEC", "quantize"), ("BOTH", "quantize_both")):
        spec = find(operation, request.param)
        if spec.missing("cuda"):
            pytest.skip(spec.missing("cuda"))
        monkeypatch.setitem(globals(), name, spec)


def example(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


@by_way
def test_graph_capture_replays(way):
    x = example(512, 544)
    SPEC.call(x, "rceil", *way)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = SPEC.call(x, "rceil", *way)
    x.normal_()
    graph.replay()
    assert_bytes(bytes_of(captured), expected(x, "rceil", way))


def test_graph_capture_of_both_directions_replays():
    x = example(512, 544)
    BOTH.call(x, "rceil")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = BOTH.call(x, "rceil")
    x.normal_()
    graph.replay()
    for part, way in zip(captured, (DIM0, Way((32, 1), "col")), strict=True):
        assert_bytes(bytes_of(part), expected(x, "rceil", way))


@by_way
def test_a_side_stream_is_used(way):
    x = example(512, 544)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(10_000_000)
        x.mul_(2)
        beside = SPEC.call(x, "rceil", *way)
    stream.synchronize()
    assert_bytes(bytes_of(beside), expected(x, "rceil", way))


@by_way
def test_a_device_that_is_not_the_current_one_is_used(way):
    if torch.cuda.device_count() < 2:
        pytest.skip("one CUDA device")
    x = example(96, 544).to("cuda:1")
    assert torch.cuda.current_device() == 0
    result = SPEC.call(x, "rceil", *way)
    assert result.payload.device == x.device
    assert_bytes(bytes_of(result), expected(x, "rceil", way))


@by_way
def test_nothing_waits_for_the_device(way):
    x = example(512, 544)
    SPEC.call(x, "rceil", *way)
    before = torch.cuda.get_sync_debug_mode()
    try:
        torch.cuda.set_sync_debug_mode("error")
        SPEC.call(x, "rceil", *way)
        BOTH.call(x, "rceil")
        with pytest.raises(RuntimeError, match="synchroniz"):
            x.sum().item()
    finally:
        torch.cuda.set_sync_debug_mode(before)


@by_way
def test_many_matrices(way):
    """More than 65,535 of them, the limit of a grid's second and third dimension."""
    x = example(70_000, 33, 32)
    payload, scale = SPEC.call(x, "rceil", *way)
    for part in (slice(0, 3), slice(65_534, 65_538), slice(69_997, 70_000)):
        assert_bytes(bytes_of((payload[part], scale[part])), expected(x[part], "rceil", way))


def parts_of(result, way, rows, block_rows):
    """Payload and logical scales of some rows; layouts are undone first."""
    payload, scale = result
    if way.scale_layout == "plain_t":
        scale = scale.mT
    return payload[rows], scale[block_rows]


@pytest.mark.exhaustive
@pytest.mark.xdist_group("large")
@pytest.mark.parametrize(
    "way", [DIM0, Way((32, 1), "col", "plain_t"), Way((32, 32), "row")], ids=str
)
@pytest.mark.parametrize("shift", [0, 1])
def test_more_than_two_to_the_31_elements(way, shift):
    rows, columns = (1 << 16) + 32, 1 << 15
    pattern = example(32, columns)
    x = pattern.repeat(rows // 32, 1)[:, shift:]
    result = SPEC.call(x, "rceil", *way)
    wanted = expected(x[:32], "rceil", way._replace(scale_layout="plain"))
    height = 32 // way.block[0]
    for band in (0, 1000, rows // 32 - 1):
        parts = slice(32 * band, 32 * band + 32), slice(height * band, height * band + height)
        assert_bytes(bytes_of(parts_of(result, way, *parts)), wanted)


@pytest.mark.exhaustive
@pytest.mark.xdist_group("large")
def test_more_than_two_to_the_31_elements_swizzled():
    """A tile of rows repeats, so does its part of the swizzled scales."""
    rows, columns = (1 << 16) + 128, 1 << 15
    x = example(128, columns).repeat(rows // 128, 1)
    for way in (Way((1, 32), "row", "swizzle_32_4_4"), Way((32, 32), "row", "swizzle_32_4_4")):
        payload, scale = SPEC.call(x, "rceil", *way)
        wanted = expected(x[:128], "rceil", way)
        for band in (0, 300, rows // 128 - 1):
            codes = payload[128 * band : 128 * band + 128]
            assert_bytes(bytes_of((codes, scale.view(rows // 128, -1)[band])), wanted)


@pytest.mark.exhaustive
@pytest.mark.xdist_group("large")
def test_both_directions_past_two_to_the_31_elements():
    rows, columns = (1 << 16) + 32, 1 << 15
    x = example(32, columns).repeat(rows // 32, 1)
    along, across = BOTH.call(x, "rceil", ("plain", "plain_t"))
    last = slice(rows - 32, rows)
    assert_bytes(bytes_of((along.payload[last], along.scale[last])), expected(x[:32], "rceil"))
    wanted = expected(x[:32], "rceil", Way((32, 1), "col"))
    assert_bytes(bytes_of((across.payload[last], across.scale.mT[-1:])), wanted)


@pytest.mark.exhaustive
@pytest.mark.xdist_group("large")
def test_more_rows_than_an_int32_offset_inside_a_tile():
    """128 columns of a transposed payload are 2^31 bytes apart."""
    rows = (1 << 24) + 32
    x = example(32, 48).repeat(rows // 32, 1)
    way = Way((32, 1), "col", "plain_t")
    payload, scale = SPEC.call(x, "rceil", *way)
    wanted = expected(x[:32], "rceil", way)
    assert_bytes(bytes_of((payload[-32:], scale[:, -1:])), wanted)
