"""A claim: what a paper says, what we found, and what would have refuted it."""

import math
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tokenspace.errors import ClaimError

Source = Literal["stated", "reconstructed", "ours"]
Verdict = Literal["holds", "does-not-hold", "not-testable"]
Number = Any  # Python's, NumPy's and torch's scalars; a float once the claim is made

ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SOURCES: dict[str, str] = {
    "stated": "stated by the paper",
    "reconstructed": "our reconstruction of the paper",
    "ours": "our addition",
}
VERDICTS: dict[str, str] = {
    "holds": "holds",
    "does-not-hold": "does not hold",
    "not-testable": "not testable at this scale",
}


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim and its verdict: inside the band it holds, outside it does not.

    `paper` is the paper's number as it writes it, `ours` what we measured and `band` what it must
    lie in, ends included, `None` for an open side. `control` says what the same measurement gave
    where there is nothing to find, `scale` on what all this was measured. A claim without a number
    of ours is not testable at this scale and says `why`. Raises `ClaimError`.

    >>> claim = Claim(id="toy", statement="two is even", source="ours", ours=2, band=(2, 2),
    ...               control="3 is odd", scale="1 row")
    >>> claim.verdict
    'holds'
    """

    id: str
    statement: str
    source: Source
    paper: str | None = None
    ours: Number = None
    uncertainty: Number = None
    band: tuple[Number, Number] | None = None
    control: str | None = None
    scale: str
    why: str | None = None
    verdict: Verdict = field(init=False)

    def __post_init__(self) -> None:
        ours, uncertainty = (None if x is None else float(x) for x in (self.ours, self.uncertainty))
        band = None if self.band is None else tuple(map(_end, self.band))
        ends = [x for x in band or () if x is not None]
        told, measured = f"band is {self.band!r}", ours is not None
        refused = {
            "an id has small letters, digits and single hyphens": not ID.fullmatch(self.id),
            f"source is {self.source!r}; use one of {[*SOURCES]}": self.source not in SOURCES,
            "no statement": not self.statement.strip(),
            "no scale": not self.scale.strip(),
            f"ours is {ours}; it must be finite": not math.isfinite(ours or 0),
            f"uncertainty is {uncertainty}; it must be finite": not math.isfinite(uncertainty or 0),
            f"{told}; give (low, high), None for an open side": band and len(band) != 2,
            f"{told}, open on both sides: nothing would refute the claim": band and not ends,
            f"{told}; its ends must be numbers": any(map(math.isnan, ends)),
            f"{told}: it is empty": ends != sorted(ends),
            "no number of ours: say why= it isn't testable at this scale": not measured
            and not (self.why or "").strip(),
            "no band: say which values of ours would refute it, band=(low, high)": measured
            and band is None,
            "no control: say what the same measurement gave where nothing is": measured
            and not (self.control or "").strip(),
        }
        for why, found in refused.items():
            if found:
                raise ClaimError(f"claim {self.id!r}: {why}")
        verdict = "not-testable"
        if ours is not None and band is not None:
            low, high = band
            inside = (low is None or low <= ours) and (high is None or ours <= high)
            verdict = "holds" if inside else "does-not-hold"
        settled = {"ours": ours, "uncertainty": uncertainty, "band": band, "verdict": verdict}
        for name, value in settled.items():
            object.__setattr__(self, name, value)  # a frozen class sets its own fields so

    def _ipython_display_(self) -> None:
        """Show nothing more when a cell ends with a claim: the page has shown it."""

    def record(self) -> dict[str, Any]:
        """Give the claim as plain JSON data."""
        return {**asdict(self), "band": None if self.band is None else list(self.band)}


def _end(value: Number) -> float | None:
    """An end of a band; an infinite one is open."""
    return None if value is None or math.isinf(value) else float(value)
