"""Configurations with AHP registration documents: how both are loaded."""

from __future__ import annotations

import argparse

from msgspec import Struct

from hookbus.router import build, build_bus
from hookbus.router.configuration import config_file, plan
from hookbus.router.configuration.config import Config
from hookbus.router.configuration.registration import Environment, Note, Registered, merge, register
from hookbus.router.errors import ConfigError


class Loaded(Struct, frozen=True):
    """A configuration without problems, and what is to be told of its documents."""

    config: Config
    notes: tuple[Note, ...]


def load_registered(options: argparse.Namespace, environment: Environment) -> Loaded:
    """The configuration with what the documents add to it; see `register` for the environment.

    Raises ConfigError: first with all problems of the files, and if there are none, with all that
    only the whole shows.
    """
    problems: list[str] = []
    config = None
    try:
        config = config_file.load(options.config)
    except ConfigError as error:
        problems += error.problems
    documents: list[Registered] = []
    for path in options.registration:
        try:
            raw = path.read_bytes()
        except OSError as error:
            problems.append(f"{path}: can't be read: {type(error).__name__}")
            continue
        document = register(str(path), raw, options.registration_capture, environment)
        documents.append(document)
        problems += document.problems
    if config is None or problems:
        raise ConfigError(problems)
    config, problems = merge(config, documents)
    problems += plan.problems(config, build.event_types(), build_bus.compressions(config))
    if problems:
        raise ConfigError(problems)
    return Loaded(config, tuple(note for document in documents for note in document.notes))
