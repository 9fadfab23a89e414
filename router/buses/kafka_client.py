"""The edge to aiokafka: connection options, deadlines, and what its errors mean for us."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from aiokafka import errors  # type: ignore[import-untyped]
from aiokafka.helpers import create_ssl_context  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError, OutputTooLarge

log = logging.getLogger("hookbus.bus")
T = TypeVar("T")

# What an ACL is missing for. aiokafka gives these the names that we had asked with.
_GUARDED: Final = {
    errors.TopicAuthorizationFailedError: "topic",
    errors.GroupAuthorizationFailedError: "group",
    errors.TransactionalIdAuthorizationFailed: "transactional id",
    errors.ClusterAuthorizationFailedError: "cluster, or to write to any topic",
}
# Nothing that waiting could cure; everything else is worth another try.
_FATAL: Final = (
    errors.AuthenticationFailedError,
    errors.AuthenticationMethodNotSupported,
    *_GUARDED,
    errors.IllegalSaslStateError,
    errors.InconsistentGroupProtocolError,
    errors.IncompatibleBrokerVersion,
    errors.InvalidGroupIdError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidTopicError,
    errors.ProducerFenced,
    errors.SaslAuthenticationFailed,
    errors.UnsupportedCodecError,
    errors.UnsupportedSaslMechanismError,
    errors.UnsupportedVersionError,
)


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """The keyword arguments that every aiokafka client takes. Raises BusFatal if a certificate
    or key file can't be used."""
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": settings.client_id,
        "request_timeout_ms": milliseconds(settings.request_timeout),
        "security_protocol": settings.protocol,
    }
    if settings.protocol in ("SSL", "SASL_SSL"):
        options["ssl_context"] = _ssl_context(settings)
    if settings.protocol.startswith("SASL_"):
        options["sasl_mechanism"] = settings.mechanism
        options["sasl_plain_username"] = settings.username
        options["sasl_plain_password"] = settings.password
    return options


def milliseconds(seconds: float) -> int:
    return int(seconds * 1000)


async def bounded(work: Awaitable[T], seconds: float, what: str) -> T:
    """Await `work` under a deadline. Raises BusUnavailable or BusFatal, saying what was tried."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except (errors.KafkaError, OSError) as error:  # TimeoutError is an OSError
        raise mapped(error, what) from error


def seen(task: asyncio.Future[Any]) -> None:
    """A callback for a task whose caller may be cancelled: or asyncio complains of its error."""
    if not task.cancelled():
        task.exception()


def mapped(error: BaseException, what: str) -> HookbusError:
    """Our error for one of aiokafka's or the network's. Texts of brokers are not repeated: they
    can hold names of topics and users, not content, but their length is not ours."""
    if isinstance(error, HookbusError):
        return error
    name = type(error).__name__
    if isinstance(error, errors.MessageSizeTooLargeError | errors.RecordTooLargeError):
        return OutputTooLarge(f"{what}: the broker refuses a record of this size")
    if isinstance(error, errors.InvalidTimestampError):
        return BusUnavailable(f"{what}: the broker takes no record with this machine's time")
    if type(error) in _GUARDED:
        return BusFatal(f"{what}: not authorized for the {_guarded(error)}")
    if isinstance(error, _FATAL) or _is_dead(error):
        return BusFatal(f"{what}: {name}")
    if isinstance(error, TimeoutError):
        return BusUnavailable(f"{what}: no answer in time")
    return BusUnavailable(f"{what}: {name}")


def _guarded(error: BaseException) -> str:
    """What an authorization error is about, such as `topic siem`."""
    said = error.args[0] if error.args else ()
    names = [said] if isinstance(said, str) else sorted(map(str, said))
    return " ".join([_GUARDED[type(error)], ", ".join(names)]).rstrip()


def _ssl_context(settings: KafkaSettings) -> ssl.SSLContext:
    try:
        context: ssl.SSLContext = create_ssl_context(
            cafile=settings.ca_file,
            certfile=settings.cert_file,
            keyfile=settings.key_file,
            password="",  # without one OpenSSL would ask the terminal for it
        )
    except (OSError, ssl.SSLError) as error:
        files = (settings.ca_file, settings.cert_file, settings.key_file)
        named = ", ".join(file for file in files if file is not None)
        raise BusFatal(f"TLS files can't be used ({named}): {type(error).__name__}") from error
    return context


def _is_dead(error: BaseException) -> bool:
    """Whether a consumer has lost its coordination task. aiokafka wraps what killed it, and says
    so in the text only."""
    return isinstance(error, errors.KafkaError) and "Unexpected error during coordination" in str(
        error
    )
