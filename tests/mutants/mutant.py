"""What a mutant is: a quantizer that claims what it does not do."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Mutant(NamedTuple):
    """`fn` claims to be what `claims` say; `check` is one that must catch it, on `dtype`.

    `cause` is part of the text that names the true cause.
    """

    name: str
    check: str
    cause: str
    fn: Callable[[Tensor], Any]
    dtype: torch.dtype = torch.bfloat16
    claims: dict[str, Any] = {}  # noqa: RUF012 - never changed
