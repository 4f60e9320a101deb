"""A folder of golden vectors: written so that no file is lost, read back, checked byte by byte."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import Tensor

from mxref.formats import INPUTS
from mxref.recipes import Recipe
from mxref.vectors.locate import first_difference
from mxref.vectors.sets import DTYPES, FORMAT, Vectors, make
from mxref.vectors.text import little_endian, name_of, parse, text

MANIFEST, TEXT, TENSORS = "manifest.json", "vectors.txt", "vectors.safetensors"
FILES = (TEXT, TENSORS, MANIFEST)
"""In the order in which they are written: the manifest says that the others are whole."""


def save(vectors: Vectors, folder: str | Path, *, force: bool = False) -> None:
    """Write the three files of the vectors into a folder, made if it is not there.

    A folder that holds anything else than vectors as `save` left them is refused, so that no file
    is lost. With `force` the three files are replaced; any other file stays even then. Each file
    is written beside its place and then moved, the manifest last.

    Raises:
        FileExistsError: the folder is not empty and not such a folder, or it is a file.
        ImportError: safetensors is not installed.

    >>> import tempfile
    >>> from mxref.vectors import digest
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(make("floor"), folder)
    ...     check(folder), digest(load(folder)) == digest(make("floor"))
    ([], True)
    """
    place = Path(folder)
    _require_free(place, force)
    contents = _contents(vectors)
    place.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        written = []
        for name in FILES:
            beside = place / f".{name}.{os.getpid()}"
            stack.callback(beside.unlink, missing_ok=True)
            beside.write_bytes(contents[name])
            written.append(beside)
        for name, beside in zip(FILES, written, strict=True):
            beside.replace(place / name)


def _require_free(place: Path, force: bool) -> None:
    if place.exists() and not place.is_dir():
        raise FileExistsError(f"folder={str(place)!r}: a file, expected a folder or a new name")
    if force or not place.exists() or not any(place.iterdir()):
        return
    try:
        manifest = _manifest(place)
        for name in (TEXT, TENSORS):
            if _sha256((place / name).read_bytes()) != manifest["files"][name]["sha256"]:
                raise ValueError(f"{name} was changed since")
    except (ValueError, OSError) as error:
        raise FileExistsError(
            f"folder={str(place)!r}: not empty, and not vectors as they were written ({error}): "
            f"expected a new or an empty folder, or force"
        ) from None


def load(folder: str | Path) -> Vectors:
    """The vectors of a folder, from its text; both files are held against their digests.

    Raises:
        FileNotFoundError: no manifest, or a file that it lists is missing.
        ValueError: a manifest of another format, a file whose SHA-256 is not the manifest's.
    """
    place = Path(folder)
    manifest = _manifest(place)
    for name in (TEXT, TENSORS):
        wanted, found = manifest["files"][name]["sha256"], _sha256((place / name).read_bytes())
        if found != wanted:
            raise ValueError(f"{name}: SHA-256 is {found}, expected {wanted} (see `check`)")
    return parse((place / TEXT).read_text(encoding="ascii"), _recipe(manifest))


def check(folder: str | Path) -> list[str]:
    """What differs from the vectors as they are computed now: a line a file, none if all is equal.

    The manifest says which vectors these are. Each is computed again, and every byte of every file
    is compared: a line names file, case, position in the file, the byte found and the one expected.

    Raises:
        FileNotFoundError: no manifest.
        ValueError: a manifest that cannot be read, another format, an unknown SPEC or recipe.

    >>> check("no-such-folder")
    Traceback (most recent call last):
    FileNotFoundError: no-such-folder/manifest.json: not there, so this is no folder of vectors
    """
    place = Path(folder)
    manifest = _manifest(place)
    try:
        vectors = make(
            _recipe(manifest),
            block=tuple(manifest["block"]),
            scale_layout=manifest["scale_layout"],
            contract=manifest["contract"],
            dtypes=tuple(dtype for dtype, row in DTYPES.items() if row.name in manifest["dtypes"]),
        )
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(f"{MANIFEST}: {error}") from None
    # a later version may know more axes: those that the manifest names are what is compared
    contents = _contents(vectors, manifest["axes"])
    lines = []
    for name in FILES:
        if not (place / name).is_file():
            lines.append(f"{name}: missing")
            continue
        found = first_difference(name, (place / name).read_bytes(), contents[name])
        if found is not None:
            lines.append(found)
    return lines


def _contents(vectors: Vectors, axes: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Every byte of the three files, by name."""
    try:
        from safetensors.torch import save as serialized
    except ImportError as error:
        raise ImportError(
            "safetensors is not installed: folders of vectors need pip install 'mxref[verify]'"
        ) from error
    tensors: dict[str, Tensor] = {}
    for case in vectors.cases:
        for name, numbers, width in case.arrays():
            stored = numbers if name != "x" else little_endian(numbers, width)
            tensors[f"{case.dtype}/{case.name}/{name}"] = stored.contiguous()
    # one key at most: their order in the header is not defined
    files = {
        TEXT: text(vectors).encode("ascii"),
        TENSORS: serialized(tensors, metadata={"format": FORMAT}),
    }
    described = {
        name: {"bytes": len(data), "sha256": _sha256(data)} for name, data in files.items()
    }
    manifest = {**_description(vectors, axes), "files": described}
    return {**files, MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode("ascii")}


