"""The named dialects: recorded bytes of 21 probe blocks each, and two roads to every other byte."""

import random
from dataclasses import replace

import pytest
import torch

import mxref
from mxref import exact
from mxref.formats import ELEMENTS, INPUTS
from mxref.recipes import AXES
from tests.spec.test_exact_agreement import from_bits
from tests.spec.test_handed_cases import DIALECTS, hex_of, tensor_of

CONTRACT = ["floor", "rceil", "ceil", "even"]
NAMES = [name for name in mxref.RECIPES if name not in CONTRACT]
GIVEN = (0, 1, 2, 127, 253, 254, 255)


def test_the_table_holds_every_recorded_dialect_in_order():
    assert list(mxref.RECIPES)[:4] == CONTRACT
    assert sorted(NAMES) == NAMES
    assert set(DIALECTS["dialects"]) | {"even"} == set(mxref.RECIPES)


@pytest.mark.parametrize("name", list(DIALECTS["dialects"]))
def test_exact_gives_the_recorded_bytes(name):
    for probe, (scale, payload) in DIALECTS["dialects"][name]["bytes"].items():
        bits = [int(word, 16) for word in DIALECTS["probes"][probe]]
        byte, codes = exact.quantize_block(bits, "fp32", name)
        assert (f"{byte:02x}", bytes(codes).hex()) == (scale, payload), probe


def test_two_names_have_the_same_probes_only_where_they_mean_the_same_recipe():
    """quack_floor and torchao018_floor do; the probes tell every other pair apart."""
    rows = DIALECTS["dialects"]
    same = [
        {one, other}
        for one in rows
        for other in rows
        if one < other and rows[one]["bytes"] == rows[other]["bytes"]
    ]
    assert same == [{"quack_floor", "torchao018_floor"}]
    assert mxref.RECIPES["quack_floor"] == mxref.RECIPES["torchao018_floor"]
    assert len(set(mxref.RECIPES.values())) == len(mxref.RECIPES) - 1


@pytest.mark.parametrize("name", list(mxref.RECIPES))
def test_a_name_is_shown_as_unverified_unless_its_source_was_run(name):
    recipe = mxref.RECIPES[name]
    known_by = DIALECTS["dialects"].get(name, {"known_by": "run"})["known_by"]
    assert (recipe.name, recipe.known_by) == (name, known_by)
    assert recipe.shown == (name if known_by == "run" else f"{name} (unverified)")
    assert replace(recipe, element="e5m2").shown.startswith(f"{name}/e5m2")


def pool(dtype: str) -> torch.Tensor:
    """Magnitudes around the powers of two, 1.75 and 1.9375 times them, and the ends."""
    fmt = INPUTS[dtype]
    steps = [0, 1 << (fmt.mantissa_bits - 1), 3 << (fmt.mantissa_bits - 2)]
    steps += [7 << (fmt.mantissa_bits - 3), 15 << (fmt.mantissa_bits - 4)]
    binades = torch.arange((fmt.exponent_mask >> fmt.mantissa_bits) + 1) << fmt.mantissa_bits
    near = binades.reshape(-1, 1, 1) + torch.tensor(steps).reshape(-1, 1) + torch.tensor([-1, 0, 1])
    return near.flatten().clamp(0, fmt.exponent_mask + 1)


def mixed_blocks(dtype: str, rows: int, columns: int, seed: int) -> torch.Tensor:
    """Bit patterns: an amax from the pool beside elements that its scale keeps, NaN, Inf, zeros."""
    fmt = INPUTS[dtype]
    generator = torch.Generator().manual_seed(seed)

    def drawn(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=generator)

    points = pool(dtype)
    top = points[drawn(len(points), rows, 1)]
    below = (top - drawn(12 << fmt.mantissa_bits, rows, columns)).clamp_min(0)
    other = points[drawn(len(points), rows, columns)]
    bits = torch.where(drawn(12, rows, columns) == 0, torch.minimum(other, top), below)
    bits = torch.where(drawn(8, rows, 1) == 0, drawn(fmt.magnitude_mask + 1, rows, columns), bits)
    bits = torch.where(drawn(20, rows, columns) == 0, fmt.exponent_mask + drawn(2, 1, 1), bits)
    bits[:, :1] = top
    return bits | drawn(2, rows, columns) << (fmt.bits - 1)


