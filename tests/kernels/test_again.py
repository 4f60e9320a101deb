"""Calls that were made before skip dispatcher and checks, and give the same bytes.

On the CPU through the shim of the CUDA kernels; what only a GPU has is judged there.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import mxkernels
from mxkernels.quantize import again, op, plans
from mxkernels.registry import find
from tests.kernels.cuda_host import on_cpu  # noqa: F401
from tests.kernels.guarded import DIM0, Way, assert_bytes, bytes_of, expected
from tests.kernels.inputs import filled

CALL = find("quantize", "cuda").call
WAYS = [DIM0, Way((32, 1), "col", "swizzle_32_4_4")]


@pytest.fixture
def counted(on_cpu, monkeypatch):  # noqa: F811
    """The calls of the operators, while the CUDA back end and `again` serve CPU tensors."""
    made = []

    def seen(name):
        operator = getattr(op, name)

        def run(*arguments):
            made.append(name)
            return operator(*arguments)

        monkeypatch.setattr(op, name, run)

    seen("quantize")
    seen("quantize_both")
    monkeypatch.setattr(op, "_require", lambda backend, device: None)
    monkeypatch.setattr(again, "_SERVED", {})
    monkeypatch.setattr(again, "index_of", lambda x: 0)
    monkeypatch.setattr(again, "current_device", lambda: 0)
    monkeypatch.setattr(again, "allocate", torch._C._dynamo.guards._empty_strided_cpu)
    return made


def tensor(seed, dtype=torch.bfloat16):
    return filled(32 * 64, "poisoned", dtype, seed).view(32, 64)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_second_call_skips_the_operator_and_gives_the_bytes(counted, way):
    first = CALL(tensor(1), "floor", *way)
    second = CALL(tensor(2), "floor", *way)
    assert counted == ["quantize"]
    for seed, result in ((1, first), (2, second)):
        assert_bytes(bytes_of(result), expected(tensor(seed), "floor", way))
    for one, other in zip(first, second, strict=True):
        assert (one.shape, one.stride(), one.dtype) == (other.shape, other.stride(), other.dtype)
        assert one.data_ptr() != other.data_ptr()


def test_the_scale_instruction_is_served_alike(counted):
    for seed in (1, 2):
        result = find("quantize", "cuda_ue8m0").call(tensor(seed), "rceil", *DIM0)
        assert_bytes(bytes_of(result), expected(tensor(seed), "rceil"))
    assert counted == ["quantize"]


def test_both_directions_of_either_order_are_served(counted):
    for x, other in ((tensor(1), tensor(2)), (tensor(3).mT, tensor(4).mT)):
        counted.clear()
        for each in (x, other):
            rows, columns = mxkernels.quantize_both(each, backend="cuda")
            assert_bytes(bytes_of(rows), expected(each, "rceil", DIM0))
            wanted = expected(each, "rceil", Way((32, 1), "col", "plain"))
            assert_bytes(bytes_of(columns), wanted)
        assert counted == ["quantize_both"]


def test_auto_is_served_as_the_back_end_it_took(counted, monkeypatch):
    monkeypatch.setattr(mxkernels, "chosen_backend", lambda *asked: "cuda")
    for seed in (1, 2):
        result = mxkernels.quantize(tensor(seed))
        assert_bytes(bytes_of(result), expected(tensor(seed), "rceil"))
    assert counted == ["quantize"]


class Watching(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        return function(*arguments, **(keywords or {}))


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "other",
    [
        lambda: CALL(tensor(2).as_subclass(Subclass), "floor", *DIM0),
        lambda: CALL(tensor(2), "rceil", *DIM0),
        lambda: CALL(tensor(2), "floor", [1, 32]),
        lambda: CALL(tensor(2, torch.float16), "floor", *DIM0),
        lambda: CALL(tensor(2)[:16], "floor", *DIM0),
        lambda: CALL(tensor(2).view(64, 32).mT, "floor", *DIM0),
        lambda: CALL(torch.cat([tensor(2), tensor(3)]).flatten()[1:2049].view(32, 64), "floor"),
    ],
    ids=["subclass", "recipe", "list", "dtype", "shape", "strides", "alignment"],
)
def test_what_differs_takes_the_usual_way(counted, other):
    CALL(tensor(1), "floor", *DIM0)
    counted.clear()
    other()
    assert counted == ["quantize"]


def test_a_mode_sees_the_operator(counted):
    CALL(tensor(1), "floor", *DIM0)
    for mode in (Watching(), torch.device("cpu")):
        counted.clear()
        with mode:
            CALL(tensor(2), "floor", *DIM0)
        assert counted == ["quantize"]


def test_another_current_device_takes_the_usual_way(counted, monkeypatch):
    CALL(tensor(1), "floor", *DIM0)
    monkeypatch.setattr(again, "current_device", lambda: 1)
    CALL(tensor(2), "floor", *DIM0)
    assert counted == ["quantize", "quantize"]


def test_a_parameter_is_served_and_detached(counted):
    weight = torch.nn.Parameter(tensor(1))
    for _ in range(2):
        result = CALL(weight, "floor", *DIM0)
        assert not any(part.requires_grad for part in result)
        assert_bytes(bytes_of(result), expected(weight.detach(), "floor"))
    assert counted == ["quantize"]


def test_bad_arguments_are_named_after_a_call_was_served(counted):
    CALL(tensor(1), "floor", *DIM0)
    with pytest.raises(ValueError, match="'Floor'"):
        CALL(tensor(1), "Floor", *DIM0)
    with pytest.raises(TypeError, match="expected a tensor"):
        CALL([1.0], "floor", *DIM0)


@pytest.mark.parametrize("call", [CALL, mxkernels.quantize])
def test_what_only_equals_a_block_is_refused_after_the_block_was_served(counted, monkeypatch, call):
    monkeypatch.setattr(mxkernels, "chosen_backend", lambda *asked: "cuda")
    for _ in range(2):
        call(tensor(1), "floor", block=(1, 32))
        call(tensor(1), "floor", block=tuple([1, 32]))  # noqa: C409 - an object of its own
    assert counted == ["quantize"]
    for block in ((1.0, 32), (True, 32), (1, 32.0)):
        with pytest.raises(ValueError, match=r"block=.*: expected one of \(1, 32\)"):
            call(tensor(1), "floor", block=block)
    for block in ((1.0, 32), (True, 32)):
        other = torch.zeros(64, 32)
        with pytest.raises(ValueError, match=r"block="):
            call(other, "floor", block=block)
        call(other, "floor", block=(1, 32))


def test_nothing_empty_or_copied_is_remembered(counted):
    for x in (tensor(1)[:0], tensor(1)[::2, ::2]):
        for _ in range(2):
            CALL(x, "floor", *DIM0)
    assert counted == ["quantize"] * 4
    assert not again._SERVED


def test_tables_are_bounded(monkeypatch):
    monkeypatch.setattr(plans, "MOST", 3)
    table = {}
    for number in range(10):
        plans.keep(table, (number,), number)
        assert len(table) <= 3
        assert table[(number,)] == number


gpu = pytest.mark.gpu


@pytest.fixture(params=["triton", "cuda"])
def served(request):
    """A call of a back end on a GPU, made twice before."""
    spec = find("quantize", request.param)
    if spec.missing("cuda"):
        pytest.skip(spec.missing("cuda"))
    for _ in range(2):
        spec.call(tensor(1).cuda(), "floor", *WAYS[1])
    return lambda x: spec.call(x, "floor", *WAYS[1])


@gpu
def test_served_on_a_side_stream(served):
    stream = torch.cuda.Stream()
    x = tensor(2).cuda()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(100):
            x = x.clone()
        result = served(x)
    stream.synchronize()
    assert_bytes(bytes_of(result), expected(tensor(2), "floor", WAYS[1]))


@gpu
def test_served_inside_a_graph(served):
    x = tensor(2).cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = served(x)
    x.copy_(tensor(3))
    graph.replay()
    torch.cuda.synchronize()
    assert_bytes(bytes_of(result), expected(tensor(3), "floor", WAYS[1]))


@gpu
def test_compiled_after_it_was_served(served):
    x = tensor(2).cuda()
    result = torch.compile(served, fullgraph=True)(x)
    assert_bytes(bytes_of(result), expected(tensor(2), "floor", WAYS[1]))


@gpu
def test_a_served_call_makes_no_operator_call(served, monkeypatch):
    monkeypatch.setattr(op, "quantize", None)
    assert_bytes(bytes_of(served(tensor(2).cuda())), expected(tensor(2), "floor", WAYS[1]))
