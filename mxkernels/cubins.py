"""CUDA C++ of this package, compiled at first use with NVRTC and kept on disk as cubins.

A cubin is named by the digest of all sources, the options, NVRTC's version and the architecture, so
nothing stale is ever met. It lies in the folder that MXKERNELS_CACHE names, else in
`mxkernels` below XDG_CACHE_HOME or ~/.cache. Files appear by renaming, so processes that start
together may compile twice and never read half a file; a damaged file is compiled anew.
"""

import functools
import hashlib
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

from mxkernels import arch

ROOT = Path(__file__).parent
INCLUDES = (ROOT / "quantize", ROOT)
STANDARD = "c++17"

Macros = tuple[tuple[str, int], ...]


def target(capability: int) -> str:
    """The architecture compiled for: from sm_90 on with the instructions of that chip alone.

    >>> target(80), target(90)
    ('sm_80', 'sm_90a')
    """
    return f"sm_{capability}{'a' if capability >= 90 else ''}"


def cache_folder() -> Path:
    """Where cubins are kept; read from the environment each time."""
    named = os.environ.get("MXKERNELS_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "mxkernels"


@functools.cache
def sources_digest() -> str:
    """The digest of every CUDA file of this package."""
    digest = hashlib.sha256()
    for path in sorted((*ROOT.rglob("*.cu"), *ROOT.rglob("*.cuh"))):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@functools.cache
def nvrtc_version() -> tuple[int, int]:
    """The version of the NVRTC that is installed, (13, 0) for 13.0."""
    from cuda.bindings import nvrtc

    status, major, minor = nvrtc.nvrtcVersion()
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise RuntimeError(f"nvrtcVersion failed: {status}")
    return major, minor


def compiled(file: str, macros: Macros, architecture: str) -> bytes:
    """The cubin of `quantize/<file>` for an architecture such as "sm_90a"; needs no GPU.

    Raises RuntimeError with the compiler's log where the source does not compile.
    """
    from cuda.core import Program, ProgramOptions

    path = ROOT / "quantize" / file
    options = ProgramOptions(
        name=file,
        arch=architecture,
        std=STANDARD,
        include_path=[str(each) for each in INCLUDES],
        define_macro=[(name, str(value)) for name, value in macros],
    )
    try:
        return bytes(Program(path.read_text(), "c++", options).compile("cubin").code)
    except Exception as error:
        log = str(error).strip("\0\n")
        raise RuntimeError(f"{file} does not compile for {architecture}: {log}") from error


def cubin(file: str, macros: Macros, architecture: str) -> bytes:
    """The same, from the cache where it is there and whole, else compiled and kept."""
    asked = (sources_digest(), file, macros, STANDARD, nvrtc_version(), architecture)
    name = hashlib.sha256(repr(asked).encode()).hexdigest()
    path = cache_folder() / f"{Path(file).stem}-{architecture}-{name[:32]}.cubin"
    code = _read(path)
    if code is None:
        code = compiled(file, macros, architecture)
        _write(path, code)
    return code


def _read(path: Path) -> bytes | None:
    """The cubin in a file, which begins with its digest; None where that does not hold."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    code = stored[32:]
    return code if code and hashlib.sha256(code).digest() == stored[:32] else None


def _write(path: Path, code: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        warnings.warn(
            f"cubins cannot be kept in {path.parent} ({error}), each process compiles its own: "
            "set MXKERNELS_CACHE to a folder that can be written",
            stacklevel=2,
        )


@functools.cache
def kernel(file: str, name: str, macros: Macros, device: int) -> Any:
    """The `cuda.core.Kernel` `name` of a file, loaded for a CUDA device."""
    from cuda.core import ObjectCode

    code = cubin(file, macros, target(arch.capability(device)))
    return ObjectCode.from_cubin(code).get_kernel(name)


@functools.lru_cache(1024)
def _stream(device: int, handle: int) -> Any:
    from cuda.core import LEGACY_DEFAULT_STREAM, Stream

    return Stream.from_handle(handle) if handle else LEGACY_DEFAULT_STREAM


@functools.cache
def launcher() -> Any:
    """`cuda.core.launch`."""
    from cuda.core import launch

    return launch


def stream(device: int) -> Any:
    """torch's current stream of a device, for `cuda.core.launch`."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    handle = raw(device) if raw else torch.cuda.current_stream(device).cuda_stream
    return _stream(device, handle)