def assert_both_roads_agree(recipe: mxref.Recipe, dtype: str, rows: int, seed: int) -> None:
    bits = mixed_blocks(dtype, rows, 4, seed)
    x = from_bits(bits, dtype)
    payload, scale = (part.view(torch.uint8).tolist() for part in mxref.quantize(x, recipe))
    for row, byte, codes in zip(bits.tolist(), scale, payload, strict=True):
        found = exact.quantize_block(row, dtype, recipe)
        assert found == (byte[0], codes), (recipe, [hex(each) for each in row])
    for byte in GIVEN:
        scale = torch.full((8, 1), byte, dtype=torch.uint8)
        payload = mxref.quantize(x[:8], recipe, scale=scale).payload.view(torch.uint8).tolist()
        for row, codes in zip(bits.tolist(), payload, strict=False):
            found = [exact.cast(each, dtype, byte, recipe=recipe) for each in row]
            assert found == codes, (recipe, byte, [hex(each) for each in row])


@pytest.mark.parametrize("dtype", list(INPUTS))
@pytest.mark.parametrize("element", list(ELEMENTS))
@pytest.mark.parametrize("name", NAMES)
def test_the_two_roads_agree(name, element, dtype):
    recipe = replace(mxref.RECIPES[name], element=element)
    assert_both_roads_agree(recipe, dtype, 120, seed=len(name))


def test_the_two_roads_agree_on_recipes_that_nobody_ships():
    """Any choice on any axis: the axes are independent of each other."""
    draw = random.Random(0)
    for seed in range(150):
        choices = {axis: draw.choice(values) for axis, values in AXES.items()}
        if choices["ratio"] == "log2_f32":
            choices["round"] = draw.choice(["floor", "rceil", "ceil"])
        if choices["ratio"] != "rcp_approx_ftz" and choices["overflow"] != "nan_above_464":
            choices["element"] = draw.choice(list(ELEMENTS))
        recipe = mxref.Recipe(**choices)
        assert_both_roads_agree(recipe, draw.choice(list(INPUTS)), 40, seed)


@pytest.mark.parametrize("name", NAMES)
def test_bf16_amax_of_every_binade(name):
    """Each magnitude alone in a partial block, Inf and NaN too."""
    bits = torch.arange(0, 1 << 15, 11).reshape(-1, 1)
    payload, scale = mxref.quantize(from_bits(bits, "bf16"), name)
    for row, byte, codes in zip(
        bits.tolist(),
        scale.view(torch.uint8).tolist(),
        payload.view(torch.uint8).tolist(),
        strict=True,
    ):
        assert exact.quantize_block(row, "bf16", name) == (byte[0], codes)


@pytest.mark.parametrize("block", [(32, 1), (32, 32)])
@pytest.mark.parametrize("name", NAMES)
def test_other_blocks_and_partial_ones(name, block):
    bits = mixed_blocks("fp32", 40, 45, seed=7)
    bits[32:, 32:] = 0x7FC00000  # a partial tile of NaN alone
    payload, scale = mxref.quantize(from_bits(bits, "fp32"), name, block=block)
    for i in range(scale.shape[0]):
        for j in range(scale.shape[1]):
            tile = (
                slice(i * block[0], (i + 1) * block[0]),
                slice(j * block[1], (j + 1) * block[1]),
            )
            codes = payload.view(torch.uint8)[tile].flatten().tolist()
            expected = exact.quantize_block(bits[tile].flatten().tolist(), "fp32", name)
            assert (int(scale.view(torch.uint8)[i, j]), codes) == expected


@pytest.mark.parametrize("name", NAMES)
def test_flush_to_zero_of_the_machine_changes_no_byte(name):
    x = from_bits(mixed_blocks("fp32", 300, 32, seed=3), "fp32")
    plain = mxref.quantize(x, name)
    torch.set_flush_denormal(True)
    try:
        flushed = mxref.quantize(x, name)
    finally:
        torch.set_flush_denormal(False)
    for first, second in zip(plain, flushed, strict=True):
        assert hex_of(first) == hex_of(second)


def test_a_probe_that_is_off_by_one_code_is_seen():
    x = tensor_of(DIALECTS["probes"]["amax448"], "fp32")
    payload, _ = mxref.quantize(x, "te")
    assert hex_of(payload) == DIALECTS["dialects"]["te"]["bytes"]["amax448"][1]
    payload.view(torch.uint8)[3] ^= 1
    assert hex_of(payload) != DIALECTS["dialects"]["te"]["bytes"]["amax448"][1]
