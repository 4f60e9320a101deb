"""Wrong calls raise errors that name the argument, the value and what is allowed."""

import pytest
import torch

import mxref
from mxref import exact, layouts

X = torch.ones(64, 64)
PAYLOAD, SCALE = mxref.quantize(X)
CODES = SCALE.view(torch.uint8)
OFFS = torch.tensor([1, 2], dtype=torch.int32)
ROWS = torch.ones(4, dtype=torch.bfloat16)

CALLS = [
    (lambda: mxref.quantize([1.0]), TypeError, ["x=[1.0]", "tensor", "list"]),
    (lambda: mxref.quantize(X.double()), TypeError, ["x", "float64", "bfloat16"]),
    (lambda: mxref.quantize(X.int()), TypeError, ["x", "int32"]),
    (lambda: mxref.quantize(X.to_sparse()), TypeError, ["x", "sparse", "strided"]),
    (lambda: mxref.quantize(torch.tensor(1.0)), ValueError, ["x", "()", "(1, 32)"]),
    (lambda: mxref.quantize(ROWS, block=(32, 1)), ValueError, ["x", "(4,)", "(32, 1)"]),
    (lambda: mxref.quantize(ROWS, block=(32, 32)), ValueError, ["x", "(4,)", "(32, 32)"]),
    (lambda: mxref.quantize(X, "RCEIL"), ValueError, ["recipe='RCEIL'", "'rceil'", "'floor'"]),
    (lambda: mxref.quantize(X, "flor"), ValueError, ["recipe='flor'", "'floor'"]),
    (lambda: mxref.quantize(X, None), TypeError, ["recipe=None", "NoneType"]),
    (lambda: mxref.quantize(X, block=(1, 16)), ValueError, ["block=(1, 16)", "(32, 32)"]),
    (lambda: mxref.quantize(X, block=32), TypeError, ["block=32", "(1, 32)"]),
    (lambda: mxref.quantize(X, block="1x32"), TypeError, ["block='1x32'", "(1, 32)"]),
    (lambda: mxref.quantize(X, block=([], 32)), ValueError, ["block=([], 32)", "(1, 32)"]),
    (lambda: mxref.quantize(X, scale=CODES.t()), ValueError, ["scale", "(2, 64)", "(64, 2)"]),
    (lambda: mxref.quantize(X, scale=CODES.float()), TypeError, ["scale", "float32", "uint8"]),
    (lambda: mxref.quantize(X, scale=3), TypeError, ["scale=3", "int"]),
    (lambda: mxref.quantize(X, scale=CODES.to("meta")), ValueError, ["scale", "meta", "cpu"]),
    (lambda: mxref.dequantize(CODES, SCALE), TypeError, ["payload", "uint8", "float8_e4m3fn"]),
    (lambda: mxref.dequantize(X, SCALE), TypeError, ["payload", "float32"]),
    (lambda: mxref.dequantize(PAYLOAD, SCALE[:1]), ValueError, ["scale", "(1, 2)", "(64, 2)"]),
    (lambda: mxref.dequantize(PAYLOAD, PAYLOAD), TypeError, ["scale", "float8_e8m0fnu"]),
    (lambda: mxref.dequantize(PAYLOAD, SCALE, block=(2, 2)), ValueError, ["block=(2, 2)"]),
    (lambda: mxref.dequantize(PAYLOAD, SCALE, dtype=torch.int8), TypeError, ["dtype", "int8"]),
    (lambda: mxref.dequantize(PAYLOAD, SCALE, dtype="fp32"), TypeError, ["dtype='fp32'"]),
    (lambda: layouts.encode(SCALE, "swizzled"), ValueError, ["layout='swizzled'", "'plain_t'"]),
    (lambda: layouts.encode(X, "plain"), TypeError, ["scale", "float32", "uint8"]),
    (lambda: layouts.encode(SCALE, "plain", contract=-3), ValueError, ["contract=-3", "-2"]),
    (lambda: layouts.encode(SCALE, "plain", contract=-2), ValueError, ["contract=-2", "-1"]),
    (
        lambda: layouts.encode(SCALE, "swizzle_32_4_4", block=(32, 1), contract=-1),
        ValueError,
        ["contract=-1", "(32, 1)", "-2"],
    ),
    (
        lambda: layouts.encode(SCALE, "swizzle_32_4_4", block=(32, 32), shape=(2048, 64)),
        ValueError,
        ["contract=None", "-1 or -2", "(32, 32)"],
    ),
    (
        lambda: layouts.encode(SCALE, "swizzle_32_4_4", block=(32, 32), contract=-1),
        ValueError,
        ["shape=None", "(32, 32)"],
    ),
    (lambda: layouts.encode(SCALE, "plain", shape=(64, 65)), ValueError, ["(64, 2)", "(64, 3)"]),
    (lambda: layouts.encode(SCALE, "plain", shape=(-1, 64)), ValueError, ["shape=(-1, 64)"]),
    (lambda: layouts.encode(SCALE[0], "plain", block=(32, 1)), ValueError, ["scale", "(2,)"]),
    (
        lambda: layouts.decode(CODES, "swizzle_32_4_4", shape=(64, 64)),
        ValueError,
        ["stored", "128 bytes", "512"],
    ),
    (lambda: layouts.decode(CODES, "plain", shape=()), ValueError, ["shape", "()"]),
    (lambda: layouts.encode_groups(CODES, OFFS, axis="m"), ValueError, ["axis='m'", "'M'"]),
    (lambda: layouts.encode_groups(CODES, OFFS.long(), axis="M"), TypeError, ["offs", "int64"]),
    (lambda: layouts.encode_groups(CODES, [1, 2], axis="M"), TypeError, ["offs=[1, 2]", "list"]),
    (lambda: layouts.encode_groups(CODES, OFFS.flip(0), axis="M"), ValueError, ["offs=[2, 1]"]),
    (lambda: layouts.encode_groups(CODES, OFFS + 1, axis="K"), ValueError, ["[2, 3]", "0 to 2"]),
    (lambda: layouts.encode_groups(CODES, OFFS[:0], axis="K"), ValueError, ["offs", "(0,)"]),
    (lambda: layouts.encode_groups(CODES[0], OFFS, axis="K"), ValueError, ["scale", "(2,)"]),
    (
        lambda: layouts.decode_groups(CODES, OFFS, axis="K", shape=(64, 2)),
        ValueError,
        ["stored", "128 bytes", "1280"],
    ),
    (
        lambda: layouts.decode_groups(CODES, OFFS, axis="K", shape=64),
        ValueError,
        ["shape=64", "(R, C)"],
    ),
    (lambda: exact.quantize_block([], "bf16", "floor"), ValueError, ["bits", "0 patterns", "1024"]),
    (lambda: exact.quantize_block([0] * 1025, "bf16", "floor"), ValueError, ["1025", "1024"]),
    (lambda: exact.quantize_block([1 << 16], "bf16", "floor"), ValueError, ["0x10000", "0xffff"]),
    (lambda: exact.quantize_block([1.5], "bf16", "floor"), TypeError, ["1.5", "float"]),
    (lambda: exact.quantize_block([0], "bfloat16", "floor"), ValueError, ["dtype='bfloat16'"]),
    (lambda: exact.quantize_block([0], "bf16", "Floor"), ValueError, ["recipe='Floor'"]),
    (lambda: exact.cast(0, "bf16", 256), ValueError, ["byte=256", "255"]),
    (lambda: exact.cast(0, "bf16", 0, "e3m4"), ValueError, ["element='e3m4'", "'e5m2'"]),
    (lambda: mxref.Recipe(element="e4m4"), ValueError, ["element='e4m4'", "'e4m3'"]),
    (lambda: mxref.Recipe(round=1), TypeError, ["round=1"]),
    (lambda: mxref.Recipe(scale_rule="floor"), TypeError, ["scale_rule"]),
    (lambda: mxref.Recipe("floor"), TypeError, ["positional"]),
    (lambda: mxref.Recipe(name="floor"), ValueError, ["name='floor'", "round='rceil'"]),
    (lambda: mxref.quantize(X, block=(1.0, 32.0)), ValueError, ["block=(1.0, 32.0)", "(1, 32)"]),
    (lambda: mxref.quantize(X, block=(True, 32)), ValueError, ["block=(True, 32)", "(1, 32)"]),
    (lambda: layouts.encode(SCALE, ["plain"]), TypeError, ["layout=['plain']", "'plain_t'"]),
    (lambda: layouts.encode(SCALE, "plain", contract=-1.0), ValueError, ["contract=-1.0", "-2"]),
    (lambda: layouts.decode(CODES, "plain", shape=(1 << 70, 4)), ValueError, ["shape=("]),
    (
        lambda: layouts.decode_groups(CODES, OFFS, axis="K", shape=("4", None)),
        ValueError,
        ["shape=('4', None)", "(R, C)"],
    ),
    (
        lambda: layouts.encode_groups(CODES, OFFS.to("meta"), axis="K"),
        TypeError,
        ["offs", "values"],
    ),
    (lambda: exact.quantize_block(1, "bf16", "floor"), TypeError, ["bits=1", "int"]),
    (lambda: exact.quantize_block([1], ["bf16"], "floor"), ValueError, ["dtype=['bf16']"]),
    (lambda: exact.cast(1, "bf16", 127.0), ValueError, ["byte=127.0", "255"]),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), CALLS, ids=range(len(CALLS)))
def test_a_wrong_call_names_argument_value_and_what_is_allowed(call, error, words):
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
