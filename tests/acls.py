"""The ACLs that docs/security.md lists; and how an administrator of Apache Kafka grants some."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

from tests.brokers import ROOT

_RESOURCES: Final = {"topic": 2, "group": 3, "cluster": 4, "transactional-id": 5}
_PATTERNS: Final = {"literal": 3, "prefixed": 4}
_OPERATIONS: Final = {"Read": 3, "Write": 4, "Create": 5, "Describe": 8, "IdempotentWrite": 12}
_ANY: Final = 1
_ALLOW: Final = 3
_SECONDS: Final = 30.0


class Acl(NamedTuple):
    """What somebody may do, from everywhere."""

    resource: str
    name: str
    operation: str
    pattern: str = "literal"

    def row(self, user: str) -> tuple[int, str, int, str, str, int, int]:
        """As the protocol has it."""
        return (
            _RESOURCES[self.resource],
            self.name,
            _PATTERNS[self.pattern],
            f"User:{user}",
            "*",
            _OPERATIONS[self.operation],
            _ALLOW,
        )


class Row(NamedTuple):
    """One operation of a line of the table."""

    process: str
    resource: str
    name: str
    operation: str
    when: str


def table() -> list[Row]:
    """The table of the page, an operation a row."""
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([^|]+) \| (topic|group|transactional-id) \| `(.+)` \| (.+) \|(.*)\|$",
                       page, re.MULTILINE)  # fmt: skip
    return [
        Row(process.strip("`"), resource, name, operation, when.strip(" `").replace("`", ""))
        for process, resource, name, operations, when in lines
        for operation in operations.split(", ")
    ]


TABLE = table()


class _Create(CreateAclsRequest):  # type: ignore[misc]
    """aiokafka's takes one ACL a request."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def build(self, struct: Any) -> Any:
        return struct(self._rows)


class _Delete(DeleteAclsRequest):  # type: ignore[misc]
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def build(self, struct: Any) -> Any:
        return struct(self._rows)


def grant(bootstrap: str, acls: Iterable[tuple[str, Acl]]) -> None:
    """Let each user do something more; the broker knows it on return."""
    asyncio.run(_change(bootstrap, _Create, list(acls), present=True))


def revoke(bootstrap: str, acls: Iterable[tuple[str, Acl]]) -> None:
    """Take what was granted away again; the broker knows it on return."""
    asyncio.run(_change(bootstrap, _Delete, list(acls), present=False))


async def _change(
    bootstrap: str, request: Any, acls: list[tuple[str, Acl]], *, present: bool
) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        answer = await admin._send_request(request([acl.row(user) for user, acl in acls]))
        results = answer.to_object()
        (per_row,) = [value for value in results.values() if isinstance(value, list)]
        assert {result["error_code"] for result in per_row} == {0}, results
        async with asyncio.timeout(_SECONDS):
            for user, acl in acls:
                while await _is_known(admin, user, acl) is not present:
                    await asyncio.sleep(0.02)
    finally:
        await admin.close()


async def _is_known(admin: AIOKafkaAdminClient, user: str, acl: Acl) -> bool:
    """Whether the broker, which hears of a change a moment after its controller, has the ACL."""
    answer = await admin._send_request(DescribeAclsRequest(*acl.row(user)))
    assert answer.error_code == 0, answer
    return bool(answer.resources)
