"""Structured logs: one JSON object a line on stderr; fields are chosen by us, never by an event."""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, then the fields given as `extra`.

    Of an exception only the types are shown: its text may quote what it failed on. `worker` is the
    name of the process among several.
    """

    def __init__(self, worker: str | None = None) -> None:
        super().__init__()
        self._own = {} if worker is None else {"worker": worker}

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._own,
        }
        line.update((k, v) for k, v in vars(record).items() if k not in _STANDARD)
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return orjson.dumps(line, default=str).decode()


def where(error: BaseException) -> str:
    """The place in the code where an exception was raised, without anything of its text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"


def _brief(record: logging.LogRecord) -> bool:
    """Of what asyncio says of an error that nobody looked at, the first line: the others quote the
    exception."""
    record.msg, record.args = record.getMessage().partition("\n")[0], ()
    return True


def configure(level: str = "info", worker: str | None = None) -> None:
    """Send the logs of the process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(worker))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # The client logs each reconnection attempt at error level; the loops say it once, as they
    # retry.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # as above, and it quotes URLs
    logging.getLogger("asyncio").addFilter(_brief)
