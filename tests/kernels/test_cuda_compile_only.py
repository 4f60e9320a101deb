"""Every CUDA kernel compiled with no GPU, by nvcc and NVRTC, and what its machine code holds."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import pytest

from mxkernels import arch, cubins
from mxkernels.quantize import cuda_configs

FILES = sorted((cubins.ROOT / "quantize").glob("*.cu"))
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
CASTS = "F2FP.SATFINITE.E4M3"
E8M0 = re.compile(r"F2FP\.\S*E8\S*")
needs_nvrtc = pytest.mark.skipif(
    arch.cuda_missing("cuda") is not None, reason=str(arch.cuda_missing("cuda"))
)


def cuobjdump():
    """The tool on PATH, or the one in Triton's wheel."""
    found = shutil.which("cuobjdump")
    spec = find_spec("triton")
    if not found and spec and spec.submodule_search_locations:
        beside = Path(spec.submodule_search_locations[0]) / "backends/nvidia/bin/cuobjdump"
        found = str(beside) if beside.exists() else None
    if not found:
        pytest.skip("no cuobjdump on PATH nor in Triton's wheel")
    return found


class Code:
    """The machine code of a cubin: resources and instructions."""

    def __init__(self, code, folder):
        file = folder / "kernel.cubin"
        file.write_bytes(code)
        tool = cuobjdump()

        def dumped(option):
            return subprocess.run(
                [tool, option, file], capture_output=True, text=True, check=True
            ).stdout

        self.used = {
            name: int(count)
            for name, count in re.findall(
                r"(REG|STACK|LOCAL|SHARED):(\d+)", dumped("--dump-resource-usage")
            )
        }
        line = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?\s*([A-Z]\S*)", re.MULTILINE)
        found = [each.rstrip(";") for each in line.findall(dumped("-sass"))]
        self.operations = [each for each in found if each != "NOP"]

    def count(self, start):
        return sum(each.startswith(start) for each in self.operations)

    def assert_lean(self, architecture):
        """No spills, loads of 16 bytes, the hardware's cast where there is one."""
        assert self.used["STACK"] == self.used["LOCAL"] == 0, self.used
        assert any(re.match(r"LDG\.E.*\.128", each) for each in self.operations)
        assert (self.count(CASTS) > 0) == (architecture != "sm_80")
        assert not any(E8M0.match(each) for each in self.operations)


