"""What a user would otherwise write or install, one file each, beside our kernels in every row.

A peer has `NAME` and `prepare(case, variant)`, which gives for a case the call (x -> Quantized), or
one line that says why there is none, or None where the question makes no sense. What the call
returns is verified like our own.
"""

from mxkernels.bench.peers import torch_compile, torchao, two_stage

PEERS = {peer.NAME: peer for peer in (torch_compile, two_stage, torchao)}
