"""What becomes of spans."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class SpanMetrics:
    """The series of the export of traces."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._spans = Counter(
            "hookbus_spans",
            "Spans by what became of them: exported, failed (the collector did not take them), "
            "dropped (the queue was full)",
            ["result"], registry=registry,
        )  # fmt: skip
        for result in ("exported", "failed", "dropped"):
            self._spans.labels(result)

    def became(self, result: str, count: int) -> None:
        self._spans.labels(result).inc(count)
