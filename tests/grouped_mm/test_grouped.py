"""grouped_mm: each group by the oracle, forward and both gradients; torch; bad arguments."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

import mxref
from mxkernels import CastConfig
from mxkernels.grouped_mm import grouped_mm, op, table
from mxkernels.grouped_mm.pad import pad_groups
from mxkernels.linear import cast
from mxref import Quantized
from mxref.testing import assert_matmul_within_bound
from tests.linear.operands import EXAMPLES, VALUES, tensor, turned

CONFIGS = {
    "auto": CastConfig(),
    "triton": CastConfig(dim0="triton", dim1="triton", recipe="floor"),
    "mixed": CastConfig(dim0="triton", dim1="reference", matmul="dequantize"),
}


@st.composite
def groups(draw):
    """Ends of groups, some empty; and tokens, some of them past the last end."""
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
    ends = torch.tensor(sizes).cumsum(0).to(torch.int32)
    return ends, int(ends[-1]) + draw(st.integers(0, 3))


def run(x, w, offs, grad, config):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = grouped_mm(x, w, offs, config=config)
    y.backward(grad)
    return y.detach(), x.grad, w.grad


def spans(offs):
    ends = [0, *offs.tolist()]
    return list(pairwise(ends))


def judge(x, w, offs, grad, found, recipe):
    y, dx, dw = found

    def q(value, block=(1, 32)):
        return mxref.quantize(value, recipe, block=block)

    across = (32, 1)
    for expert, (first, last) in enumerate(spans(offs)):
        part, g, weight = x[first:last], grad[first:last], w[expert]
        assert_matmul_within_bound(y[first:last], q(part), turned(q(weight)))
        assert_matmul_within_bound(dx[first:last], q(g), q(weight, across))
        left = turned(q(g, across))
        assert_matmul_within_bound(dw[expert], left, q(part, across), blocks=((1, 32), (32, 1)))
    past = int(offs[-1])
    assert not y[past:].any()
    assert not dx[past:].any()


@settings(max_examples=EXAMPLES)
@given(
    groups(),
    st.tuples(st.integers(1, 70), st.integers(1, 70)),
    st.tuples(*[st.sampled_from(VALUES)] * 3),
    st.integers(0, 1 << 16),
    st.sampled_from(list(CONFIGS)),
)
def test_every_group_is_within_the_bound(device, cut, sizes, values, seed, name):
    (offs, tokens), (n, k) = cut, sizes
    x = tensor((tokens, k), values[0], seed, device=device)
    w = tensor((len(offs), n, k), values[1], seed + 1, device=device)
    grad = tensor((tokens, n), values[2], seed + 2, device=device)
    ends = offs.to(device)
    judge(x, w, ends, grad, run(x, w, ends, grad, CONFIGS[name]), CONFIGS[name].recipe)


def example(device="cpu", ends=(7, 7, 70, 75), tokens=80, n=48, k=64, values="randn"):
    x = tensor((tokens, k), values, 1, device=device)
    w = tensor((len(ends), n, k), values, 2, device=device)
    grad = tensor((tokens, n), values, 3, device=device)
    return x, w, torch.tensor(ends, dtype=torch.int32, device=device), grad


def operands(device):
    x, w, offs, grad = example(device)
    config = CastConfig()
    along = cast.along(x, config, "plain"), cast.along(w, config)
    padded, ends = pad_groups(x, offs)
    lines, _ = pad_groups(grad, offs)
    across = cast.across(lines, config, "plain"), cast.across(padded, config, "plain")
    return (*along[0], *along[1], offs), (*across[0], *across[1], ends)


def judge_products(y, dw, rows, depth):
    """Both products of the same operands; rows of y past the last end may hold anything."""
    a, a_scale, b, b_scale, offs = rows
    for expert, (first, last) in enumerate(spans(offs)):
        left = Quantized(a[first:last], a_scale[first:last])
        scale = mxref.layouts.decode(b_scale[expert], cast.LAYOUT, shape=tuple(b[expert].shape))
        right = Quantized(b[expert], scale)
        assert_matmul_within_bound(y[first:last], left, turned(right))
    a, a_scale, b, b_scale, ends = depth
    for expert, (first, last) in enumerate(spans(ends)):
        blocks = slice(first // 32, last // 32)
        left = Quantized(a[:, first:last], a_scale[:, blocks])
        right = Quantized(b[:, first:last], b_scale[:, blocks])
        assert_matmul_within_bound(dw[expert], left, turned(right))


def backends(device):
    """Those that run here."""
    return [each for each in table.BACKENDS if not each.missing(torch.device(device))]


def test_every_back_end_that_runs_here_is_within_the_bound(device):
    rows, depth = operands(device)
    found = backends(device)
    assert len(found) > 1
    for backend in found:
        judge_products(backend.rows(*rows), backend.depth(*depth), rows, depth)


@pytest.mark.parametrize("fault", ["offs", "ends", "experts"])
def test_a_back_end_that_cuts_wrong_groups_is_caught(device, fault):
    rows, depth = operands(device)
    for backend in backends(device):
        y, dw = backend.rows(*rows), backend.depth(*depth)
        if fault == "offs":
            y = backend.rows(*rows[:-1], rows[-1] + 1)
        elif fault == "ends":
            dw = backend.depth(*depth[:-1], depth[-1] - 32)
        else:
            dw = dw.flip(0)
        with pytest.raises(AssertionError, match=r"expected .* within"):
            judge_products(y, dw, rows, depth)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(512, 256), (63, 100)], ids=str)
def test_nothing_is_read_back_from_a_gpu(shape):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    x, w, offs, grad = example("cuda", (300, 300, 900), 1000, *shape)
    run(x, w, offs, grad, CastConfig())
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = run(x, w, offs, grad, CastConfig())
    finally:
        torch.cuda.set_sync_debug_mode("default")
    judge(x, w, offs, grad, found, "rceil")


def test_nan_stays_in_its_group(device):
    x, w, offs, grad = example(device)
    clean = run(x, w, offs, grad, CastConfig())
    x[8, 3], grad[9, 4] = torch.nan, torch.inf
    found = run(x, w, offs, grad, CastConfig())
    assert found[2][2].isnan().any()
    for expert in (0, 1, 3):
        assert torch.equal(found[2][expert], clean[2][expert])
    assert not found[0][:7].isnan().any()


def test_an_expert_without_tokens_has_a_gradient_of_zero(device):
    x, w, offs, grad = example(device)
    assert not run(x, w, offs, grad, CastConfig())[2][1].any()
    none = torch.zeros_like(offs)
    for part in run(x, w, none, grad, CastConfig()):
        assert not part.any()


@pytest.mark.parametrize(
    "fault", ["ends off by one", "blocks not at the group's start", "w is transposed", "order"]
)
def test_a_wrong_group_is_caught(fault):
    x, w, offs, grad = example(n=64, values="wide")
    y, dx, dw = run(x, w, offs, grad, CastConfig())
    judge(x, w, offs, grad, (y, dx, dw), "rceil")
    if fault == "ends off by one":
        y, dx, dw = run(x, w, offs + 1, grad, CastConfig())
    elif fault == "blocks not at the group's start":
        blocks = mxref.quantize(x, block=(32, 1)), mxref.quantize(grad, block=(32, 1))
        left, right = (mxref.dequantize(*pair, block=(32, 1)) for pair in blocks)
        dw = torch.stack([right[i:j].mT @ left[i:j] for i, j in spans(offs)]).to(torch.bfloat16)
    elif fault == "w is transposed":
        dx = run(x, w.mT.contiguous(), offs, grad, CastConfig())[1]
    else:
        dw = dw.flip(0)
    with pytest.raises(AssertionError):
        judge(x, w, offs, grad, (y, dx, dw), "rceil")


def test_compiled_fullgraph_equals_eager(device):
    x, w, offs, grad = example(device)
    wanted = run(x, w, offs, grad, CastConfig())

    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def compiled(x, w, offs):
        return grouped_mm(x, w, offs)

    for _ in range(2):
        leaves = x.clone().requires_grad_(), w.clone().requires_grad_()
        y = compiled(*leaves, offs)
        y.backward(grad)
        for part, other in zip((y, *(leaf.grad for leaf in leaves)), wanted, strict=True):
            assert torch.equal(part, other)


def test_inductor_equals_eager(device):
    x, w, offs, _ = example(device)
    compiled = torch.compile(lambda x: grouped_mm(x * 2, w, offs), fullgraph=True)
    assert torch.equal(compiled(x), grouped_mm(x * 2, w, offs))


def test_autocast_gives_bf16(device):
    x, w, offs, _ = example(device)
    with torch.autocast(device, torch.bfloat16):
        y = grouped_mm(x.float(), w.float(), offs)
    assert torch.equal(y, grouped_mm(x, w, offs))


@pytest.mark.parametrize("tokens", [0, 1, 31, 64])
def test_any_number_of_tokens(tokens, device):
    x, w, _, grad = example(device, tokens=tokens)
    offs = torch.tensor([0, tokens, tokens, tokens], dtype=torch.int32, device=device)
    judge(x, w, offs, grad, run(x, w, offs, grad, CastConfig()), "rceil")


needs_grouped_mm = pytest.mark.skipif(
    not hasattr(torch, "_grouped_mm"), reason="torch has no _grouped_mm"
)


@needs_grouped_mm
@pytest.mark.parametrize("sizes", [(64, 96, 128), (1, 32, 32), (300, 128, 256)], ids=str)
def test_compile_only_scaled_products_take_our_shapes_and_layouts(sizes):
    """torch's own checks of strides and scales, on fake CUDA tensors; E = 4."""
    tokens, n, k = sizes
    backend = table.find("scaled_mm")
    config = CastConfig(dim0="triton", dim1="triton")
    with FakeTensorMode():
        x, g = (torch.empty(tokens, width, dtype=torch.bfloat16, device="cuda") for width in (k, n))
        w = torch.empty(4, n, k, dtype=torch.bfloat16, device="cuda")
        offs = torch.empty(4, dtype=torch.int32, device="cuda")
        rows, columns = cast.both(w, config)
        y = backend.rows(*cast.along(x, config, "plain"), *rows, offs)
        assert (y.shape, y.dtype) == ((tokens, n), torch.bfloat16)
        assert backend.rows(*cast.along(g, config, "plain"), *columns, offs).shape == (tokens, k)
        (left, ends), (right, _) = pad_groups(g, offs), pad_groups(x, offs)
        lines = cast.across(left, config, "plain"), cast.across(right, config, "plain")
        dw = backend.depth(*lines[0], *lines[1], ends)
        assert (dw.shape, dw.dtype) == ((4, n, k), torch.bfloat16)
        with pytest.raises(RuntimeError, match="scale"):
            backend.rows(
                *cast.along(x, config, "plain"), rows[0], columns[1].narrow(1, 0, 128), offs
            )


