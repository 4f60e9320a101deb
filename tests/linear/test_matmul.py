"""Every back end of the matmul, judged by float64 and a proved bound; what the judge catches."""

import threading
from importlib import import_module
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

import mxkernels
import mxref
from mxkernels.matmul import matmul, op, table
from mxkernels.matmul.configs import DECODES
from mxkernels.matmul.dequantize import fp32_sums
from mxref import Quantized
from mxref.testing import assert_matmul_within_bound
from tests.linear.operands import EXAMPLES, FILLS, SIZES, operand, turned

USUAL = (operand(64, 64, "usual", 1), operand(64, 64, "usual", 2))


def backends(device):
    return [each.name for each in table.BACKENDS if each.missing(torch.device(device)) is None]


def stored(pair, layout):
    scale = mxref.layouts.encode(pair.scale, layout, shape=tuple(pair.payload.shape))
    return pair.payload, scale


def judged(a, b, backend, config=-1, layout="plain"):
    found = op.matmul(*stored(a, layout), *stored(b, layout), backend, config)
    assert_matmul_within_bound(found, a, turned(b))


@settings(max_examples=EXAMPLES)
@given(st.tuples(SIZES, SIZES, SIZES), st.sampled_from(FILLS), st.sampled_from(FILLS), st.data())
def test_every_back_end_is_within_the_bound(device, shape, first, second, data):
    m, n, k = shape
    seed = data.draw(st.integers(0, 1 << 16))
    a, b = operand(m, k, first, seed, device), operand(n, k, second, seed + 1, device)
    for backend in backends(device):
        for layout in table.find(backend).scale_layouts:
            judged(a, b, backend, layout=layout)


@pytest.mark.parametrize("config", range(len(DECODES)), ids=lambda i: str(i))
@pytest.mark.parametrize("shape", [(3, 40, 300), (17, 64, 256)], ids=str)
def test_every_configuration_of_the_decode(device, shape, config):
    m, n, k = shape
    lacking = table.find("triton").missing(torch.device(device))
    if lacking:
        pytest.skip(lacking)
    a, b = operand(m, k, "any byte", 3, device), operand(n, k, "usual", 4, device)
    for layout in table.find("triton").scale_layouts:
        judged(a, b, "triton", config, layout)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 256, 8192), (64, 512, 4096), (300, 200, 1000)], ids=str)
def test_large_products_on_a_gpu(shape):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    m, n, k = shape
    for fill in FILLS:
        a, b = operand(m, k, fill, 5, "cuda"), operand(n, k, fill, 6, "cuda")
        for backend in backends("cuda"):
            for layout in table.find(backend).scale_layouts:
                judged(a, b, backend, layout=layout)


@pytest.mark.gpu
def test_the_tensor_cores_are_within_the_bound():
    if "scaled_mm" not in (backends("cuda") if torch.cuda.is_available() else ()):
        pytest.skip("no MX tensor cores")
    a, b = (mxref.quantize(torch.randn(rows, 256).cuda()) for rows in (64, 96))
    judged(a, b, "scaled_mm", layout="swizzle_32_4_4")


def number(byte):
    return (byte.to(torch.float64) - 127).exp2().masked_fill(byte == 255, torch.nan)


def product(a, b, scale_a=number, scale_b=number, turn=lambda codes: codes.mT):
    """Right by itself; each argument can make it wrong."""
    parts = []
    for (payload, scale), value in ((a, scale_a), (b, scale_b)):
        factor = value(scale.view(torch.uint8)).repeat_interleave(32, 1)
        parts.append(payload.to(torch.float64) * factor[:, : payload.shape[1]])
    return (parts[0] @ turn(parts[1])).to(torch.bfloat16)


def test_the_model_is_right():
    for fill in ("usual", "bytes 0 to 4", "any byte"):
        a, b = operand(64, 64, fill, 1), operand(64, 64, "usual", 2)
        assert_matmul_within_bound(product(a, b), a, turned(b))


