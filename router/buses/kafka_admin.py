"""Finds out which topics exist and makes the missing ones."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped]
from aiokafka.cluster import ClusterMetadata  # type: ignore[import-untyped]
from aiokafka.errors import (  # type: ignore[import-untyped]
    NoError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.metadata import MetadataRequest  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import bounded, client_options, mapped
from hookbus.router.buses.kafka_diagnosis import diagnose
from hookbus.router.buses.kafka_settings import KafkaSettings, NewTopics
from hookbus.router.buses.kafka_start import connect
from hookbus.router.errors import BusUnavailable, StartupError, TopicsMissing

_POLL: Final = 0.05

Numbers = dict[str, tuple[int, ...]]
"""Topic name to the numbers of its partitions."""


async def ensure_topics(
    settings: KafkaSettings,
    topics: Collection[str],
    create: NewTopics | None,
    changelogs: Mapping[str, str] = MappingProxyType({}),
) -> Numbers:
    """The partitions of `topics` and of `changelogs`, which are made like the topics they belong
    to. Raises TopicsMissing unless `create` says how to make them, StartupError if the cluster
    refuses to, hides them, or a changelog has too few partitions, BusUnavailable, also while a
    partition has no leader and can't be read, or BusFatal."""
    admin = AIOKafkaAdminClient(**client_options(settings))
    try:
        try:
            await connect(admin, settings.request_timeout, "connecting to Kafka")
        except BusUnavailable as error:
            raise await diagnose(settings, error) from error
        cluster = await bounded(_listed(admin), settings.request_timeout, "listing topics")
        found = _numbers(cluster)
        missing = [topic for topic in (*topics, *changelogs) if topic not in found]
        if missing:
            await bounded(_refuse_hidden(admin, missing), settings.request_timeout, "asking")
        if missing and create is None:
            raise TopicsMissing(missing)
        if missing and create is not None:
            partitions = dict.fromkeys(missing, create.partitions) | {
                changelog: len(found.get(topic, range(create.partitions)))
                for changelog, topic in changelogs.items()
                if changelog in missing
            }
            new = [_new_topic(t, n, create, t in changelogs) for t, n in partitions.items()]
            await bounded(_create(admin, new), settings.request_timeout, "creating topics")
            cluster = await bounded(
                _appear(admin, missing), settings.request_timeout, "waiting for new topics"
            )
            found = _numbers(cluster)
    finally:
        await bounded(admin.close(), settings.close_timeout, "closing")
    for changelog, topic in changelogs.items():
        if len(found[changelog]) < len(found[topic]):
            raise StartupError(f"{changelog} has fewer partitions than {topic}")
    leaderless = _leaderless(cluster, [*topics, *changelogs])
    if leaderless:
        raise BusUnavailable(f"partitions without a leader in {', '.join(leaderless)}")
    return {topic: found[topic] for topic in (*topics, *changelogs)}


def _new_topic(topic: str, partitions: int, create: NewTopics, changelog: bool) -> NewTopic:
    configs = {"cleanup.policy": "compact"} if changelog else None
    return NewTopic(topic, partitions, create.replication, topic_configs=configs)


async def _listed(admin: AIOKafkaAdminClient) -> ClusterMetadata:
    return await admin._client.fetch_all_metadata()


def _numbers(cluster: ClusterMetadata) -> Numbers:
    return {
        topic: tuple(sorted(cluster.partitions_for_topic(topic) or ()))
        for topic in cluster.topics()
    }


def _leaderless(cluster: ClusterMetadata, topics: Collection[str]) -> list[str]:
    """Those of the topics of which a part can't be read now."""
    return [
        topic
        for topic in topics
        if cluster.partitions_for_topic(topic) != cluster.available_partitions_for_topic(topic)
    ]


async def _refuse_hidden(admin: AIOKafkaAdminClient, missing: list[str]) -> None:
    """Topics that a cluster doesn't list may be there, and hidden from us: it says so to whoever
    asks for them by name. Raises StartupError."""
    asked = MetadataRequest(missing, allow_auto_topic_creation=False)
    answer = await admin._client.send(admin._client.get_random_node(), asked)
    hidden = sorted(
        topic
        for code, topic, *_ in answer.topics
        if for_code(code) is TopicAuthorizationFailedError
    )
    if hidden:
        raise StartupError(
            f"not authorized for the topics {', '.join(hidden)}, or they don't exist: this user may"
            " not see them"
        )


async def _create(admin: AIOKafkaAdminClient, new: list[NewTopic]) -> None:
    answer = await admin.create_topics(new)
    for topic, code, *_ in answer.topic_errors:
        _judge(topic, for_code(code))


def _judge(topic: str, error: Any) -> None:
    if error in (NoError, TopicAlreadyExistsError):  # another process may be faster
        return
    if error.retriable:
        raise mapped(error(), "creating topics")
    why = "not authorized" if error is TopicAuthorizationFailedError else error.__name__
    raise StartupError(f"the topic {topic} can't be created: {why}")


async def _appear(admin: AIOKafkaAdminClient, topics: list[str]) -> ClusterMetadata:
    """Wait until the new topics have leaders; without, the first publish would fail."""
    while True:
        cluster = await _listed(admin)
        if all(map(cluster.partitions_for_topic, topics)) and not _leaderless(cluster, topics):
            return cluster
        await asyncio.sleep(_POLL)