def macros(config, itemtype, full=1, tall=True, **more):
    """The macros of a tile configuration, as a launch gives them."""
    config = config.for_size(4 if itemtype == 2 else 2, tall)
    given = {
        "MX_TYPE": itemtype,
        "MX_ROWS": config.rows,
        "MX_LANES_DOWN": config.lanes_down,
        "MX_WARPS_DOWN": config.warps_down,
        "MX_WARPS_ACROSS": config.warps_across,
        "MX_RESIDENT": config.resident if full else 1,
        "MX_COLUMNS_FIRST": int(config.columns_first),
        "MX_FULL": full,
    }
    return tuple((given | more).items())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_compiles_alone(path, architecture, tmp_path):
    """As given to nvcc with no macro: every one has a default, every kernel is instantiated."""
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc on PATH")
    number = architecture.removeprefix("sm_")
    out = tmp_path / "alone.cubin"
    command = ["nvcc", "-std=c++17", f"-I{path.parent}", f"-I{cubins.ROOT}", "-cubin", "-o", out]
    command += [f"-gencode=arch=compute_{number},code={architecture}", path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "a warning"
    Code(out.read_bytes(), tmp_path).assert_lean(architecture)


def tile_macros(itemtype, full, block, turned, layout, config=None):
    meant = cuda_configs.family([(1, 32), (32, 1), (32, 32)][block], turned=bool(turned))
    more = {"MX_BLOCK": block, "MX_TURNED": turned, "MX_LAYOUT": layout}
    return macros(config or meant[0], itemtype, full, tall=block > 0, **more)


@needs_nvrtc
@pytest.mark.parametrize(
    ("architecture", "itemtype", "full", "block", "turned", "layout"),
    [
        ("sm_90a", 0, 1, 0, 0, 2),
        ("sm_90a", 0, 1, 0, 1, 1),
        ("sm_90a", 0, 1, 1, 0, 0),
        ("sm_90a", 0, 1, 2, 1, 2),
        ("sm_90a", 2, 1, 1, 1, 2),
        ("sm_90a", 0, 0, 1, 1, 2),
        ("sm_80", 2, 1, 1, 1, 2),
    ],
)
def test_tiles_are_lean(architecture, itemtype, full, block, turned, layout, tmp_path):
    given = tile_macros(itemtype, full, block, turned, layout)
    code = Code(cubins.compiled("tile.cu", given, architecture), tmp_path)
    code.assert_lean(architecture)
    if full and turned:
        wide = "STG.E.128"
        assert code.count(wide) == 16 // (2 if itemtype < 2 else 4)
    if (architecture, itemtype, full) == ("sm_90a", 0, 1):
        elements = dict(given)["MX_ROWS"] * 8
        assert len(code.operations) < 8 * elements, "8 instructions an element: 0.99 of the limit"


@needs_nvrtc
@pytest.mark.parametrize(("itemtype", "full"), [(0, 1), (2, 1), (1, 0)])
@pytest.mark.parametrize("config", cuda_configs.BOTH[2:4], ids=["rows first", "columns first"])
def test_both_directions_are_lean(config, itemtype, full, tmp_path):
    given = macros(config, itemtype, full, MX_LAYOUT=2, MX_COLUMN_LAYOUT=1)
    code = Code(cubins.compiled("both.cu", given, "sm_90a"), tmp_path)
    code.assert_lean("sm_90a")
    if full and itemtype == 0:
        assert len(code.operations) < 12 * 16 * 8
        # 128: four thread blocks of 128 threads on a multiprocessor.
        assert config.columns_first or code.used["REG"] <= 128


@needs_nvrtc
@pytest.mark.parametrize("architecture", ["sm_100a", "sm_120a"])
def test_the_scale_conversion_is_used_where_it_is_asked_for(architecture, tmp_path):
    given = (("MX_UE8M0_CVT", 1), ("MX_TYPE", 0))
    code = Code(cubins.compiled("flat.cu", given, architecture), tmp_path)
    found = {each for each in code.operations if E8M0.match(each)}
    assert found, "no conversion to e8m0"
    assert all("RP" in each and "SATFINITE" not in each for each in found)


@needs_nvrtc
def test_the_scale_conversion_is_refused_where_there_is_none():
    with pytest.raises(RuntimeError, match="MX_UE8M0_CVT=1 needs sm_100a"):
        cubins.compiled("flat.cu", (("MX_UE8M0_CVT", 1),), "sm_90a")


@needs_nvrtc
@pytest.mark.exhaustive
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("itemtype", [0, 1, 2])
@pytest.mark.parametrize("full", [1, 0])
def test_every_kernel_is_lean(architecture, itemtype, full, tmp_path):
    """Every configuration of every variant; below sm_89 the default one of each."""
    asked = []
    for block, turned, layout in product(range(3), range(2), range(3)):
        meant = cuda_configs.family([(1, 32), (32, 1), (32, 32)][block], turned=bool(turned))
        if architecture == "sm_80":
            meant = (cuda_configs.default(meant, 1 << 30, hardware=False),)
        for config in meant:
            asked.append(("tile.cu", tile_macros(itemtype, full, block, turned, layout, config)))
    integers = (cuda_configs.BOTH_IN_INTEGERS,)
    for config in integers if architecture == "sm_80" else cuda_configs.BOTH:
        for first, second in product(range(3), range(3)):
            layouts = {"MX_LAYOUT": first, "MX_COLUMN_LAYOUT": second}
            asked.append(("both.cu", macros(config, itemtype, full, **layouts)))
    for config in cuda_configs.FLAT:
        fields = {f"MX_{name.upper()}": value for name, value in config._asdict().items()}
        asked.append(("flat.cu", tuple(({"MX_TYPE": itemtype} | fields).items())))
    for file, given in asked:
        Code(cubins.compiled(file, given, architecture), tmp_path).assert_lean(architecture)
