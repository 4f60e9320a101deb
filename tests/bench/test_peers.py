"""The peers: the plain formula in every variant, compiled and counted, two stages, torchao."""

import itertools

import pytest
import torch

from mxkernels import reference
from mxkernels.arch import compiler_missing, triton_missing
from mxkernels.bench.jobs import difference
from mxkernels.bench.peers import torch_compile, torchao, two_stage
from mxkernels.bench.plan import Case, parsed, text
from mxkernels.bench.site import Site
from mxkernels.quantize.shapes import SCALE_LAYOUTS
from mxkernels.quantize.variants import VARIANTS, Variant

SHAPE = (2, 64, 96)
BLOCKS = ((1, 32), (32, 1), (32, 32))
EVERY = [
    Variant(*each) for each in itertools.product(BLOCKS, ("row", "col"), SCALE_LAYOUTS, ("n", "t"))
]


def case(variant, recipe="rceil", shape=SHAPE):
    return Case("cast3d", shape, "bfloat16", "randn", text(variant), recipe)


def wrong(call, variant, recipe, data="specials"):
    x = Site(SHAPE, "bfloat16", "cpu", data).pool(variant.input_order).items[0]
    return difference(call(x), reference.quantize(x, recipe, *variant[:3]))


@pytest.mark.parametrize("recipe", torch_compile.RULES)
@pytest.mark.parametrize("variant", EVERY, ids=text)
def test_the_plain_formula_gives_the_bytes_of_every_variant(monkeypatch, variant, recipe):
    monkeypatch.setattr(torch_compile, "compiled", lambda function, name: function)
    call = torch_compile.quantizer.__wrapped__((SHAPE, "bfloat16"), variant, recipe)
    assert wrong(call, variant, recipe) == ""
    assert wrong(call, variant, recipe, "subnormals") == ""
    if recipe == "rceil":
        assert wrong(call, variant, "floor") != ""


@pytest.mark.skipif(compiler_missing("cpu") is not None, reason="torch.compile cannot run here")
def test_the_compiled_formula_is_right_and_is_compiled():
    variant = VARIANTS["32x1_n"]
    call = torch_compile.prepare(case(variant), variant)
    assert wrong(call, variant, "rceil", "specials") == ""
    assert wrong(call, variant, "rceil", "subnormals") == ""
    assert torch_compile.prepare(case(variant), variant) is call  # not compiled twice


def test_a_case_that_runs_eager_is_an_error(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    call = torch_compile.compiled(lambda x: x, "eager")
    with pytest.raises(RuntimeError, match="made 0 graphs of eager: it would run eager"):
        call(torch.ones(1))


def test_each_case_has_a_code_object_of_its_own():
    first, second = (torch_compile.fresh(case, name) for name in ("a", "b"))
    assert first.__code__ is not second.__code__
    assert (first.__code__.co_name, second.__code__.co_name) == ("a", "b")


def test_what_the_formula_does_not_cover_is_said():
    variant = VARIANTS["dim0"]
    assert "whole blocks, 95" in torch_compile.prepare(case(variant, shape=(2, 64, 95)), variant)
    assert "floor, rceil" in torch_compile.prepare(case(variant, "even"), variant)


@pytest.mark.skipif(triton_missing(interpret=True) is not None, reason="needs Triton")
@pytest.mark.parametrize("name", ["32x1_t", "32x1_n", "32x32_n", "1x32 row swizzle_32_4_4 n"])
def test_two_stages_give_the_same_bytes(name):
    variant = VARIANTS.get(name) or parsed(name)
    call = two_stage.prepare(case(variant), variant)
    assert wrong(call, variant, "rceil") == ""


def test_two_stages_need_something_to_swizzle():
    assert two_stage.prepare(case(VARIANTS["dim0"]), VARIANTS["dim0"]) is None


def test_torchao_that_is_not_installed_is_a_note(monkeypatch):
    monkeypatch.setattr(torchao, "installed", lambda name: False)
    found = torchao.prepare(case(VARIANTS["32x1_n"]), VARIANTS["32x1_n"])
    assert found == "torchao is not installed"


def test_torchao_that_refuses_says_so_in_its_own_words(monkeypatch):
    class Module:
        @staticmethod
        def mxfp8_quantize_cuda_3d(x, **options):
            raise NotImplementedError("requires CUDA, SM 10.x")

    monkeypatch.setattr(torchao, "installed", lambda name: True)
    monkeypatch.setattr(torchao, "import_module", lambda name: Module)
    variant = VARIANTS["32x1_n"]
    call = torchao.prepare(case(variant), variant)
    with pytest.raises(NotImplementedError, match=r"torchao refuses: requires CUDA, SM 10\.x"):
        call(torch.ones(SHAPE))
    matrix = VARIANTS["dim0"]
    assert "no kernel" in torchao.prepare(case(matrix), matrix)
