"""Backend: what a way to multiply groups of MX rows has to say of itself."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

Product = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor
]


@dataclass(frozen=True)
class Backend:
    """Two products in groups whose ends, int32 on the device, no back end for GPUs reads back.

    * `rows(a, a_scale, b, b_scale, offs)`: a (T, K), b (E, N, K) -> (T, N), row t of group e
      being a[t] @ b[e].mT; rows past the last end may hold anything.
    * `depth(a, a_scale, b, b_scale, ends)`: a (N, P), b (K, P), groups of columns whose ends are
      multiples of 32, none of them empty -> (E, N, K), matrix e being a[:, e] @ b[:, e].mT.

    Payloads are float8_e4m3fn and contiguous; scales of matrices are plain, those of b (E, N, K)
    swizzled, as the quantizer of 3-D weights wrote them. `missing(device)` says why it cannot run
    there, or None, and `refuses(n, k)` the same of the sizes that do not depend on the groups.
    """

    name: str
    missing: Callable[[torch.device], str | None]
    refuses: Callable[[int, int], str | None]
    rows: Product
    depth: Product
