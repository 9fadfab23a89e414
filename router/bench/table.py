"""A result as a line of text."""

from __future__ import annotations

from hookbus.router.bench.timing import Result


def line(result: Result) -> str:
    """Name, rate, time an event, and whatever else the result has."""
    rate = result.per_second
    speed = f"{rate:>11,.0f} events/s {1e6 / rate:>9,.1f} us each"
    return f"{result.name:<28} {speed}   {_more(result)}".rstrip()


def _more(result: Result) -> str:
    found = [f"{ratio:g} x {other}" for other, ratio in result.ratios.items()]
    if result.p50_ms is not None:
        found.append(f"p50 {result.p50_ms:g} ms, p99 {result.p99_ms:g} ms at half of that")
    if result.rss_mb is not None and result.growth is not None:
        found += [f"{size:g} MB at {when}" for when, size in result.rss_mb.items()]
        found.append(f"growth {result.growth:.1%}")
    return ", ".join(found)
