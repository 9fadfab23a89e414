"""Every command, in the order of the help."""

from __future__ import annotations

from typing import Final

from hookbus.router.usage.bench import BENCH
from hookbus.router.usage.check import CHECK
from hookbus.router.usage.completion import COMPLETION
from hookbus.router.usage.contract import Usage
from hookbus.router.usage.deadletters import DEADLETTERS
from hookbus.router.usage.demo import DEMO
from hookbus.router.usage.downlevel import DOWNLEVEL
from hookbus.router.usage.failures import FAILURES
from hookbus.router.usage.filter_ import FILTER
from hookbus.router.usage.help import HELP
from hookbus.router.usage.plan import PLAN
from hookbus.router.usage.publish import PUBLISH
from hookbus.router.usage.redact import REDACT
from hookbus.router.usage.run import RUN
from hookbus.router.usage.schema import SCHEMA
from hookbus.router.usage.tail import TAIL

COMMANDS: Final[tuple[Usage, ...]] = (
    DEMO,
    RUN,
    PUBLISH,
    TAIL,
    DEADLETTERS,
    FAILURES,
    PLAN,
    CHECK,
    DOWNLEVEL,
    FILTER,
    REDACT,
    SCHEMA,
    BENCH,
    COMPLETION,
    HELP,
)
