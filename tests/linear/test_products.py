"""mx_linear: forward, dgrad and wgrad against the oracle's products of the right operands."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mxref
from mxkernels import CastConfig, mx_linear
from mxref.testing import assert_matmul_within_bound
from tests.linear.operands import EXAMPLES, SIZES, VALUES, tensor, turned

CONFIGS = {
    "reference": CastConfig(dim0="reference", dim1="reference"),
    "triton": CastConfig(dim0="triton", dim1="triton", recipe="floor"),
    "mixed": CastConfig(dim0="reference", dim1="triton"),
    "decode": CastConfig(matmul="triton"),
    "auto": CastConfig(),
}


def run(x, weight, grad, config):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    y = mx_linear(x, weight, config=config)
    y.backward(grad)
    return y.detach(), x.grad, weight.grad


def judge(x, weight, grad, found, recipe, blocks=((1, 32), (32, 1))):
    """Each product by the oracle; `blocks` are those along and across, swapped by a mutant."""
    along, across = blocks

    def cast(value, block):
        return mxref.quantize(value, recipe, block=block)

    y, dx, dweight = found
    a, b = cast(x, along), cast(weight, along)
    assert_matmul_within_bound(y, a, turned(b), blocks=(along, along[::-1]))
    assert_matmul_within_bound(dx, cast(grad, along), cast(weight, across), blocks=(along, across))
    a, b = cast(grad, across), cast(x, across)
    assert_matmul_within_bound(dweight, turned(a), b, blocks=(across[::-1], across))


@settings(max_examples=EXAMPLES)
@given(
    st.tuples(SIZES, SIZES, SIZES),
    st.tuples(*[st.sampled_from(VALUES)] * 3),
    st.integers(0, 1 << 16),
    st.sampled_from(list(CONFIGS)),
)
def test_all_three_products_are_within_the_bound(device, shape, values, seed, name):
    m, n, k = shape
    x = tensor((m, k), values[0], seed, device=device)
    weight = tensor((n, k), values[1], seed + 1, device=device)
    grad = tensor((m, n), values[2], seed + 2, device=device)
    config = CONFIGS[name]
    judge(x, weight, grad, run(x, weight, grad, config), config.recipe)


@pytest.mark.gpu
@pytest.mark.parametrize("name", list(CONFIGS))
def test_larger_products_on_a_gpu(name):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    for m, n, k in ((48, 512, 1024), (1000, 384, 520)):
        x, weight, grad = (
            tensor(shape, "randn", i, device="cuda")
            for i, shape in enumerate(((m, k), (n, k), (m, n)))
        )
        judge(x, weight, grad, run(x, weight, grad, CONFIGS[name]), CONFIGS[name].recipe)


SQUARE = tuple(tensor((64, 64), "wide", seed) for seed in (1, 2, 3))


def test_the_square_example_passes():
    judge(*SQUARE, run(*SQUARE, CastConfig()), "rceil")


@pytest.mark.parametrize(
    "fault",
    [
        "cast along the wrong dimension",
        "y is transposed",
        "dx of the transposed weight",
        "wgrad is transposed",
        "another recipe",
        "no cast at all",
    ],
)
def test_a_wrong_layer_is_caught(fault):
    x, weight, grad = SQUARE
    y, dx, dweight = run(*SQUARE, CastConfig())
    recipe, blocks = "rceil", ((1, 32), (32, 1))
    if fault == "cast along the wrong dimension":
        blocks = blocks[::-1]
    elif fault == "y is transposed":
        y = y.mT
    elif fault == "dx of the transposed weight":
        dx = run(x, weight.mT.contiguous(), grad, CastConfig())[1]
    elif fault == "wgrad is transposed":
        dweight = dweight.mT
    elif fault == "another recipe":
        recipe = "ceil"
    else:
        dweight = grad.mT @ x
    with pytest.raises(AssertionError, match=r"expected .* within"):
        judge(x, weight, grad, (y, dx, dweight), recipe, blocks)


def test_one_nan_poisons_what_its_block_is_multiplied_with_and_no_more():
    x, weight = torch.ones(4, 64), torch.ones(8, 64)
    x[1, 40] = torch.nan
    weight[5, 3] = torch.inf
    y = mx_linear(x, weight)
    poisoned = torch.zeros(4, 8, dtype=torch.bool)
    poisoned[1], poisoned[:, 5] = True, True
    assert torch.equal(y.isnan(), poisoned)


@pytest.mark.parametrize("need", [(True, False), (False, True), (False, False)])
def test_only_the_gradients_asked_for_are_made(device, need):
    x = tensor((40, 64), "randn", 1, device=device).requires_grad_(need[0])
    weight = tensor((48, 64), "randn", 2, device=device).requires_grad_(need[1])
    y = mx_linear(x, weight)
    full = run(x.detach(), weight.detach(), torch.ones_like(y), CastConfig())
    assert torch.equal(y, full[0])
    if any(need):
        y.backward(torch.ones_like(y))
    for tensor_, wanted, needed in zip((x, weight), full[1:], need, strict=True):
        assert (tensor_.grad is not None) == needed
        if needed:
            assert torch.equal(tensor_.grad, wanted)


def test_strides_and_leading_dimensions_change_nothing(device):
    x = tensor((6, 10, 64), "randn", 1, device=device)
    weight, grad = (tensor(s, "randn", 2, device=device) for s in ((48, 64), (6, 10, 48)))
    flat = run(x.view(60, 64), weight, grad.view(60, 48), CastConfig())
    odd = x.mT.contiguous().mT, weight.mT.contiguous().mT, grad.mT.contiguous().mT
    for part, wanted in zip(run(*odd, CastConfig()), flat, strict=True):
        assert torch.equal(part.reshape(wanted.shape), wanted)
    vector = mx_linear(x[0, 0], weight)
    assert vector.shape == (48,)
    assert torch.equal(vector, mx_linear(x[0, :1], weight)[0])


def test_the_bias_is_added_after_the_rounding_and_its_gradient_is_the_sum():
    x, weight = tensor((8, 64), "randn", 1), tensor((32, 64), "randn", 2)
    bias = tensor((32,), "randn", 3).requires_grad_()
    y = mx_linear(x, weight, bias)
    assert torch.equal(y, mx_linear(x, weight) + bias)
    grad = tensor((8, 32), "randn", 4)
    y.backward(grad)
    assert torch.equal(bias.grad, grad.sum(0))


def test_fp32_parameters_give_fp32_of_the_bf16_product():
    x, weight = torch.randn(8, 64), torch.randn(32, 64)
    y = mx_linear(x, weight)
    assert y.dtype == torch.float32
    assert torch.equal(y, y.to(torch.bfloat16).float())
    assert_matmul_within_bound(
        y.to(torch.bfloat16), mxref.quantize(x), turned(mxref.quantize(weight))
    )


@pytest.mark.parametrize("shape", [(0,), (2, 3, 0), (2, 0, 3, 0)], ids=str)
def test_an_empty_contraction_gives_zeros_of_any_rank(shape):
    y = mx_linear(torch.zeros(shape), torch.zeros(4, 0))
    assert torch.equal(y, torch.zeros(*shape[:-1], 4))


@pytest.mark.parametrize("terms", [2**22 - 1, 2**22])
def test_no_bound_is_claimed_where_none_is_proved(terms):
    a, b = torch.ones(1, terms), torch.ones(terms, 1)
    pairs = mxref.quantize(a), mxref.quantize(b, block=(32, 1))
    value, bound = mxref.matmul(*pairs, blocks=((1, 32), (32, 1)))
    assert (value.item(), bound.item()) == (terms, torch.inf)
