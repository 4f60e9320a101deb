"""`python -m mxkernels.linear.train --json OUT.json`: the digits in bf16 and in MX, five seeds.

Every run has fp32 parameters under bf16 autocast; in MX the linear layers of the blocks are
MXLinear (the first and the last layer are not), all else is the same, initial values and batches
too. Final loss: the mean cross-entropy over the held-out images after the last step.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from mxkernels.arch import installed
from mxkernels.linear.config import CastConfig
from mxkernels.linear.digits import Digits, Reader, export, load
from mxkernels.linear.module import convert

RECIPES = ("bf16", "floor", "rceil")
BATCH, RATE = 256, 2e-3


def train(recipe: str, seed: int, digits: Digits, steps: int) -> dict[str, Any]:
    """One run: the loss of every step, and what is left on the held-out images."""
    device = digits.images.device
    torch.manual_seed(seed)
    model = Reader().to(device)
    if recipe != "bf16":
        convert(model, "blocks.*", CastConfig(recipe=recipe))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    generator = torch.Generator().manual_seed(seed)
    batches = torch.randint(len(digits.images), (steps, BATCH), generator=generator).to(device)
    losses = []
    start = time.perf_counter()
    for batch in batches:
        with torch.autocast(device.type, torch.bfloat16):
            logits = model(digits.images[batch])
        loss = functional.cross_entropy(logits.float(), digits.labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    curve = torch.stack(losses).tolist()
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
        logits = model(digits.held_images).float()
    right = (logits.argmax(1) == digits.held_labels).float().mean().item()
    return {
        "recipe": recipe,
        "seed": seed,
        "loss": [round(value, 6) for value in curve],
        "final_loss": functional.cross_entropy(logits, digits.held_labels).item(),
        "final_training_loss": statistics.mean(curve[-20:]),
        "accuracy": right,
        "seconds": round(time.perf_counter() - start, 2),
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means and deviations by recipe, and how far each is from bf16 in bf16's deviations.

    >>> rows = [("bf16", 0.1), ("bf16", 0.3), ("rceil", 0.2)]
    >>> runs = [
    ...     {"recipe": r, "final_loss": x, "final_training_loss": x, "accuracy": 1.0}
    ...     for r, x in rows
    ... ]
    >>> found = summary(runs)
    >>> found["rceil"]["final_loss"], found["rceil"]["within_two_deviations"]
    ({'mean': 0.2, 'deviation': 0.0}, True)
    """
    found: dict[str, Any] = {}
    for recipe in dict.fromkeys(run["recipe"] for run in runs):
        row: dict[str, Any] = {}
        for name in ("final_loss", "final_training_loss", "accuracy"):
            values = [run[name] for run in runs if run["recipe"] == recipe]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            row[name] = {"mean": round(statistics.mean(values), 6), "deviation": round(spread, 6)}
        found[recipe] = row
    many = sum(run["recipe"] == "bf16" for run in runs) > 1  # a deviation takes two
    if many:
        base = found["bf16"]["final_loss"]
        for recipe, row in found.items():
            if recipe != "bf16":
                away = abs(row["final_loss"]["mean"] - base["mean"])
                row["within_two_deviations"] = away <= 2 * base["deviation"]
    return found


def plot(runs: list[dict[str, Any]], path: Path) -> None:
    """The mean loss of each recipe over the steps, and the range of its seeds."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for recipe in dict.fromkeys(run["recipe"] for run in runs):
        curves = torch.tensor([run["loss"] for run in runs if run["recipe"] == recipe])
        steps = range(1, curves.shape[1] + 1)
        name = recipe if recipe == "bf16" else f"MX {recipe}"
        (line,) = axes.plot(steps, curves.mean(0), label=f"{name}, {len(curves)} seeds", lw=1.2)
        low, high = curves.min(0).values, curves.max(0).values
        axes.fill_between(steps, low, high, color=line.get_color(), alpha=0.15, lw=0)
    axes.set(xlabel="step", ylabel="training loss (cross-entropy)", yscale="log")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def parser() -> argparse.ArgumentParser:
    """All options."""
    made = argparse.ArgumentParser(prog="python -m mxkernels.linear.train", description=__doc__)
    add = made.add_argument
    add("--json", type=Path, metavar="FILE", help="every curve and the summary")
    add("--png", type=Path, metavar="FILE", help="the curves in one plot; needs matplotlib")
    add("--data", type=Path, metavar="FILE.npz", help="the digits, where there is no scikit-learn")
    add("--export-data", type=Path, metavar="FILE.npz", help="write that file and stop")
    add("--recipes", default=",".join(RECIPES), help=f"some of {','.join(RECIPES)}")
    add("--seeds", type=int, default=5, help="how many; default 5")
    add("--steps", type=int, default=300, help="default 300")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    return made


def _wrong(options: argparse.Namespace) -> str | None:
    """A line for what cannot be, or None."""
    unknown = [name for name in options.recipes.split(",") if name not in RECIPES]
    if unknown:
        return f"--recipes {unknown[0]!r}: expected some of {', '.join(RECIPES)}"
    for name in ("seeds", "steps"):
        if getattr(options, name) < 1:
            return f"--{name} {getattr(options, name)}: expected 1 or more"
    if options.device == "cuda" and not torch.cuda.is_available():
        return f"--device 'cuda': torch {torch.__version__} sees no CUDA device"
    if options.png and not installed("matplotlib"):
        return "--png needs matplotlib: pip install 'mxref[train]'"
    return None


def main(arguments: list[str] | None = None) -> int:
    """Train; 0, 1 if rceil lies further than two deviations from bf16, 2 for a wrong call."""
    options = parser().parse_args(arguments)
    wrong = _wrong(options)
    try:
        if wrong:
            raise ValueError(wrong)
        if options.export_data:
            count = export(options.export_data)
            sys.stdout.write(f"{count} images to {options.export_data}\n")
            return 0
        usual = "cuda" if torch.cuda.is_available() else "cpu"
        device = torch.device(usual if options.device == "auto" else options.device)
        digits = load(options.data, device)
    except (OSError, RuntimeError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    runs = []
    for recipe in options.recipes.split(","):
        for seed in range(options.seeds):
            runs.append(train(recipe, seed, digits, options.steps))
            last = runs[-1]
            sys.stderr.write(
                f"{recipe} seed {seed}: final loss {last['final_loss']:.4f}, accuracy "
                f"{last['accuracy']:.4f}, {last['seconds']} s\n"
            )
    return _report(options, device, runs)


def _report(options: argparse.Namespace, device: torch.device, runs: list[dict[str, Any]]) -> int:
    found = summary(runs)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    settings = {"batch": BATCH, "rate": RATE, "steps": options.steps, "seeds": options.seeds}
    content = {"task": "digits", "device": where, "torch": torch.__version__} | settings
    content |= {"summary": found, "runs": runs}
    if options.json:
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    if options.png:
        plot(runs, options.png)
    for recipe, row in found.items():
        loss, right = row["final_loss"], row["accuracy"]
        sys.stdout.write(
            f"{recipe}: final loss {loss['mean']:.4f} +- {loss['deviation']:.4f}, accuracy "
            f"{right['mean']:.4f}, training loss {row['final_training_loss']['mean']:.4f}\n"
        )
    inside = found.get("rceil", {}).get("within_two_deviations")
    if inside is None:
        return 0
    word = "lies" if inside else "does NOT lie"
    sys.stdout.write(
        f"the mean final loss of rceil {word} within 2 standard deviations of bf16's\n"
    )
    return 0 if inside else 1


if __name__ == "__main__":
    raise SystemExit(main())
