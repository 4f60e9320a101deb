"""MXLinear as a citizen of torch: compile, autocast, checkpointing, graphs, state, conversion."""

import copy

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils.checkpoint import checkpoint

import mxkernels
from mxkernels import CastConfig, MXLinear, convert, mx_linear
from mxkernels.linear import Stored, load_quantized, op, save_quantized

CONFIGS = [CastConfig(), CastConfig(dim0="triton", dim1="triton"), CastConfig(dim1="triton")]


def layer(device, config=CastConfig(), **options):  # noqa: B008 - frozen
    torch.manual_seed(1)
    return MXLinear(96, 64, device=device, config=config, **options)


def batch(device, rows=40, dtype=torch.float32):
    x = torch.randn(rows, 96, generator=torch.Generator().manual_seed(2))
    return x.to(device, dtype).requires_grad_()


def gradients(function, module, x):
    """y and all gradients, for a gradient of y in 64ths: fp32 adds those exactly, in any order."""
    module.zero_grad()
    x.grad = None
    y = function(x)
    grad = (torch.arange(y.numel(), device=y.device) % 193 - 96).view(y.shape) / 64
    (y.float() * grad).sum().backward()
    return [y.detach(), x.grad, *(p.grad for p in module.parameters())]


def assert_same(left, right):
    for a, b in zip(left, right, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def each_is_one_of(found, allowed):
    """Whether every bf16 number of `found` has the bits of one of the `allowed` at its place."""
    bits = [part.view(torch.int16) for part in allowed]
    return bool(torch.stack([found.view(torch.int16) == part for part in bits]).any(0).all())


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_compiled_fullgraph_equals_eager(device, config):
    module, x = layer(device, config), batch(device)
    compiled = torch.compile(module, fullgraph=True)
    assert_same(gradients(compiled, module, x), gradients(module, module, x))


def test_compiled_with_dynamic_shapes_is_compiled_once(device):
    module = layer(device)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=counter)
    for rows in (100, 130, 200):
        x = batch(device, rows)
        assert_same(gradients(compiled, module, x), gradients(module, module, x))
    assert counter.frame_count == 1


def test_autocast_takes_bf16_and_gives_bf16(device):
    module, x = layer(device), batch(device)
    with torch.autocast(device, torch.bfloat16):
        y = module(x)
    assert y.dtype == torch.bfloat16
    low = [each.to(torch.bfloat16) for each in (x, module.weight, module.bias)]
    assert torch.equal(y, mx_linear(*low))
    y.float().sum().backward()
    assert module.weight.grad.dtype == x.grad.dtype == torch.float32


def test_autocast_does_not_reach_the_product(device):
    module, x = layer(device, dtype=torch.bfloat16), batch(device, dtype=torch.bfloat16)
    plain = gradients(module, module, x)
    with torch.autocast(device, torch.bfloat16):
        assert_same(gradients(module, module, x), plain)


def test_compiled_under_autocast(device):
    module, x = layer(device), batch(device)
    compiled = torch.compile(module, fullgraph=True)
    with torch.autocast(device, torch.bfloat16):
        found, wanted = gradients(compiled, module, x), gradients(module, module, x)
    assert_same(found[1:3], wanted[1:3])
    # inductor may leave out the rounding of the bias to bf16, and no other
    product = mx_linear(*(each.detach().to(torch.bfloat16) for each in (x, module.weight)))
    sums = wanted[0], (product.float() + module.bias).to(torch.bfloat16)
    assert each_is_one_of(found[0], sums)
    assert not each_is_one_of(product, sums)
    assert not each_is_one_of((found[0].view(torch.int16) + 1).view(torch.bfloat16), sums)


@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_changes_nothing(device, reentrant):
    module, x = layer(device), batch(device)
    kept = gradients(module, module, x)
    again = gradients(lambda x: checkpoint(module, x, use_reentrant=reentrant), module, x)
    assert_same(again, kept)


def test_state_dicts_are_those_of_linear(device):
    module = layer(device)
    plain = nn.Linear(96, 64, device=device)
    assert list(plain.state_dict()) == list(module.state_dict())
    plain.load_state_dict(module.state_dict())
    other = MXLinear(96, 64, device=device)
    other.load_state_dict(plain.state_dict())
    x = batch(device)
    assert torch.equal(other(x), module(x))
    assert torch.equal(copy.deepcopy(module)(x), module(x))


