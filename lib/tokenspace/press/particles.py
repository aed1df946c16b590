"""A panel of particles that fall towards corners: drawn at one level, with the places of all."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from tokenspace.press.figures import INK, MUTED, PALETTE, PAPER
from tokenspace.press.places import places


def draw_particles(
    axes: Axes,
    number: int,
    at: Float[np.ndarray, "K N 2"],
    target: Float[np.ndarray, "K N 2"],
    corners: Float[np.ndarray, "K V 2"],
    ended: Int[np.ndarray, " N"],
    level: int,
) -> dict[str, Any]:
    """Draw panel `number` of a settled figure at a level; what `particles.js` needs of all levels.

    Particle i has the colour of the corner `ended[i]` and a trail of the levels so far; `target`
    is where it is heading. Each list of the result runs over levels, x and y in turn.
    """
    colours = [PALETTE[j] for j in ended]
    ring = np.concatenate([corners[level], corners[level, :1]])
    axes.plot(*ring.T, color=MUTED, lw=1.2, gid=f"ts-ring-{number}")
    trails = np.swapaxes(at, 0, 1)
    axes.add_collection(
        LineCollection(
            list(trails[:, : level + 1]),
            colors=colours,
            linewidths=0.8,
            alpha=0.45,
            gid=f"ts-trails-{number}",
        ),
        autolim=False,
    )
    axes.scatter(
        at[level, :, 0],
        at[level, :, 1],
        s=13,
        c=colours,
        edgecolors=PAPER,
        linewidths=0.4,
        zorder=3,
        gid=f"ts-dots-{number}",
    )
    axes.scatter(
        corners[level, :, 0],
        corners[level, :, 1],
        s=90,
        marker="*",
        c=PALETTE[: corners.shape[1]],
        edgecolors=INK,
        linewidths=0.7,
        zorder=2.5,
        gid=f"ts-stars-{number}",
    )
    moving = {"dots": at, "targets": target, "stars": corners}
    return {
        name: places(axes, np.swapaxes(what, 0, 1)).reshape(what.shape[1], -1).tolist()
        for name, what in moving.items()
    }
