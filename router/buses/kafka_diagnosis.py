"""Why a Kafka cluster can't be reached.

aiokafka's bootstrap hides a refused login, a certificate or a wrong port behind one connection
error, so each server is asked once more.
"""

from __future__ import annotations

import ssl
from typing import Final

from aiokafka.conn import collect_hosts, create_conn  # type: ignore[import-untyped]
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped]
from aiokafka.protocol.metadata import MetadataRequest  # type: ignore[import-untyped]

from hookbus.router.buses.kafka_client import bounded, client_options
from hookbus.router.buses.kafka_settings import KafkaSettings
from hookbus.router.errors import BusFatal, BusUnavailable, HookbusError

_HUNG_UP: Final = (
    "hangs up; is it starting, does it speak another protocol than bus.kafka.security, or does it"
    " want a client certificate?"
)


async def diagnose(settings: KafkaSettings, found: BusUnavailable) -> HookbusError:
    """What to say instead of `found`: BusFatal if waiting can't cure it, otherwise what the last
    server that was asked did."""
    if isinstance(found.__cause__, TimeoutError):
        return found
    for host, port, _ in collect_hosts(settings.bootstrap_servers):
        try:
            await _greet(settings, host, port)
        except BusFatal as fatal:
            return fatal
        except BusUnavailable as passing:
            cause = passing.__cause__
            if isinstance(cause, ssl.SSLCertVerificationError):
                return BusFatal(
                    f"the login: the certificate of {host}:{port} is not trusted:"
                    f" {cause.verify_message}"
                )
            why = _HUNG_UP if _is_hang_up(cause) else type(cause).__name__
            found = BusUnavailable(f"connecting to Kafka: {host}:{port}: {why}")
    return found


async def _greet(settings: KafkaSettings, host: str, port: int) -> None:
    """Log in and ask something. Raises BusUnavailable or BusFatal."""
    options = client_options(settings)
    del options["bootstrap_servers"]
    connecting = create_conn(host, port, **options)
    connection = await bounded(connecting, settings.request_timeout, "the login")
    try:
        await bounded(
            connection.send(MetadataRequest([])), settings.request_timeout, "the first request"
        )
    finally:
        connection.close()


def _is_hang_up(error: BaseException | None) -> bool:
    return isinstance(error, KafkaConnectionError | ConnectionResetError)
