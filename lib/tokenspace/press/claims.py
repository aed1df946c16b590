"""A claim: what a paper says, what we found, and what would have refuted it."""

import math
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from tokenspace.errors import ClaimError

Source = Literal["stated", "reconstructed", "ours"]
Verdict = Literal["holds", "does-not-hold", "not-testable"]
Number = Any  # Python's, NumPy's and torch's scalars; a float once the claim is made

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
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.id):
            raise ClaimError(f"claim id {self.id!r}: use small letters, digits and single hyphens")
        if self.source not in get_args(Source):
            raise self._error(f"source is {self.source!r}; use one of {', '.join(SOURCES)}")
        for name in ("statement", "scale"):
            if not getattr(self, name).strip():
                raise self._error(f"no {name}")
        object.__setattr__(self, "ours", self._number("ours"))
        object.__setattr__(self, "uncertainty", self._number("uncertainty"))
        object.__setattr__(self, "band", self._checked_band())
        object.__setattr__(self, "verdict", self._judge())

    def _error(self, text: str) -> ClaimError:
        return ClaimError(f"claim {self.id!r}: {text}")

    def _number(self, name: str) -> float | None:
        value = getattr(self, name)
        if value is None:
            return None
        number = float(value)
        if not math.isfinite(number):
            raise self._error(f"{name} is {number}; a claim needs a number, or ours=None and why=")
        return number

    def _checked_band(self) -> tuple[float | None, float | None] | None:
        if self.band is None:
            return None
        if len(self.band) != 2:
            raise self._error(f"band is {self.band!r}; give (low, high), None for an open side")
        low, high = (None if x is None or math.isinf(x) else float(x) for x in self.band)
        if low is None and high is None:
            raise self._error("the band is open on both sides: nothing would refute the claim")
        if any(x is not None and math.isnan(x) for x in (low, high)):
            raise self._error(f"band is {self.band!r}; its ends must be numbers")
        if low is not None and high is not None and low > high:
            raise self._error(f"band {low:g} to {high:g} is empty")
        return low, high

    def _judge(self) -> Verdict:
        if self.ours is None:
            if not (self.why or "").strip():
                raise self._error("no number of ours: say why= it isn't testable at this scale")
            return "not-testable"
        if self.band is None:
            raise self._error("no band: say which values of ours would refute it, band=(low, high)")
        if not (self.control or "").strip():
            raise self._error("no control: say what the same measurement gave where nothing is")
        low, high = self.band
        inside = (low is None or self.ours >= low) and (high is None or self.ours <= high)
        return "holds" if inside else "does-not-hold"

    def _ipython_display_(self) -> None:
        """Show nothing more when a cell ends with a claim: the page has shown it."""

    def record(self) -> dict[str, Any]:
        """Give the claim as plain JSON data."""
        return {**asdict(self), "band": None if self.band is None else list(self.band)}
