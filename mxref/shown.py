"""How an error shows the value of a wrong argument: a tensor by its shape and dtype."""

from torch import Tensor


def shown(value: object) -> str:
    """The value's repr in one line of at most 200 characters; of tensors only shape and dtype.

    >>> import torch
    >>> shown((torch.zeros(2, 3), None)), shown(1.5)
    ('(<Tensor (2, 3) torch.float32>, None)', '1.5')
    """
    if isinstance(value, Tensor):
        return f"<{type(value).__name__} {tuple(value.shape)} {value.dtype}>"
    if isinstance(value, (tuple, list)):
        first, last = "()" if isinstance(value, tuple) else "[]"
        last = f",{last}" if first == "(" and len(value) == 1 else last
        text = f"{first}{', '.join(map(shown, value[:8]))}{', ...' * (len(value) > 8)}{last}"
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= 200 else f"{text[:200]}..."
