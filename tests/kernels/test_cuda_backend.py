"""The CUDA back end around its kernels: cubins on disk, what is missing, what auto takes."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import mxkernels
from mxkernels import arch, cubins, registry
from mxkernels.quantize import cuda
from mxkernels.registry import KERNELS, chosen_backend
from tests.kernels.cuda_host import on_cpu  # noqa: F401
from tests.kernels.guarded import DIM0, assert_bytes, bytes_of, expected

needs_nvrtc = pytest.mark.skipif(
    arch.cuda_missing("cuda") is not None, reason=str(arch.cuda_missing("cuda"))
)
SMALL = ("flat.cu", (("MX_TYPE", 0), ("MX_CHUNKS", 2)), "sm_90a")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MXKERNELS_CACHE", str(tmp_path / "cubins"))
    return tmp_path / "cubins"


@needs_nvrtc
def test_a_cubin_is_compiled_once(cache, monkeypatch):
    first = cubins.cubin(*SMALL)
    assert first[:4] == b"\x7fELF"
    (path,) = cache.iterdir()
    assert path.name.startswith("flat-sm_90a-")

    def never(*asked):
        raise AssertionError("compiled again")

    monkeypatch.setattr(cubins, "compiled", never)
    assert cubins.cubin(*SMALL) == first
    with pytest.raises(AssertionError, match="compiled again"):
        cubins.cubin(SMALL[0], (("MX_TYPE", 1),), SMALL[2])
    monkeypatch.setattr(cubins, "sources_digest", lambda: "of other sources")
    with pytest.raises(AssertionError, match="compiled again"):
        cubins.cubin(*SMALL)


@needs_nvrtc
@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_cubin_is_compiled_anew(cache, damage):
    first = cubins.cubin(*SMALL)
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damage is None else damage)
    assert cubins.cubin(*SMALL) == first
    assert path.read_bytes() == whole
    assert [each.name for each in cache.iterdir()] == [path.name], "a file was left behind"


@needs_nvrtc
def test_processes_that_start_together_get_the_same_cubin(cache):
    code = (
        "import hashlib; from mxkernels import cubins; "
        f"print(hashlib.sha256(cubins.cubin(*{SMALL!r})).hexdigest())"
    )
    command = [sys.executable, "-W", "error", "-c", code]

    def start(_):
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    with ThreadPoolExecutor(2) as pool:
        digests = set(pool.map(start, range(2)))
    assert len(digests) == 1
    assert len(list(cache.iterdir())) == 1


@needs_nvrtc
def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MXKERNELS_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="MXKERNELS_CACHE"):
        assert cubins.cubin(*SMALL)[:4] == b"\x7fELF"


@needs_nvrtc
def test_a_source_that_does_not_compile_raises_with_the_log():
    with pytest.raises(RuntimeError, match=r"(?s)tile\.cu does not compile for sm_90a.*32 columns"):
        cubins.compiled("tile.cu", (("MX_BLOCK", 0), ("MX_LANES_DOWN", 16)), "sm_90a")


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("MXKERNELS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cubins.cache_folder() == tmp_path / "mxkernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cubins.cache_folder().parts[-2:] == (".cache", "mxkernels")


def test_a_cpu_tensor_is_refused_by_name():
    for call in (mxkernels.quantize, mxkernels.quantize_both):
        with pytest.raises(RuntimeError, match=r"backend='cuda' cannot run here: device 'cpu'"):
            call(torch.ones(2, 64), backend="cuda")


@pytest.mark.parametrize("backend", ["triton_ue8m0", "cuda_ue8m0"])
def test_the_scale_instruction_is_refused_where_no_gpu_has_it(monkeypatch, backend):
    with pytest.raises(RuntimeError, match=r"device 'cpu': .*needs a CUDA GPU of sm_100, sm_103"):
        mxkernels.quantize(torch.ones(2, 64), backend=backend)
    with pytest.raises(NotImplementedError, match="recipe='floor' is not built"):
        mxkernels.quantize(torch.ones(2, 64), "floor", backend=backend)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(arch, "cuda_missing", lambda kind: None)
    monkeypatch.setattr(arch, "triton_missing", lambda interpret: None)
    spec = registry.find("quantize", backend)
    for capability in (90, 110, 121):
        monkeypatch.setattr(arch, "capability", lambda index, found=capability: found)
        assert spec.missing("cuda:0").startswith(f"sm_{capability} GPU: cvt.rp.ue8m0x2.f32 needs")
    for capability in arch.UE8M0:
        monkeypatch.setattr(arch, "capability", lambda index, found=capability: found)
        assert spec.missing("cuda:0") is None


def test_the_scale_instruction_is_a_macro_of_the_same_kernels(on_cpu, monkeypatch):  # noqa: F811
    asked, kernel = [], cubins.kernel

    def seen(file, name, macros, device):
        asked.append(dict(macros).get("MX_UE8M0_CVT", 0))
        return kernel(file, name, macros, device)

    monkeypatch.setattr(cubins, "kernel", seen)
    x = torch.linspace(-3, 500, 64 * 64).view(64, 64).to(torch.bfloat16)
    wanted = expected(x, "rceil", DIM0)
    for backend in ("cuda", "cuda_ue8m0"):
        payload, scale = (torch.empty_like(part) for part in wanted)
        registry.find("quantize", backend).launch(x, payload, scale, "rceil")
        assert_bytes((payload, scale), wanted)
    assert asked == [0, 1]


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    arch.cuda_missing.cache_clear()
    monkeypatch.setattr(arch, "installed", lambda module: module != "cuda.core")
    try:
        lacking = arch.cuda_missing("cuda")
        assert lacking == "cuda.core is not installed: pip install 'mxref[cuda]'"
    finally:
        arch.cuda_missing.cache_clear()


def test_auto_takes_the_winner_of_a_variant_and_architecture(monkeypatch):
    variant = ((1, 32), "row", "plain")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(arch, "capability", lambda index: 90)
    monkeypatch.setattr(arch, "cuda_missing", lambda kind: None)
    monkeypatch.setitem(registry.WINNERS, "quantize", {variant: {90: "cuda"}})
    assert chosen_backend("quantize", variant, "cuda:0") == "cuda"
    assert chosen_backend("quantize", ((1, 32), "row", "plain_t"), "cuda:0") == "triton"
    assert chosen_backend("quantize", variant, "cpu") == "reference"
    monkeypatch.setattr(arch, "capability", lambda index: 100)
    assert chosen_backend("quantize", variant, "cuda:0") == "triton", "another architecture"
    monkeypatch.setattr(arch, "capability", lambda index: 90)
    monkeypatch.setattr(arch, "cuda_missing", lambda kind: "not installed")
    assert chosen_backend("quantize", variant, "cuda:0") == "triton", "the winner cannot run"


def test_every_winner_is_a_registered_kernel():
    for operation, variants in registry.WINNERS.items():
        for variant, winners in variants.items():
            for backend in winners.values():
                assert registry.find(operation, backend) in KERNELS, variant


def test_importing_loads_no_cuda_core():
    code = "import mxkernels.registry, sys; print('cuda.core' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.gpu
def test_a_shape_that_was_met_is_launched_from_its_plan(monkeypatch):
    if registry.find("quantize", "cuda").missing("cuda"):
        pytest.skip(registry.find("quantize", "cuda").missing("cuda"))
    call = registry.find("quantize", "cuda").call
    x = torch.randn(4, 64, device="cuda")
    first = bytes_of(call(x, "rceil", *DIM0))
    monkeypatch.setattr(cuda, "plan_of", None)
    assert_bytes(bytes_of(call(x.clone(), "rceil", *DIM0)), first)
    assert_bytes(first, expected(x, "rceil"))
    with pytest.raises(TypeError):
        call(torch.randn(5, 64, device="cuda"), "rceil", *DIM0)


CASTS = r"""
#include "mx_arithmetic.cuh"
// The hardware's cast of every pattern from `first` on, against the integer function.
extern "C" __global__ void compare(unsigned long long first, unsigned* wrong) {
    const mx_u32 bits = (mx_u32)first + blockIdx.x * blockDim.x + threadIdx.x;
    const float x = mx_float(bits);
    if (mx_cast_four(x, 1.0f, x, -2.0f) != (0xC0003800u | mx_round_e4m3(bits) * 0x10001u)) {
        atomicAdd(wrong, 1u);
    }
}
// What differs between host and device for words of 16-bit elements, for both types.
template <int TYPE>
static __device__ bool differs(mx_u32 word, mx_u32 byte) {
    float out[2];
    mx_scaled<TYPE>(word, mx_factor<TYPE>(byte), out);
    const mx_u32 factor = mx_multiplier_half(byte) << 16;
    const mx_u32 low = mx_bits(mx_float(mx_element_bits<TYPE, 0>(word)) * mx_float(factor));
    const mx_u32 high = mx_bits(mx_float(mx_element_bits<TYPE, 1>(word)) * mx_float(factor));
    if (mx_round_e4m3(mx_bits(out[0])) != mx_round_e4m3(low)) return true;
    if (mx_round_e4m3(mx_bits(out[1])) != mx_round_e4m3(high)) return true;
    const mx_u32 a = word & 0x7FFFu, b = word >> 16 & 0x7FFFu, most = a > b ? a : b;
    return mx_larger<TYPE>(a | b << 16, b | a << 16) != most * 0x10001u;
}
extern "C" __global__ void words(unsigned long long byte, unsigned* wrong) {
    const mx_u32 half = blockIdx.x * blockDim.x + threadIdx.x;
    const mx_u32 word = half | (half * 40503u & 0xFFFFu) << 16;
    if (differs<MX_BF16>(word, (mx_u32)byte) || differs<MX_FP16>(word, (mx_u32)byte)) {
        atomicAdd(wrong, 1u);
    }
}
"""


@pytest.mark.gpu
def test_the_instructions_of_the_gpu_equal_the_integer_functions():
    """The cast on all 2^32 inputs; products and maxima on all 16-bit patterns with every byte."""
    if registry.find("quantize", "cuda").missing("cuda"):
        pytest.skip(registry.find("quantize", "cuda").missing("cuda"))
    from cuda.core import LaunchConfig, Program, ProgramOptions, launch

    architecture = cubins.target(arch.capability(0))
    options = ProgramOptions(arch=architecture, std="c++17", include_path=str(cubins.ROOT))
    built = Program(CASTS, "c++", options).compile("cubin")
    wrong = torch.zeros(2, dtype=torch.int32, device="cuda:0")
    stream, address = cubins.stream(0), wrong.data_ptr()
    step = 1 << 30
    for first in range(0, 1 << 32, step):
        config = LaunchConfig(grid=(step // 256,), block=(256,))
        launch(stream, config, built.get_kernel("compare"), first, address)
    for byte in (*range(248), 255):
        config = LaunchConfig(grid=(256,), block=(256,))
        launch(stream, config, built.get_kernel("words"), byte, address + 4)
    assert wrong.tolist() == [0, 0]
