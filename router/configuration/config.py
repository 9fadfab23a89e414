"""The configuration as data: one YAML file, read into these Structs.

Every field's comment is its documentation. `config_file` reads the file, `plan` checks what no
single field can show.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from hookbus.policies.levels import Level
from hookbus.router.configuration.config_kafka import Kafka
from hookbus.router.configuration.config_traces import Traces
from hookbus.router.configuration.config_types import Name, Positive, Topic, default
from hookbus.router.configuration.units import Duration, Secret, Size
from hookbus.router.processes.event_loop import EventLoop


class Config(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    bus: BusConfig
    """Where the topics are."""
    ingress: dict[Name, Ingress] = field(default_factory=dict)
    """Topics that bring events in, by a name that commands and metrics use."""
    routes: dict[Name, Route] = field(default_factory=dict)
    """What is written where, at which level."""
    sinks: dict[Name, SinkConfig] = field(default_factory=dict)
    """Backends; a name is the `backendId` in `hook.failure` events."""
    failures: Failures | None = None
    """Needed as soon as there is a sink."""
    dead_letters: DeadLetters | None = None
    """Needed as soon as there is a route or a sink."""
    metrics: Metrics | None = None
    """Left out, no port is opened."""
    traces: Traces | None = None
    """Left out, trace contexts are carried and no span is made."""
    correlation: Correlation = field(default_factory=lambda: Correlation())
    """How elicitation results find their requests."""
    redaction: Redaction = field(default_factory=lambda: Redaction())
    """For routes with `redact: true`."""
    limits: InputLimits = field(default_factory=lambda: InputLimits())
    """Bounds on the input; what exceeds them is refused."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    """How many processes run the router loop and share its partitions; more than an ingress has
    partitions are idle. The sinks run in one more process. With 1, everything runs in one."""
    event_loop: EventLoop = "asyncio"
    """What runs the coroutines: Python's own asyncio, or uvloop (`pip install 'hookbus[speed]'`);
    `auto` is uvloop where it is installed. Measured from Kafka to Kafka, uvloop takes 2 % less
    CPU."""
    shutdown_grace: Duration = default(Duration(20))
    """How long a stop may take to settle what is in hand."""


class BusConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the topics are: exactly one of `kafka` and `sqlite`."""

    kafka: Kafka | None = None
    """Kafka, or a broker that speaks its protocol."""
    sqlite: Sqlite | None = None
    """The embedded bus, for one machine."""
    delivery: Literal["at-least-once", "exactly-once"] = "at-least-once"
    """Between topics. On Kafka exactly-once takes transactions; SQLite always has it."""
    create_topics: CreateTopics | None = None
    """Left out, missing topics are refused."""
    max_poll_records: Positive = 1000
    """The most records that the router settles at once, and that come twice after a crash. Measured
    on Kafka: 250 are 0.77 times as fast, 500 0.93 times, 2000 1.06 times."""
    group: Name = "hookbus"
    """Prefix of the consumer groups (`<group>.router`, `<group>.sink.<name>`) and of the topics
    that hookbus makes for itself."""


