"""Bad arguments, what is not built, what is missing: each error names it."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

import mxkernels
from mxkernels import arch, registry
from mxkernels.registry import KERNELS
from mxref import RECIPES, Recipe

X = torch.ones(2, 64)
SPECS = [spec for spec in KERNELS if spec.op == "quantize"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"x": [1.0]}, TypeError, ["x=[1.0]", "a tensor", "list"]),
        ({"x": X.double()}, TypeError, ["float64", "bfloat16", "float16", "float32"]),
        ({"x": X.to_sparse()}, TypeError, ["sparse", "strided"]),
        ({"x": torch.tensor(1.0)}, ValueError, ["shape ()", "(1, 32)", "rank 1"]),
        ({"x": torch.ones(32), "block": (32, 1)}, ValueError, ["(32,)", "(32, 1)", "rank 2"]),
        ({"recipe": "RCEIL"}, ValueError, ["'RCEIL'", "'rceil'", "'floor'"]),
        ({"recipe": None}, TypeError, ["recipe=None", "Recipe"]),
        ({"block": (1, 16)}, ValueError, ["block=(1, 16)", "(1, 32)", "(32, 32)"]),
        ({"block": (1.0, 32)}, ValueError, ["block=(1.0, 32)", "(1, 32)", "(32, 32)"]),
        ({"block": (True, 32)}, ValueError, ["block=(True, 32)", "(1, 32)"]),
        ({"block": [32, 1.0]}, ValueError, ["block=[32, 1.0]", "(1, 32)"]),
        ({"block": 32}, TypeError, ["block=32", "(1, 32)", "int"]),
        ({"payload_order": "rows"}, ValueError, ["payload_order='rows'", "'row'", "'col'"]),
        ({"payload_order": 0}, TypeError, ["payload_order=0", "'row'"]),
        ({"scale_layout": "blocked"}, ValueError, ["'blocked'", "'plain'", "'swizzle_32_4_4'"]),
        ({"backend": "tritn"}, ValueError, ["backend='tritn'", "'triton'", "'reference'"]),
        ({"backend": None}, TypeError, ["backend=None", "'auto'"]),
    ],
)
@pytest.mark.parametrize("backend", ["auto", *(spec.backend for spec in SPECS)])
def test_bad_argument_is_named(backend, arguments, error, words):
    with pytest.raises(error) as raised:
        mxkernels.quantize(**{"x": X, "backend": backend} | arguments)
    for word in words:
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"recipe": Recipe(element="e5m2")}, ["element='e5m2'"]),
        ({"recipe": replace(RECIPES["floor"], nan_scale="fe")}, ["nan_scale='fe'"]),
        ({"recipe": Recipe(round="even_fp4")}, ["even_fp4"]),
    ],
)
def test_what_is_not_built_is_named(arguments, words):
    with pytest.raises(NotImplementedError) as raised:
        mxkernels.quantize(X, **{"backend": "triton"} | arguments)
    for word in words:
        assert word in str(raised.value)


def test_what_a_kernel_does_not_list_raises(kernel):
    asked = {"recipe": "rceil", "block": (1, 32), "payload_order": "row", "scale_layout": "plain"}
    empty = replace(kernel, recipes=(), blocks=(), payload_orders=(), scale_layouts=())
    for name, listed in (
        ("recipe", "recipes"),
        ("block", "blocks"),
        ("payload_order", "payload_orders"),
        ("scale_layout", "scale_layouts"),
    ):
        spec = replace(kernel, **{listed: getattr(empty, listed)})
        with pytest.raises(NotImplementedError, match=f"^{name}="):
            spec.require(**asked)
    kernel.require(**asked)


def test_an_unlisted_block_raises_from_the_call(kernel):
    for block in {(1, 32), (32, 1), (32, 32)} - set(kernel.blocks):
        with pytest.raises(NotImplementedError, match="block="):
            kernel.call(X, "rceil", block, "row", "plain")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"x": torch.ones(64)}, ValueError, ["(64,)", "rank 2"]),
        ({"scale_layout": ("plain",)}, ValueError, ["scale_layout=('plain',)", "pair"]),
        ({"scale_layout": ("plain", "blocked")}, ValueError, ["'blocked'", "'plain_t'"]),
        ({"scale_layout": None}, TypeError, ["scale_layout=None", "'plain'"]),
        ({"backend": "compile"}, NotImplementedError, ["backend='compile'", "quantize_both"]),
        ({"recipe": "RCEIL"}, ValueError, ["'RCEIL'", "'rceil'"]),
    ],
)
def test_bad_arguments_of_both_directions_are_named(arguments, error, words):
    with pytest.raises(error) as raised:
        mxkernels.quantize_both(**{"x": X, "backend": "triton"} | arguments)
    for word in words:
        assert word in str(raised.value)


def test_an_unknown_variant_raises_with_the_list():
    with pytest.raises(ValueError, match=r"variant='32x1'.*'dim0'.*'32x32_t'"):
        mxkernels.variant("32x1")


def test_an_unknown_configuration_raises(kernel):
    with pytest.raises(ValueError, match="config='fast'"):
        kernel.call(X, "rceil", (1, 32), "row", "plain", "fast")


@pytest.mark.parametrize("backend", ["triton", "compile"])
def test_a_backend_that_cannot_run_names_what_is_missing(monkeypatch, backend):
    arch.triton_missing.cache_clear()
    arch.compiler_missing.cache_clear()
    monkeypatch.setattr(arch, "installed", lambda module: module != "triton")
    monkeypatch.setattr(arch.shutil, "which", lambda name: None)
    try:
        lacking = registry.find("quantize", backend).missing("cpu")
        assert ("mxref[kernels]" if backend == "triton" else "C++ compiler") in lacking
        with pytest.raises(RuntimeError) as raised:
            mxkernels.quantize(X, backend=backend)
        assert lacking in str(raised.value)
        assert mxkernels.quantize(X).payload.shape == X.shape
    finally:
        arch.triton_missing.cache_clear()
        arch.compiler_missing.cache_clear()


def test_a_device_that_is_not_there_is_named():
    for spec in SPECS:
        assert "'xpu'" in spec.missing("xpu")
        if not torch.cuda.is_available():
            assert "CUDA" in spec.missing("cuda")


def loaded_by(code):
    command = [sys.executable, "-W", "ignore", "-c", f"{code}; import sys; print(*sys.modules)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_import_loads_no_triton():
    modules = loaded_by("import mxkernels, mxkernels.registry")
    assert "mxkernels.registry" in modules
    assert not {"triton", "torch._dynamo", "torch._inductor"} & set(modules)


def test_the_import_test_can_fail():
    assert "triton" in loaded_by("import mxkernels.quantize.triton")
