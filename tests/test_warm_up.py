"""Where measuring begins: our MSER-5 beside another method, of a library that others maintain.

pymbar.timeseries.detect_equilibration drops what leaves most uncorrelated samples (Chodera, "A
simple method for automated equilibration detection in molecular simulations", J. Chem. Theory
Comput. 2016).
Both methods may cut at other places; what is measured behind the cut must be the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import Clearlane
from pymbar import timeseries

EXPERIMENT = """schema = 1
name = "warm-up"
run = {{ duration = "2 ms", slices = 200 }}
fabric = {{ build = "torus:4x4" }}
subnet = {{ engine = "dor", lanes = 2 }}
sim = {{ preset = "qdr" }}
[[traffic]]
name = "all"
class = "background"
pattern = {{ kind = "uniform" }}
load = {load}
size = "4 KiB"
{more}
"""

# Steady from the begin on; one that comes up to speed for 0.5 ms; one beyond saturation.
CASES = {
    "steady": ("0.3", ""),
    "ramp": ("0.3", 'arrivals = "ramp"\nramp = "500 us"'),
    "saturated": ("0.95", ""),
}


def measured(clearlane: Clearlane, case: str) -> tuple[np.ndarray, int]:
    """What is delivered slice by slice, and the slice with which measuring begins."""
    load, more = CASES[case]
    (clearlane.folder / "warm-up.toml").write_text(EXPERIMENT.format(load=load, more=more))
    clearlane("run", "warm-up.toml", "--out", case)
    out: Path = clearlane.folder / case
    series = pl.read_parquet(out / "series.parquet").sort("start_us")
    run = json.loads((out / "summary.json").read_text())["variants"][0]["runs"][0]
    starts = series["start_us"].to_numpy()
    first = int(np.searchsorted(starts, run["measured"]["from_us"] - 1e-6))
    return series["delivered_payload_bytes"].to_numpy().astype(float), first


@pytest.mark.parametrize("case", CASES)
def test_what_is_measured_does_not_depend_on_the_method(clearlane: Clearlane, case: str) -> None:
    delivered, ours = measured(clearlane, case)
    theirs, inefficiency, samples = timeseries.detect_equilibration(delivered, nskip=1)
    rest, mean = delivered[ours:], delivered[theirs:].mean()
    # What the library leaves is as if of so many independent samples.
    error = delivered[theirs:].std(ddof=1) / np.sqrt(samples)
    print(f"{case}: from slice {ours} ours, {theirs} theirs, inefficiency {inefficiency:.1f}")
    print(f"{case}: mean {rest.mean():.0f} ours, {mean:.0f} theirs, error {error:.0f}")
    assert abs(rest.mean() - mean) < 3 * error
    # A ramp of a quarter of the run is cut off by both, but for its end, which is as good as level.
    least = 40 if case == "ramp" else 0
    assert least <= ours <= len(delivered) // 2 and least <= theirs