def test_no_bias():
    module = layer("cpu", bias=False)
    assert module.bias is None
    assert torch.equal(module(batch("cpu")), mx_linear(batch("cpu"), module.weight))


def test_a_second_derivative_is_refused():
    x = batch("cpu")
    first = torch.autograd.grad(layer("cpu")(x).sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError):
        first.sum().backward()


@pytest.mark.gpu
# Warmed up on a side stream, captured on another: what torch's own recipe does.
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream does not match")
def test_a_training_step_replays_as_a_cuda_graph():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    module, x = layer("cuda"), batch("cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            gradients(module, module, x)
    torch.cuda.current_stream().wait_stream(stream)
    module.zero_grad(set_to_none=True)
    x.grad = None
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = module(x)
        y.sum().backward()
    with torch.no_grad():
        x.copy_(batch("cuda") * 3)
    graph.replay()
    captured = [y.clone(), x.grad.clone(), module.weight.grad.clone()]
    module.zero_grad(set_to_none=True)
    x.grad = None
    fresh = module(x)
    fresh.sum().backward()
    assert_same(captured, [fresh.detach(), x.grad, module.weight.grad])


def model():
    return nn.ModuleDict(
        {
            "attention": nn.MultiheadAttention(64, 4),
            "up": nn.Linear(64, 128),
            "down": nn.Linear(128, 64),
        }
    )


def test_convert_takes_names_and_leaves_subclasses():
    found = model()
    kept = found["up"].weight
    assert convert(found) == ["up", "down"]
    assert type(found["attention"].out_proj) is not MXLinear
    assert found["up"].weight is kept
    assert convert(found, "up", CastConfig(recipe="floor")) == ["up"]
    assert found["up"].config.recipe == "floor"
    assert found["down"].config.recipe == "rceil"


@pytest.mark.parametrize(
    ("filter", "names"), [("d*", ["down"]), (lambda name: "p" in name, ["up"]), (None, None)]
)
def test_convert_filters_by_name(filter, names):
    assert convert(model(), filter) == (names or ["up", "down"])


def test_convert_keeps_hooks_shared_modules_and_the_root():
    shared = nn.Linear(32, 32)
    called = []
    shared.register_forward_hook(lambda *_: called.append(1))
    both = nn.Sequential(shared, nn.ReLU(), shared)
    assert convert(both) == ["0"]
    both(torch.ones(1, 32))
    assert len(called) == 2
    root = nn.Linear(32, 32)
    assert convert(root) == [""]
    assert isinstance(root, MXLinear)


@pytest.mark.parametrize("block", [(1, 32), (32, 1)])
@pytest.mark.parametrize("layout", ["plain", "swizzle_32_4_4"])
def test_a_quantized_weight_goes_through_safetensors(tmp_path, block, layout):
    pytest.importorskip("safetensors")
    weight = layer("cpu").weight
    pair = mxkernels.quantize(
        weight, "floor", block=block, payload_order="col", scale_layout=layout
    )
    save_quantized(tmp_path / "w", {"fc.weight": Stored(pair, block, layout, "floor"), "b": pair})
    found = load_quantized(tmp_path / "w")
    assert list(found) == ["fc.weight", "b"]
    stored = found["fc.weight"]
    assert (stored.block, stored.scale_layout, stored.recipe) == (block, layout, "floor")
    for part, wanted in zip(stored.quantized, pair, strict=True):
        assert part.dtype == wanted.dtype
        assert torch.equal(part.view(torch.uint8), wanted.view(torch.uint8))


def test_a_file_without_mx_tensors_is_named(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({"a": torch.ones(1)}, str(tmp_path / "a"))
    with pytest.raises(ValueError, match=r"no 'mx' in its metadata"):
        load_quantized(tmp_path / "a")
    with pytest.raises(TypeError, match=r"tensors\['a'\].payload is torch.float8_e8m0fnu"):
        save_quantized(tmp_path / "b", {"a": mxkernels.quantize(torch.ones(1, 32))[::-1]})


@pytest.mark.parametrize("need", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("config", CONFIGS[:2], ids=str)
def test_opcheck_passes(device, config, need):
    x, weight = batch(device), layer(device).weight
    arguments = (x.requires_grad_(need[0]), weight.requires_grad_(need[1]), *config.names, *need)
    checks = torch.library.opcheck(op.linear, arguments)
    assert set(checks.values()) == {"SUCCESS"}
