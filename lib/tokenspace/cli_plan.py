"""The command `tokenspace plan`: what runs would cost, before anything is fetched or run."""

from typing import Annotated

import typer

from tokenspace.errors import CapacityError
from tokenspace.options import Json, Notebooks, Parameters, Place, Profile, chosen, echo_json


def plan(
    notebooks: Notebooks = None,
    parameter: Parameters = None,
    profile: Profile = "classroom",
    device: Place = None,
    everything: Annotated[bool, typer.Option("--all", help="Plan every notebook.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with the runs in build/runs instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what runs would need: hardware, memory, disk, time, and what would be downloaded.

    Nothing is run, and of models on the Hub only sizes are asked for. Exits with 2 when a run can't
    fit this machine, and names the smallest change that would.
    """
    from tokenspace.press import layout
    from tokenspace.press.costs import costs_page, forecast
    from tokenspace.sources.sizes import Sizes

    root, sizes = layout.find_root(), Sizes()
    if check:
        rows = costs_page.check(root, sizes)
        if as_json:
            echo_json(rows)
        else:
            typer.echo("\n".join(costs_page.check_lines(rows)))
        return
    names = chosen(notebooks, everything, layout.notebooks(root), "plan")
    found = forecast.forecasts(root, names, profile, parameter or [], device, sizes)
    if as_json:
        echo_json([each.record() for each in found])
    else:
        for each in found:
            typer.echo("\n".join(each.lines()) + "\n")
        if len(found) > 1:
            typer.echo(forecast.together([each.here for each in found], found[0].at_once))
    if refused := [each.refusal() for each in found if each.problems]:
        raise CapacityError("\n".join(refused))
