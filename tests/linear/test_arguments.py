"""What bad arguments and unavailable choices say, and that what runs can be printed."""

import numpy as np
import pytest
import torch

import mxkernels
import mxref
from mxkernels import CastConfig, MXLinear, arch, convert, mx_linear, registry
from mxkernels.linear import cast, save_quantized

X, W = torch.ones(4, 64), torch.ones(8, 64)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dim0": "RCEIL"}, ValueError, ["dim0='RCEIL'", "'triton'", "'reference'"]),
        ({"dim1": "tritn"}, ValueError, ["dim1='tritn'"]),
        ({"dim1": None}, TypeError, ["dim1=None"]),
        ({"recipe": "RCEIL"}, ValueError, ["recipe='RCEIL'", "'rceil'"]),
        ({"recipe": None}, TypeError, ["recipe=None"]),
        ({"matmul": "fast"}, ValueError, ["matmul='fast'", "'scaled_mm'"]),
    ],
)
def test_an_unknown_choice_is_named(options, error, words):
    with pytest.raises(error) as raised:
        CastConfig(**options)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize("dimension", ["dim0", "dim1"])
def test_every_dimension_has_the_same_choices(dimension):
    for name in registry.BACKENDS:
        assert getattr(CastConfig(**{dimension: name}), dimension) == name


def unbuilt():
    """Choices that exist and have no kernel for that block."""
    for dimension, block in (("dim0", (1, 32)), ("dim1", (32, 1))):
        for name in registry.BACKENDS[1:-1]:
            specs = [s for s in registry.KERNELS if (s.op, s.backend) == ("quantize", name)]
            if not any(block in spec.blocks for spec in specs):
                yield dimension, name


@pytest.mark.parametrize(("dimension", "name"), list(unbuilt()))
def test_what_is_not_built_raises_and_is_not_replaced(dimension, name):
    config = CastConfig(**{dimension: name})
    with pytest.raises(NotImplementedError, match=name):
        config.resolve("cpu")
    with pytest.raises(NotImplementedError, match=name):
        mx_linear(X, W, config=config)


def test_what_cannot_run_here_raises(monkeypatch):
    arch.triton_missing.cache_clear()
    monkeypatch.setattr(arch, "installed", lambda module: module != "triton")
    config = CastConfig(dim0="triton", dim1="triton")
    try:
        with pytest.raises(RuntimeError, match="dim0='triton' cannot run here"):
            config.resolve("cpu")
        with pytest.raises(RuntimeError, match="backend='triton' cannot run here"):
            mx_linear(X, W, config=config)
        assert mx_linear(X, W).shape == (4, 8)
    finally:
        arch.triton_missing.cache_clear()
    with pytest.raises(RuntimeError, match=r"matmul='scaled_mm' cannot run here.*sm_100"):
        CastConfig(matmul="scaled_mm").resolve("cpu")


def test_what_runs_can_be_printed():
    text = CastConfig(dim0="triton", dim1="triton", recipe="floor").describe("cpu", 64, 96, 32)
    assert "dim0: triton, blocks (1, 32), recipe floor, both from one read" in text
    assert "wgrad (96, 64) x (64, 32): dequantize" in text
    assert "config=CastConfig(dim0='auto', dim1='reference'" in repr(
        MXLinear(32, 32, config=CastConfig(dim1="reference"))
    )


def test_one_read_is_taken_only_where_both_directions_name_the_kernel(monkeypatch):
    calls = []
    for name in ("quantize", "quantize_both"):
        real = getattr(cast.op, name)
        monkeypatch.setattr(
            cast.op, name, lambda *a, name=name, real=real: (calls.append(name), real(*a))[1]
        )
    weight = W.clone().requires_grad_()
    for config in (CastConfig(dim0="triton", dim1="triton"), CastConfig(dim0="triton")):
        calls.clear()
        mx_linear(X, weight, config=config).sum().backward()
        one_read = config.one_read("cpu") == "triton"
        assert one_read == (config.dim1 == "triton")
        assert ("quantize_both" in calls) == one_read


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((X.tolist(), W), TypeError, ["x=", "list"]),
        ((X, None), TypeError, ["weight=None"]),
        ((X, W, 1.0), TypeError, ["bias=1.0"]),
        ((X, W, None, "rceil"), TypeError, ["config='rceil'", "CastConfig"]),
        ((X, W[0]), ValueError, ["weight has shape (64,)"]),
        ((X[:, :32], W), ValueError, ["x has shape (4, 32)", "(..., 64)"]),
        ((torch.tensor(1.0), W), ValueError, ["x has shape ()"]),
        ((X, W, torch.ones(7)), ValueError, ["bias has shape (7,)", "(8,)"]),
        ((X.double(), W), TypeError, ["x has dtype torch.float64", "bfloat16"]),
        ((X.half(), W.half()), TypeError, ["float16", "torch.bfloat16, torch.float32"]),
        ((X, W.bfloat16()), TypeError, ["weight has dtype torch.bfloat16", "torch.float32"]),
        ((X, W.to("meta")), ValueError, ["weight is on meta", "cpu"]),
    ],
)
def test_a_bad_argument_of_the_function_is_named(arguments, error, words):
    with pytest.raises(error) as raised:
        mx_linear(*arguments)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        (([],), TypeError, "model=[]"),
        ((MXLinear(32, 32), 3), TypeError, "filter=3"),
        ((MXLinear(32, 32), "up"), ValueError, "filter='up': matches no linear layer"),
        ((MXLinear(32, 32), None, "rceil"), TypeError, "config='rceil'"),
    ],
)
def test_a_bad_argument_of_convert_is_named(arguments, error, word):
    with pytest.raises(error) as raised:
        convert(*arguments)
    assert word in str(raised.value)
    with pytest.raises(TypeError, match="config=None"):
        MXLinear(32, 32, config=None)