def _description(vectors: Vectors, axes: Mapping[str, str] | None) -> dict[str, Any]:
    recipe = vectors.recipe
    if axes is None:
        named = (each.name for each in fields(recipe) if each.compare)
        axes = {name: getattr(recipe, name) for name in named}
    return {
        "format": FORMAT,
        "spec": vectors.spec,
        "recipe": name_of(recipe),
        "axes": dict(axes),
        "block": list(vectors.block),
        "scale_layout": vectors.scale_layout,
        "contract": vectors.contract,
        "dtypes": list(vectors.dtypes),
        "cases": [
            {
                "name": case.name,
                "dtype": case.dtype,
                "shape": list(case.shape),
                "scale_shape": list(case.scale.shape),
            }
            for case in vectors.cases
        ],
        "counts": {
            "cases": len(vectors.cases),
            "blocks": vectors.blocks,
            "elements": vectors.elements,
        },
    }


def _manifest(place: Path) -> dict[str, Any]:
    """The manifest of a folder, as far as everything else needs it to be right."""
    from mxref import SPEC

    path = place / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{path}: not there, so this is no folder of vectors")
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{MANIFEST}: not JSON ({error})") from None
    kinds = {"axes": dict, "block": list, "dtypes": list, "files": dict}
    if not isinstance(found, dict):
        raise ValueError(f"{MANIFEST}: expected a JSON object")
    for name, wanted in (("format", FORMAT), ("spec", SPEC)):
        if found.get(name) != wanted:
            raise ValueError(f"{MANIFEST}: {name}={found.get(name)!r}: expected {wanted!r}")
    for name in ("recipe", "scale_layout", "contract", *kinds):
        if name not in found or not isinstance(found[name], kinds.get(name, object)):
            raise ValueError(f"{MANIFEST}: {name} is missing or of the wrong kind")
    for name in (TEXT, TENSORS):
        described = found["files"].get(name)
        if not isinstance(described, dict) or "sha256" not in described:
            raise ValueError(f"{MANIFEST}: files: {name} is missing or of the wrong kind")
    known = [row.name for row in INPUTS.values()]
    if not found["dtypes"] or any(each not in known for each in found["dtypes"]):
        raise ValueError(
            f"{MANIFEST}: dtypes={found['dtypes']!r}: expected some of {', '.join(known)}"
        )
    return found


def _recipe(manifest: Mapping[str, Any]) -> Recipe:
    name, axes = manifest["recipe"], manifest["axes"]
    known = {each.name for each in fields(Recipe) if each.compare}
    for axis in axes:
        if axis not in known:
            raise ValueError(f"{MANIFEST}: axes: {axis!r} is not an axis of mxref.Recipe")
    try:
        return Recipe(**{**axes, "name": name})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{MANIFEST}: axes: {error}") from None


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
