"""What is said and done in the session: an agent mends a refund job for a clinic's billing team.

All people, companies, paths and secrets are invented. `CANARIES` are the pieces of content that
no copy below `redacted` may hold.
"""

from __future__ import annotations

import json
from typing import Any, Final

JSON = dict[str, Any]

HARNESS_NAME: Final = "atlas-code"
HARNESS_VERSION: Final = "2.3.1"
SESSION_ID: Final = "ses-7f3a21"
TURN_ID: Final = "turn-1"
PERSON: Final = "Maya Okonkwo <maya.okonkwo@harborline.example>"
FOLDER: Final = "/home/mokonkwo/src/claims-api"
SERVER: Final = "harborline-tickets"
MODEL: Final[JSON] = {"id": "orion-large-2026-01", "provider": "lumen"}

SESSION: Final[JSON] = {"id": SESSION_ID}
TURN: Final[JSON] = {"id": TURN_ID}

WISH: Final = (
    "Patients at the Westgate clinic got their copay refunded twice last night. "
    "Please find out why the nightly refund job runs again after a timeout, and fix it."
)
PLAN: Final = "I'll read the job first, then run its tests and look for an open ticket."
SOURCE_TEXT: Final = (
    "def refund(claim):\n"
    "    receipt = gateway.refund(claim.copay, key=None)  # TODO idempotency key\n"
    "    ledger.book(claim.patient, receipt)\n"
)
TEST_OUTPUT: Final = (
    "F                                                            [100%]\n"
    "E   AssertionError: patient Tomás Ferreira was refunded 2 times\n"
    "1 failed in 0.41s\n"
)
TICKET_TEXT: Final = (
    "CLAIM-2291 (open): double refund, reported by Dr. Ingrid Solheim; affects 14 patients"
)
DELETE_COMMAND: Final = (
    "psql 'postgres://claims_rw:vN4-tango-Quill@db.prod.harborline.example/claims'"
    " -c \"DELETE FROM refunds WHERE booked_at > now() - interval '1 day'\""
)
DENIAL: Final = "Writes to the production database need a change ticket."
FIX: Final = "receipt = gateway.refund(claim.copay, key=claim.id)"
SUMMARY: Final = (
    "The job sent no idempotency key, so a retry after a timeout refunded again. "
    "It sends the claim's id now, and the test passes. I did not touch the production data."
)

FORM: Final[JSON] = {
    "mode": "form",
    "message": "Before I comment on CLAIM-2291: who approves the correction of the 14 bookings?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "approver": {"type": "string", "title": "Name of the approver", "minLength": 2},
            "amount": {"type": "number", "title": "Total to correct, in euros", "minimum": 0},
            "urgency": {
                "type": "string",
                "title": "How soon",
                "enum": ["today", "this_week", "next_close"],
            },
            "reason": {"type": "string", "title": "Reason, in your own words"},
        },
        "required": ["approver", "amount", "urgency"],
    },
}
ANSWERS: Final[JSON] = {
    "action": "accept",
    "content": {
        "approver": "Femi Adeyemi-Larsson",
        "amount": 412.5,
        "urgency": "today",
        "reason": "Mrs. Castellanos called twice, she is waiting for her rent money.",
    },
}

CANARIES: Final[tuple[str, ...]] = (
    "Okonkwo",
    "@harborline.example",
    "tickets.harborline",
    "db.prod",
    "/home/mokonkwo",
    "copay refunded",
    "read the job first",
    "idempotency key",
    "Ferreira",
    "Solheim",
    "vN4-tango-Quill",
    "DELETE FROM",
    "change ticket",
    "gateway.refund",
    "Femi Adeyemi",
    "Castellanos",
    "who approves",
    "waiting for her rent",
    "Total to correct",
    "refund-keys.md",
    "be terse",
    "Signed off",
    "refund rerun",
)


def text(identity: str, words: str) -> JSON:
    """A text part."""
    return {
        "id": identity,
        "kind": "text",
        "mediaType": "text/plain",
        "selection": "body",
        "text": words,
    }


def message(identity: str, role: str, words: str) -> JSON:
    """A message of one text part."""
    return {"id": identity, "role": role, "parts": [text(f"{identity}-1", words)]}


def body(identity: str, value: JSON) -> JSON:
    """A text part that holds MCP params or an MCP result."""
    return text(identity, json.dumps(value, ensure_ascii=False))


READ: Final[JSON] = {
    "call": {"id": "call-1"},
    "path": "native",
    "tool": {
        "name": "Read",
        "kind": "read",
        "origin": "native",
        "input": {"file_path": f"{FOLDER}/jobs/refund.py"},
    },
}
TEST: Final[JSON] = {
    "call": {"id": "call-2"},
    "path": "native",
    "tool": {
        "name": "Bash",
        "kind": "shell",
        "origin": "native",
        "input": {"command": f"cd {FOLDER} && pytest -q tests/test_refund.py"},
    },
}
SEARCH: Final[JSON] = {
    "call": {"id": "call-3"},
    "path": "mcp",
    "tool": {
        "name": "search_tickets",
        "kind": "search",
        "origin": "mcp",
        "input": {"query": "refund rerun Westgate", "limit": 5},
        "mcp": {
            "server": {"id": SERVER, "name": "Tickets"},
            "toolName": "search_tickets",
            "provenance": "runtime",
            "connection": {"transport": "http", "url": "https://tickets.harborline.example/mcp"},
        },
    },
}
DELETE: Final[JSON] = {
    "call": {"id": "call-4"},
    "path": "native",
    "tool": {
        "name": "Bash",
        "kind": "shell",
        "origin": "native",
        "input": {"command": DELETE_COMMAND},
    },
}
EDIT: Final[JSON] = {
    "call": {"id": "call-5"},
    "path": "native",
    "tool": {
        "name": "Edit",
        "kind": "edit",
        "origin": "native",
        "input": {
            "file_path": f"{FOLDER}/jobs/refund.py",
            "old_string": "receipt = gateway.refund(claim.copay, key=None)",
            "new_string": FIX,
        },
    },
}
