"""The pages in docs/: the generated ones are those of this code, and what the others show is so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruamel.yaml import YAML

from docs.reference import configuration, pages
from hookbus.router import build
from hookbus.router.configuration import plan
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.config_file import parse
from tests.processes import command

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = pages(DOCS)
TEXTS = {
    path: path.read_text(encoding="utf-8") for path in (*DOCS.glob("*.md"), *ROOT.glob("*.md"))
}
SECURITY = TEXTS[DOCS / "security.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_generated_page_is_up_to_date(path: Path) -> None:
    """It says what the code says now."""
    assert path.read_text(encoding="utf-8") == PAGES[path], "out of date; run `make docs`"


def structs(kind: msgspec.inspect.Type) -> set[type]:
    """The Structs within a type."""
    match kind:
        case msgspec.inspect.StructType():
            inner = [field.type for field in kind.fields]
            return {kind.cls}.union(*map(structs, inner))
        case msgspec.inspect.UnionType():
            return set().union(*map(structs, kind.types))
        case msgspec.inspect.DictType():
            return structs(kind.value_type)
        case msgspec.inspect.ListType():
            return structs(kind.item_type)
        case _:
            return set()


def test_every_setting_says_what_it_means() -> None:
    """The string behind a field is its line in the reference."""
    ours = {one for one in structs(msgspec.inspect.type_info(Config)) if "config" in one.__module__}
    silent = {
        f"{one.__name__}.{name}"
        for one in ours
        for name in set(one.__struct_fields__) - set(configuration.descriptions(one))
    }
    assert len(ours) > 10
    assert silent == set()


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_the_copies_of_an_answer_are_those_that_hookbus_makes() -> None:
    """The page on security shows a question, its answer, and what each level leaves of it."""
    body, answer, *copies = map(json.loads, blocks(SECURITY, "json"))
    question: dict[str, Any] = json.loads(json.dumps(answer))
    question |= {"id": question.pop("parentEventId"), "type": "user.elicitation.request"}
    part = question["elicitation"].pop("result") | {"id": "form-1", "text": json.dumps(body)}
    del question["elicitation"]["action"]
    question["elicitation"]["request"] = part
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in (question, answer))
    levels = (["metadata"], ["redacted", "--redact"], ["none"])
    for level, shown in zip(levels, copies, strict=True):
        made = command("downlevel", "--capture", *level, stdin=lines).stdout.splitlines()
        assert json.loads(made[1]) == shown, level


@pytest.mark.parametrize("text", blocks(SECURITY, "yaml"))
def test_an_example_of_a_login_passes_the_plan(text: str) -> None:
    """As the bus of a small configuration."""
    tree = YAML(typ="safe", pure=True).load(text)
    tree |= {
        "ingress": {"agents": {"topics": ["in"]}},
        "routes": {"siem": {"topic": "siem"}},
        "dead_letters": {"topic": "dead"},
    }
    assert plan.problems(parse(json.dumps(tree)), build.event_types()) == []


def test_every_test_that_a_threat_names_is_there() -> None:
    """The page says where each defence is tested."""
    named = re.findall(r"`(tests/[a-z_/]+\.py)` `(test_\w+)`", SECURITY)
    assert len(named) > 15
    missing = [
        (file, test) for file, test in named if f"def {test}(" not in (ROOT / file).read_text()
    ]
    assert missing == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_link_of_a_page_leads_somewhere(path: Path) -> None:
    """To a file of the repository."""
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", TEXTS[path])
    assert [link for link in links if not (path.parent / link).exists()] == []
