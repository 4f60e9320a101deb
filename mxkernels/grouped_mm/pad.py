"""Groups of rows moved apart so that each begins a block of 32: what a cast along rows needs.

No end is read on the host: the padded matrix has the most rows that any ends could ask for.
"""

import torch


def padded_rows(tokens: int, groups: int) -> int:
    """The rows of `pad_groups`: every group may need one block more than its tokens fill.

    >>> padded_rows(40, 3)
    160
    """
    return 32 * (-(-tokens // 32) + groups)


def pad_groups(x: torch.Tensor, offs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """x (T, C) with every group padded by zero rows to a multiple of 32, and the new ends.

    Returns (P, C), P = 32 (ceil(T / 32) + E), and int32 ends (E,), multiples of 32. An empty group
    gets one block of zeros, so that no group is empty and its product is exactly 0. Rows past the
    last end of `offs` are left out.

    >>> padded, ends = pad_groups(torch.ones(40, 1), torch.tensor([3, 3, 40], dtype=torch.int32))
    >>> padded.shape, ends.tolist(), padded[:4, 0].tolist(), int(padded.sum())
    (torch.Size([160, 1]), [32, 64, 128], [1.0, 1.0, 1.0, 0.0], 40)
    """
    tokens, groups = x.shape[0], offs.shape[0]
    rows = padded_rows(tokens, groups)
    starts = torch.cat([offs.new_zeros(1), offs.narrow(0, 0, groups - 1)])
    sizes = ((offs - starts + 31) // 32 * 32).clamp_min(32)
    ends = sizes.cumsum(0, dtype=torch.int32)
    place = torch.arange(tokens, device=x.device, dtype=torch.int32)
    group = torch.searchsorted(offs, place, right=True)
    inside = group < groups
    group = group.clamp_max(groups - 1)
    moved = place + (ends - sizes - starts).index_select(0, group)
    # what is in no group goes to one row more, which is cut off
    moved = torch.where(inside, moved, rows).to(torch.int64)
    padded = x.new_zeros(rows + 1, x.shape[1]).index_copy(0, moved, x)
    return padded.narrow(0, 0, rows), ends