class Sqlite(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The embedded bus: one file, for the processes of one machine."""

    path: Name
    """Path of the file, on a local disk."""
    retention: Duration = default(Duration(7 * 86400))
    """Records older than this are deleted once every group has passed them that had a member
    within this time."""
    max_message: Size = default(Size(16 * 2**20))
    """The largest record to write."""


class CreateTopics(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How missing topics are made; those that exist stay as they are."""

    partitions: Positive
    """Of each topic; a changelog has as many as the topic that it belongs to."""
    replication: Positive = 1
    """Copies of each partition, on Kafka."""


class Ingress(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Topics that bring events in."""

    topics: Annotated[list[Topic], Meta(min_length=1)]
    """All are read; `hookbus publish` writes to the first."""
    capture: Level = "full"
    """The level that AHP events from here are taken to have, unless they declare a lower one."""


class Route(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Writes the events that match to one topic, cut down to `capture`."""

    topic: Topic
    """Where the copies go."""
    match: dict[str, Any] = field(default_factory=dict)
    """A filter: every member has to match, a list means any of its values, `{}` everything."""
    capture: Level = "metadata"
    """The most that a copy may hold."""
    redact: bool = False
    """Run the redaction pipeline over every text that a copy keeps; goes with capture redacted."""
    content: dict[str, Literal["body", "metadata", "omit"]] | None = None
    """An AHP content selection: `default`, and the categories that differ; it only lowers."""
    include_native: bool = True
    """Whether a copy keeps `native`, where its level lets it."""
    include_digests: bool = True
    """Whether a copy of an AEP event keeps the digests in its data (`args_digest` and the like):
    whoever can guess a content can prove the guess with them."""
    format: Literal["ahp", "aep", "cloudevents"] | None = None
    """Left out, events are written in the protocol that they came in. `ahp` and `aep` say those of
    the other one where it has a counterpart; `cloudevents` puts each into a structured CloudEvent
    of its own protocol."""


class SinkConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Delivers topics to one backend: exactly one of `http`, `file`, `stdout` and `topic`."""

    topics: Annotated[list[Topic], Meta(min_length=1)]
    """What it subscribes to, in the consumer group `<group>.sink.<name>`."""
    policy: Literal["fail-closed", "fail-open"]
    """After the deadline: stop at the event and probe, or dead-letter it and go on."""
    http: HttpBackend | None = None
    """Post each event to a hook backend."""
    file: FileBackend | None = None
    """Append each event to a file."""
    stdout: StdoutBackend | None = None
    """Print each event; `{}`."""
    topic: Topic | None = None
    """Copy each record to this topic."""
    timeout: Duration = default(Duration(10))
    """The bound on one attempt, from name resolution to the answer."""
    deadline: Duration = default(Duration(10))
    """How long an outage may last before the policy applies, counted from its first failed attempt;
    from then on a fail-open sink tries each event once, until the backend takes or refuses one."""
    retry: Retry = field(default_factory=lambda: Retry())
    """The waits between attempts."""
    failure_domain: Name | None = None
    """Sinks of one domain are taken to fail together; left out, a sink is its own domain."""


class Retry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Waits are random, below a bound that doubles with each attempt."""

    initial: Duration = default(Duration(0.1))
    """The bound on the first wait."""
    maximum: Duration = default(Duration(30))
    """The most that the bound becomes, also while a fail-closed sink probes."""


class HttpBackend(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An AHP hook backend that takes `hooks/observe` notifications."""

    url: Name
    """https, or http to this machine."""
    bearer: Secret | None = None
    """The token; read for each request, so that a rotated one is taken up."""
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with each request. They are no place for secrets."""
    ca_file: Name | None = None
    """The authorities that its certificate is checked against, instead of the system's."""
    cert_file: Name | None = None
    """A client certificate, where the backend asks for one."""
    key_file: Name | None = None
    """Its private key, without a passphrase."""
    allow_private: bool = False
    """Whether the host may resolve to a private address."""
    allow_plain_http: bool = False
    """Whether http may be spoken to another machine."""


class FileBackend(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A JSON Lines file."""

    path: Name
    """Path of the file; made with mode 0600. `<path>.lock` is the claim to it."""
    rotate: Size | None = None
    """Left out, the file grows without bound."""
    keep: Positive = 5
    """How many rotated files stay."""


class StdoutBackend(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The standard output of the process, a line a record."""


class Failures(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where failed deliveries are recorded: the journal first, then the topic."""

    topic: Topic
    """Where `hook.failure` events go; hookbus alone writes it."""
    journal: Name
    """Path of a SQLite file on this machine."""
    journal_only: list[Name] = field(default_factory=list)
    """Sinks whose failures reach no audit sink; the journal alone has them."""


class DeadLetters(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where goes what can't be processed or delivered."""

    topic: Topic
    """Hookbus alone writes it."""
    capture: Literal["metadata", "full"] = "metadata"
    """`full` keeps the bytes of what was refused; `metadata` its coordinates and size."""


class Metrics(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The HTTP server for operators; it has no login."""

    listen: Name = "127.0.0.1:9464"
    """`host:port` or `[IPv6 address]:port` of /metrics, /healthz and /readyz; port 0 takes a free
    one."""


class Correlation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which elicitation requests are remembered, so that their results can be matched."""

    max_requests: Positive = 100_000
    """Open ones, for each partition of an ingress; beyond, the oldest is forgotten."""
    max_answered: Positive = 1_000
    """Answered ones, for each partition, so that a second result can be told from a first; beyond,
    the one answered first is forgotten. What was forgotten within the last offsets, four
    times as many as `bus.max_poll_records`, is kept for records that come again after a crash."""
    max_age: Duration = default(Duration(86400))
    """How long a request is open; a result that comes later is `late`."""


class Redaction(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the redaction pipeline looks for besides what it knows by its shape."""

    secrets: list[Secret] = field(default_factory=list)
    """Values of four characters or more that may not appear in any spelling; shorter ones are
    ignored, with a warning in the log."""
    secrets_file: Name | None = None
    """Path of a file with such values, one a line."""
    home: Name | None = None
    """A directory to shorten to `~`, besides every user's home."""
    pii: bool = True
    """Whether e-mail addresses and telephone numbers go."""


class InputLimits(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Bounds on one record of an ingress."""

    max_bytes: Size = default(Size(4 * 2**20))
    """Of its value."""
    max_depth: Positive = 128
    """Of objects and arrays within each other."""