@pytest.mark.parametrize("name", ["in_features", "out_features"])
@pytest.mark.parametrize(
    ("value", "error"),
    [(-1, ValueError), (64.0, TypeError), (True, TypeError), ("64", TypeError), (None, TypeError)],
)
def test_a_size_that_is_none_is_named(name, value, error):
    with pytest.raises(error) as raised:
        MXLinear(**{"in_features": 64, "out_features": 4} | {name: value})
    assert f"{name}={value!r}: expected an integer of at least 0" in str(raised.value)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_sizes_are_those_that_nn_linear_takes():
    for sizes in ((0, 4), (4, 0), (np.int64(64), np.int32(4))):
        assert MXLinear(*sizes).weight.shape == torch.nn.Linear(*sizes).weight.shape


@pytest.mark.parametrize("call", [mxref.matmul, mxkernels.matmul])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (X, "=<Tensor (4, 64) torch.float32>: expected a (payload, scale) pair, got Tensor"),
        ([X, W], "=[<Tensor (4, 64) torch.float32>, <Tensor (8, 64) torch.float32>]: expected a"),
        (
            (X, 1, None),
            "=(<Tensor (4, 64) torch.float32>, 1, None): expected a (payload, scale) pair",
        ),
        (None, "=None: expected a (payload, scale) pair, got NoneType"),
        (((X,), W), ".payload=(<Tensor (4, 64) torch.float32>,): expected a tensor"),
    ],
)
def test_a_tensor_for_a_pair_is_shown_by_its_shape(call, which, wrong, words):
    operands = [mxref.quantize(X), mxref.quantize(W)]
    if call is mxref.matmul:
        operands[1] = mxref.Quantized(operands[1].payload.mT, operands[1].scale.mT)
    operands[which] = wrong
    with pytest.raises(TypeError) as raised:
        call(*operands)
    message = str(raised.value)
    assert message.startswith(f"{'ab'[which]}{words}")
    assert len(message) < 250
    assert "\n" not in message


def test_a_second_derivative_is_refused():
    """torch's fallback would give zeros, and a gradient penalty would train on nothing."""
    x, weight = torch.ones(4, 64, requires_grad=True), torch.ones(8, 64, requires_grad=True)
    (grad,) = torch.autograd.grad(mx_linear(x, weight).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="mx_linear is differentiable once"):
        torch.autograd.grad(grad.square().sum(), x)


def test_meta_tensors_have_shapes():
    layer = MXLinear(64, 8, device="meta")
    y = layer(torch.empty(2, 3, 64, device="meta"))
    assert (y.shape, y.device.type) == ((2, 3, 8), "meta")


def test_a_bias_of_another_dtype_is_named():
    x, weight = torch.ones(4, 64), torch.ones(8, 64)
    with pytest.raises(TypeError, match=r"bias has dtype torch.bfloat16: expected torch.float32"):
        mx_linear(x, weight, torch.ones(8, dtype=torch.bfloat16))


def test_the_dimension_that_is_not_built_is_named():
    config = CastConfig(dim0="reference", dim1="compile")
    with pytest.raises(NotImplementedError, match=r"dim1='compile': block=\(32, 1\)"):
        mx_linear(torch.ones(4, 64), torch.ones(8, 64), config=config)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.int64, torch.bool, torch.complex64], ids=str
)
def test_autocast_converts_what_torch_converts_and_nothing_else(dtype):
    x, weight = torch.ones(2, 64), torch.ones(3, 64)
    offs = torch.tensor([2], dtype=torch.int32)
    with torch.autocast("cpu", torch.bfloat16):
        assert mx_linear(x, weight).dtype == torch.bfloat16
        for call in (
            lambda: mx_linear(x.to(dtype), weight),
            lambda: mxkernels.grouped_mm(x.to(dtype), weight[None], offs),
        ):
            with pytest.raises(TypeError, match=f"x has dtype {dtype}: expected"):
                call()


def test_names_of_saved_tensors_are_strings(tmp_path):
    pytest.importorskip("safetensors")
    pair = mxkernels.quantize(torch.ones(1, 32))
    with pytest.raises(TypeError, match="the name 1: expected a string"):
        save_quantized(tmp_path / "w", {1: pair, "1": pair})
    assert not (tmp_path / "w").exists()
