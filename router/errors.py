"""Every error that leaves a module of the router, drawn once.

    HookbusError
    ├── ConfigError        the configuration is wrong; holds every problem   (exit code 2)
    ├── StartupError       the service can't start as configured             (exit code 3)
    │   └── TopicsMissing  topics don't exist and may not be created
    ├── OutputTooLarge     a record is larger than the bus takes; nothing of its call was sent
    ├── BusUnavailable     the bus doesn't answer now; the call may be repeated
    └── BusFatal           this process can't go on with the bus             (exit code 4)

Bad input is not an error: it is a verdict (`hookbus.codecs.verdict`). A delivery that a backend
refuses is not an error either: it is a fault (`hookbus.policies.faults`).
"""

from __future__ import annotations

from collections.abc import Iterable


class HookbusError(Exception):
    """The root; its text never quotes an event or a secret."""


class ConfigError(HookbusError):
    """A configuration with problems, one line each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class StartupError(HookbusError):
    """The service can't start as configured."""


class TopicsMissing(StartupError):  # noqa: N818 - reads as what happened
    """Topics that don't exist, and `bus.create_topics` doesn't say how to make them."""

    def __init__(self, topics: Iterable[str]) -> None:
        self.topics = tuple(sorted(topics))
        super().__init__(
            f"missing topics: {', '.join(self.topics)}; create them, or set bus.create_topics"
        )


class OutputTooLarge(HookbusError, ValueError):  # noqa: N818 - reads as what happened
    """A record is larger than the bus takes. Raised before anything of the call is sent, unless
    the broker's own limit is below the configured one."""


class BusUnavailable(HookbusError):  # noqa: N818 - reads as what happened
    """The bus doesn't answer now; the same call may be repeated."""


class BusFatal(HookbusError):  # noqa: N818 - reads as what happened
    """The bus refuses this process for good: fenced, not authorized, or not what it seems."""