WRONG = {
    "b is not transposed": (USUAL, {"turn": lambda codes: codes}),
    "a scale is dropped": (USUAL, {"scale_b": lambda byte: torch.ones(byte.shape)}),
    "scales are rotated": (USUAL, {"scale_a": lambda byte: number(byte.roll(1, 0))}),
    "one scale is off by one": (
        USUAL,
        {"scale_a": lambda byte: number(byte).index_fill(0, torch.tensor(9), 1.0)},
    ),
    "byte 0 is zero": (
        (operand(64, 64, "bytes 0 to 4", 1), operand(64, 64, "large bytes", 2)),
        {"scale_a": lambda byte: number(byte).masked_fill(byte == 0, 0)},
    ),
    "byte 255 is a number": (
        (
            Quantized(USUAL[0].payload, torch.full_like(USUAL[0].scale.view(torch.uint8), 255)),
            USUAL[1],
        ),
        {"scale_a": lambda byte: number(byte).nan_to_num(2.0**127)},
    ),
    "NaN leaks into a row": (
        USUAL,
        {"scale_a": lambda byte: number(byte).index_fill(0, torch.tensor(5), torch.nan)},
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_product_is_caught(fault):
    (a, b), wrong = WRONG[fault]
    with pytest.raises(AssertionError, match=r"expected .* within"):
        assert_matmul_within_bound(product(a, b, **wrong), a, turned(b))


def test_sums_in_bf16_are_caught():
    a, b = operand(4, 2048, "usual", 1), operand(4, 2048, "usual", 2)
    values = [mxref.dequantize(*pair, dtype=torch.bfloat16) for pair in (a, b)]
    total = torch.zeros(4, 4, dtype=torch.bfloat16)
    for k in range(2048):
        total += values[0][:, k, None] * values[1][None, :, k]
    with pytest.raises(AssertionError):
        assert_matmul_within_bound(total, a, turned(b))


def test_the_bound_holds_for_sums_in_any_order_and_is_not_idle():
    a, b = operand(8, 512, "usual", 7), operand(8, 512, "usual", 8)
    left, right = (mxref.dequantize(*pair) for pair in (a, b))
    value, bound = mxref.matmul(a, turned(b), dtype=torch.float32)
    terms = left[:, None, :] * right[None, :, :]
    worst = 0.0
    for order in range(20):
        shuffled = terms[..., torch.randperm(512, generator=torch.Generator().manual_seed(order))]
        total = torch.zeros(8, 8)
        for k in range(512):
            total = total + shuffled[..., k]
        worst = max(worst, ((total - value).abs() / bound).max().item())
    assert 1e-4 < worst <= 1


def test_no_claim_is_made_only_where_fp32_overflows():
    big = Quantized(torch.full((1, 32), 448.0).to(torch.float8_e4m3fn), scale([[200]]))
    assert mxref.matmul(big, turned(big)).bound.isinf().all()
    small = Quantized(big.payload, scale([[60]]))
    assert mxref.matmul(big, turned(small)).bound.isfinite().all()
    huge = Quantized(big.payload, scale([[254]]))
    assert mxref.matmul(huge, turned(small)).bound.isinf().all()


def scale(rows):
    return torch.tensor(rows, dtype=torch.uint8).view(torch.float8_e8m0fnu)


def test_leading_dimensions_and_blocks_of_the_oracle():
    a = mxref.quantize(torch.randn(3, 40, 70), block=(32, 32))
    b = mxref.quantize(torch.randn(70, 50), block=(1, 32))
    value = mxref.matmul(a, b, blocks=((32, 32), (1, 32))).value
    left = mxref.dequantize(*a, block=(32, 32)).to(torch.float64)
    assert torch.equal(value, left @ mxref.dequantize(*b).to(torch.float64))


@pytest.mark.parametrize("shape", [(128, 256, 512), (1, 16, 32), (300, 48, 96)], ids=str)
def test_compile_only_scaled_mm_takes_our_shapes_and_layouts(shape):
    """torch's own checks of sizes, strides and scales, on fake CUDA tensors."""
    m, n, k = shape
    with FakeTensorMode():
        sides = []
        for rows in (m, n):
            x = torch.empty(rows, k, dtype=torch.bfloat16, device="cuda")
            sides += mxkernels.quantize(x, scale_layout="swizzle_32_4_4", backend="triton")
        call = table.find("scaled_mm").call
        found = call(*sides)
        assert found.shape == (m, n)
        assert found.dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match="scale"):
            call(sides[0], sides[1].new_empty(sides[1].numel() - 512), *sides[2:])


@pytest.mark.parametrize("before", [True, False])
def test_the_process_wide_setting_is_put_back(before):
    flags = torch.backends.cuda.matmul
    kept = flags.allow_bf16_reduced_precision_reduction
    flags.allow_bf16_reduced_precision_reduction = before
    try:
        with fp32_sums():
            assert flags.allow_bf16_reduced_precision_reduction is False
        assert flags.allow_bf16_reduced_precision_reduction is before
    finally:
        flags.allow_bf16_reduced_precision_reduction = kept


def test_the_table():
    assert table.choose(100, 8192, 8192, 8192) == "scaled_mm"
    assert table.choose(120, 8192, 8192, 8190) == "dequantize"
    assert table.choose(100, 64, 8192, 8192, "plain") == "dequantize"
    few = ["triton", "triton", "dequantize"]
    assert [table.choose(100, m, 8192, 8190) for m in (1, 16, 17)] == few
    assert [table.choose(90, m, 64, 64) for m in (1, 32, 33)] == few
    assert table.choose(80, 1, 64, 64) == "dequantize"
    assert table.resolve("auto", torch.device("cpu"), 1, 64, 64) == "dequantize"
    assert {each.name for each in table.BACKENDS} | {"auto"} == set(table.NAMES)


def test_a_traced_graph_keeps_the_architecture(monkeypatch):
    """The capability is asked while tracing, by a function that dynamo itself could not trace."""
    found = []

    def capability(index):
        found.append(threading.get_ident())
        return int(str(threading.Lock()).startswith("<")) * 90

    monkeypatch.setattr(table.arch, "capability", capability)
    monkeypatch.setattr(table.arch, "cuda_index", lambda device: 0)

    @torch.compile(fullgraph=True, backend="eager")
    def traced(x):
        return x + table.architecture("cuda", None)

    assert traced(torch.zeros(1)).item() == 90
    assert len(found) == 1


@pytest.mark.parametrize("package", ["matmul", "grouped_mm"])
def test_every_back_end_is_listed(package):
    folder = Path(table.__file__).parents[1] / package
    files = {path.stem for path in folder.glob("*.py") if "BACKEND = " in path.read_text()}
    listed = import_module(f"mxkernels.{package}.table").BACKENDS
    function = "call" if package == "matmul" else "rows"
    modules = {getattr(each, function).__module__ for each in listed}
    assert modules == {f"mxkernels.{package}.{name}" for name in files}
    assert len(files) == len(listed) >= 3


@pytest.mark.parametrize(
    ("a", "b", "options", "error", "words"),
    [
        (USUAL[0], USUAL[1], {"backend": "fast"}, ValueError, ["backend='fast'", "'dequantize'"]),
        (USUAL[0], USUAL[1], {"backend": None}, TypeError, ["backend=None"]),
        (
            USUAL[0],
            USUAL[1],
            {"backend": "scaled_mm"},
            ValueError,
            ["a.scale", "'plain'", "swizzle"],
        ),
        (USUAL[0][0], USUAL[1], {}, TypeError, ["a=", "(payload, scale)"]),
        (operand(4, 32, "usual", 1), USUAL[1], {}, ValueError, ["b has shape", "(N, 32)"]),
        (Quantized(USUAL[0].payload, USUAL[0].scale[:1]), USUAL[1], {}, ValueError, ["a.scale"]),
        (Quantized(USUAL[0].scale, USUAL[0].scale), USUAL[1], {}, TypeError, ["a.payload", "e8m0"]),
    ],
)
def test_a_bad_argument_is_named(a, b, options, error, words):
    with pytest.raises(error) as raised:
        matmul(a, b, **options)
    for word in words:
        assert word in str(raised.value)


def test_a_back_end_that_cannot_run_says_so():
    swizzled = [torch.zeros(512, dtype=torch.uint8).view(torch.float8_e8m0fnu)] * 2
    with pytest.raises(RuntimeError, match=r"backend='scaled_mm' cannot run here.*sm_100"):
        matmul(
            Quantized(USUAL[0].payload, swizzled[0]),
            Quantized(USUAL[1].payload, swizzled[1]),
            backend="scaled_mm",
        )


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dtype": torch.float64}, TypeError, ["dtype=torch.float64", "bfloat16"]),
        ({"blocks": ((1, 32), (1, 32))}, ValueError, ["b.scale has shape (2, 64)", "(64, 2)"]),
        ({"blocks": (1, 32)}, TypeError, ["block=1"]),
        ({"blocks": None}, ValueError, ["blocks=None"]),
        ({"a": USUAL[0].payload}, TypeError, ["a=", "(payload, scale)"]),
        ({"a": operand(64, 32, "usual", 1)}, ValueError, ["b has shape (64, 64)", "32"]),
    ],
)
def test_the_oracle_names_a_bad_argument(options, error, words):
    options = {"a": USUAL[0], "b": turned(USUAL[1])} | options
    with pytest.raises(error) as raised:
        mxref.matmul(options.pop("a"), options.pop("b"), **options)
    for word in words:
        assert word in str(raised.value)


def test_opcheck_passes(device):
    codes = [torch.ones(4, 64).to(torch.float8_e4m3fn).to(device) for _ in range(2)]
    scales = [torch.full((4, 2), 127, dtype=torch.uint8, device=device)] * 2
    scales = [each.clone().view(torch.float8_e8m0fnu) for each in scales]
    arguments = (codes[0], scales[0], codes[1], scales[1], "dequantize")
    # test_schema compares float8 inputs by value, which torch does not do on a CPU.
    utils = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    checks = torch.library.opcheck(op.matmul, arguments, test_utils=utils)
    assert set(checks.values()) == {"SUCCESS"}
