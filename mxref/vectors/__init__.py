"""Golden vectors: the bytes of a recipe on frozen inputs, for implementations in any language.

`make` computes them, `save` writes a folder of three files, `load` reads it back, `check` computes
everything again and names the first byte that differs, `digest` is one name for all the bytes.

=====================  =========================================================================
vectors.txt            every case in hex, read with a loop over words
vectors.safetensors    the same as uint8 tensors "dtype/case/x", ".../payload", ".../scale"
manifest.json          SPEC, recipe and axes, block, layout, shapes, counts, SHA-256 of both files
=====================  =========================================================================

The bytes depend on neither the platform nor the version of torch: inputs come from integer
arithmetic, numbers are written little-endian, and no file holds a date or a version.
"""

from mxref.vectors.folder import check, load, save
from mxref.vectors.sets import DTYPES, FORMAT, Case, Vectors, make
from mxref.vectors.text import digest, text

__all__ = ["DTYPES", "FORMAT", "Case", "Vectors", "check", "digest", "load", "make", "save", "text"]
