"""Where the points of a panel lie in its figure's SVG, for scripts that move them."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def settle(figure: Figure) -> None:
    """Lay the figure out once and for all: what is added later moves no panel."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def places(axes: Axes, points: Float[np.ndarray, "*N 2"]) -> Float[np.ndarray, "*N 2"]:
    """Points of a panel's data in the units of the SVG, to a tenth; the figure is settled.

    >>> from matplotlib.figure import Figure
    >>> axes = Figure(figsize=(2, 1)).add_axes((0, 0, 1, 1))
    >>> places(axes, np.array([[0.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.0, 72.0], [144.0, 0.0]]
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = np.asarray(points, dtype=float)
    pixels = axes.transData.transform(points.reshape(-1, 2)) * 72 / figure.dpi
    pixels[:, 1] = 72 * figure.get_size_inches()[1] - pixels[:, 1]
    return np.round(pixels, 1).reshape(points.shape) + 0.0


def path(points: Float[np.ndarray, "N 2"], *, closed: bool = False) -> str:
    """Places as the `d` of an SVG path.

    >>> path(np.array([[0.0, 1.5], [2.0, 3.0]]))
    'M0 1.5L2 3'
    """
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points) + "Z" * closed
