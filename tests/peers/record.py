"""Judges the peers that are installed: what conforms, and a reproducer for what does not.

usage: python -m tests.peers.record OUT.json [PEER ...]

What OUT.json holds of peers that are not installed here stays in it.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import torch

import mxref
from mxref.testing import verify
from mxref.testing.arrange import arrange
from mxref.testing.cases import edge_blocks, thresholds
from mxref.testing.claims import INPUT_FORMATS, Claims
from mxref.testing.judge import Judge
from tests.peers.adapters import PEERS, Peer

KINDS = ("NaN in the block", "Inf, no NaN", "byte 0", "other finite")


def blocks_of(dtype: torch.dtype) -> torch.Tensor:
    """Blocks (count, 32): the named edge blocks, and some thresholds among smaller values."""
    fmt, element = INPUT_FORMATS[dtype], mxref.formats.E4M3
    named = torch.tensor(list(edge_blocks(fmt, element).values()))
    amax = thresholds(fmt, element)[:: 8 if fmt.bits == 16 else 32]
    falling = torch.arange(32) << (fmt.mantissa_bits - 3)
    rest = (amax[:, None] - falling * (amax[:, None] >= falling)).clamp_min(0)
    patterns = torch.cat([named, rest])
    integer = torch.int32 if fmt.bits == 32 else torch.int16
    return patterns.to(integer).view(dtype)


def by_kind(peer: Peer, dtype: torch.dtype) -> dict[str, dict[str, int]]:
    """How many blocks of each kind come back with the reference's bytes (any NaN code for NaN)."""
    x = arrange(blocks_of(dtype), (1, 32), 128)
    claims = Claims.of(**{**peer.claims, "dtypes": (dtype,)})
    judge = Judge(peer.quantize, claims)
    actual = judge.ask(x.clone())
    payload, scale = mxref.quantize(x, peer.recipe)
    own = mxref.layouts.decode(actual.scale, peer.scale_layout, shape=tuple(x.shape)).reshape(-1)
    byte = scale.view(torch.uint8).reshape(-1)
    codes, wanted = actual.payload.reshape(-1, 32), payload.view(torch.uint8).reshape(-1, 32)
    same = (codes == wanted) | ((codes & 0x7F) == 0x7F) & ((wanted & 0x7F) == 0x7F)
    equal = same.all(1) & (own == byte)
    rows = x.reshape(-1, 32)
    nan = rows.isnan().any(1)
    masks = (nan, rows.isinf().any(1) & ~nan, byte == 0, (byte > 0) & (byte < 255))
    return {
        kind: {"blocks": int(mask.sum()), "equal": int((mask & equal).sum())}
        for kind, mask in zip(KINDS, masks, strict=True)
    }


def judged(name: str) -> dict[str, Any]:
    """One peer's record."""
    peer = PEERS[name]
    report = verify(
        peer.quantize,
        level="smoke",
        checks=peer.checks,
        name=f"tests.peers.adapters:{name}",
        **peer.claims,
    )
    content = json.loads(report.to_json())
    return {
        "package": f"{peer.package} {peer.version}",
        "environment": content["environment"],
        "spec": mxref.SPEC,
        "claims": content["claims"],
        "passed": content["passed"],
        "verdict": content["verdict"],
        "kinds": {str(dtype).removeprefix("torch."): by_kind(peer, dtype) for dtype in peer.dtypes},
        "results": [
            {key: row[key] for key in ("check", "dtype", "verdict", "blocks", "elements", "detail")}
            for row in content["results"]
        ],
        "failures": content["failures"],
    }


def main(arguments: list[str]) -> int:
    out, *names = arguments
    for name in names:
        if name not in PEERS:
            sys.stderr.write(f"record: peer={name!r}: expected one of {', '.join(PEERS)}\n")
            return 2
    path = Path(out)
    found = json.loads(path.read_text()) if path.exists() else {"peers": {}}
    for name in names or PEERS:
        if PEERS[name].version:
            found["peers"][name] = judged(name)
            sys.stdout.write(f"{name}: {found['peers'][name]['verdict']}\n")
        else:
            sys.stdout.write(f"{name}: {PEERS[name].package} is not installed\n")
    found["peers"] = {name: found["peers"][name] for name in PEERS if name in found["peers"]}
    # a list of numbers on one line: bits and codes are most of the file
    text = re.sub(r"\[[\s\d,]+\]", lambda m: " ".join(m[0].split()), json.dumps(found, indent=1))
    path.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.stderr.write("usage: python -m tests.peers.record OUT.json [PEER ...]\n")
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
