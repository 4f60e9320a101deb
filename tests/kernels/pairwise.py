"""Rows of choices in which every two choices of different axes meet, for many axes."""

import random
from itertools import combinations


def pairs_of(row):
    return set(combinations(enumerate(row), 2))


def pairwise(*axes, candidates=30, seed=0):
    """Rows of indices into `axes`, each the best of some random ones; deterministic.

    A row starts from a pair not met yet, so every row meets at least one.
    """
    generator = random.Random(seed)
    places = [range(len(axis)) for axis in axes]
    todo = {
        ((a, i), (b, j))
        for a, b in combinations(range(len(axes)), 2)
        for i in places[a]
        for j in places[b]
    }
    rows = []
    while todo:
        best = set()
        for (a, i), (b, j) in generator.sample(sorted(todo), min(candidates, len(todo))):
            row = [generator.choice(place) for place in places]
            row[a], row[b] = i, j
            if len(met := pairs_of(row) & todo) > len(best):
                best, chosen = met, row
        todo -= best
        rows.append(tuple(axis[at] for axis, at in zip(axes, chosen, strict=True)))
    return rows