@needs_grouped_mm
def test_the_table():
    assert table.choose(100, False, 64, 64) == "scaled_mm"
    assert table.choose(100, False, 64, 64, scaled_mm=False) == "grouped"
    assert table.choose(90, False, 40, 48) == "grouped"
    assert table.choose(90, False, 41, 48) == table.choose(80, False, 64, 64) == "masked"
    assert table.resolve("dequantize", torch.device("cpu"), 8, 8) == "loop"
    with pytest.raises(NotImplementedError, match="matmul='triton'"):
        table.resolve("triton", torch.device("cpu"), 8, 8)
    with pytest.raises(ValueError, match="backend='fast'"):
        table.find("fast")


X, W, OFFS, _ = example()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((X.tolist(), W, OFFS), TypeError, ["x=", "list"]),
        ((X, W[0], OFFS), ValueError, ["w has shape (48, 64)", "(E, N, K)"]),
        ((X[:, :32], W, OFFS), ValueError, ["x has shape (80, 32)", "(T, 64)"]),
        ((X, W, OFFS.long()), TypeError, ["offs has dtype torch.int64", "torch.int32"]),
        ((X, W, OFFS[:2]), ValueError, ["offs has shape (2,)", "(4,)"]),
        ((X, W[:0], OFFS[:0]), ValueError, ["w has shape (0, ", "E >= 1"]),
        ((X, W.float(), OFFS), TypeError, ["w has dtype torch.float32", "torch.bfloat16"]),
        ((X.half(), W.half(), OFFS), TypeError, ["x has dtype torch.float16"]),
        ((X, W, OFFS.to("meta")), ValueError, ["offs is on meta"]),
        ((X, W, OFFS.flip(0)), ValueError, ["offs=[75, 70, 7, 7]", "non-decreasing"]),
        ((X, W, OFFS + 6), ValueError, ["offs=", "80"]),
    ],
)
def test_a_bad_argument_is_named(arguments, error, words):
    with pytest.raises(error) as raised:
        grouped_mm(*arguments)
    for word in words:
        assert word in str(raised.value)
    with pytest.raises(TypeError, match="config='rceil'"):
        grouped_mm(X, W, OFFS, config="rceil")


def test_opcheck_passes(device):
    x, w, offs, _ = example(device)
    x.requires_grad_()
    arguments = (x, w.requires_grad_(), offs, *CastConfig().names, True, True)
    checks = torch.library.opcheck(op.grouped_mm, arguments)
    assert set(checks.values()) == {"SUCCESS"}


def test_a_second_derivative_is_refused():
    x, w, offs, _ = example(values="randn")
    x = x.requires_grad_()
    (grad,) = torch.autograd.grad(grouped_mm(x, w, offs).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="grouped_mm is differentiable once"):
        torch.autograd.grad(grad.square().sum(), x)


def test_meta_tensors_have_shapes():
    x, w, offs, _ = (part.to("meta") for part in example())
    assert grouped_mm(x, w, offs).shape == (80, 48)
