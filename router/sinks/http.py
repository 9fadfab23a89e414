"""The HTTP sink: an AHP hook backend that takes `hooks/observe` notifications."""

from __future__ import annotations

import asyncio
import io
import logging
import ssl
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import SimpleNamespace
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from hookbus.codecs.observe import is_event, notification
from hookbus.policies.faults import Fault, judge_status
from hookbus.router.errors import ConfigError, HookbusError, StartupError
from hookbus.router.sinks.addresses import url_problem
from hookbus.router.sinks.contract import Delivery, out_of_time
from hookbus.router.sinks.requests import authorization, header_problems, idempotency_key, traced
from hookbus.router.sinks.resolver import AddressRefused, CheckedResolver, Lookup, system_lookup
from hookbus.router.sinks.threads import in_thread
from hookbus.router.types import Record

logger = logging.getLogger("hookbus.sink")

_MOST_BODY: Final = 65536
_BODY_SECONDS: Final = 1.0
_CONNECTIONS: Final = 64
_IDLE_SECONDS: Final = 4.0  # below the 5 s after which many servers close

_NO_EVENT: Final = Fault("message", "refused")
"""An AHP backend would refuse it, or worse, take it."""
_UNAUTHORIZED: Final = Fault("route", "unauthorized")
_TLS_ERRORS: Final = (
    aiohttp.ClientSSLError,
    aiohttp.ClientConnectorCertificateError,
    aiohttp.ServerFingerprintMismatch,
    ssl.SSLError,
)


class HttpSink:
    """Posts one notification a record to `url`, in order.

    `name` is the sink's, a part of the `Idempotency-Key`; `topics` are those that it subscribes to,
    besides that of its replays. `bearer` gives the token; it is called for every request, so that a
    rotated one is taken up, and what it can't give is a route fault.
    `ca_file`, `cert_file` and `key_file` are paths of PEM files. `allow_private` lets the host
    resolve to private addresses, `allow_plain_http` lets http be spoken to another machine.
    Raises ConfigError. Several tasks may deliver through one.
    """

    concurrent = True

    def __init__(
        self,
        name: str,
        url: str,
        *,
        topics: Collection[str] = (),
        bearer: Callable[[], str] | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
        allow_private: bool = False,
        allow_plain_http: bool = False,
        lookup: Lookup = system_lookup,
    ) -> None:
        headers = headers or {}
        problem = url_problem(url, allow_plain_http=allow_plain_http, allow_private=allow_private)
        problems = [f"url: {problem}"] if problem else []
        problems += header_problems(headers, bearer=bearer is not None)
        if problems:
            raise ConfigError(f"sinks.{name}.http.{problem}" for problem in problems)
        self._name = name
        self._topics = frozenset(topics)
        self._url = URL(url)
        self._bearer = bearer
        self._headers = CIMultiDict({"User-Agent": "hookbus"})
        self._headers.update(headers)
        self._headers.update({"Accept-Encoding": "identity", "Content-Type": "application/json"})
        self._certificates = (ca_file, cert_file, key_file)
        self._resolver = CheckedResolver(lookup, allow_private=allow_private)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Load the certificates; nothing is connected yet. Raises StartupError if one is missing
        or no certificate."""
        try:
            context = await in_thread(self._tls)
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise StartupError(f"sinks.{self._name}.http: a certificate can't be read") from error
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=_CONNECTIONS,
                keepalive_timeout=_IDLE_SECONDS,
                resolver=self._resolver,
                ssl=context,
            ),
            headers=self._headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            trace_configs=[trace],
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )

    async def deliver(self, records: Sequence[Record], timeout: float) -> Delivery:  # noqa: ASYNC109
        """See Sink. No request is begun in the second half of the time, so that the last one is
        rarely cut off and sent twice."""
        now = asyncio.get_running_loop().time
        half, deadline = now() + timeout / 2, now() + timeout
        for delivered, record in enumerate(records):
            if delivered and now() > half:
                return Delivery(delivered)
            try:
                fault = await self._send(record, deadline)
            except TimeoutError:
                return out_of_time(delivered)
            if fault is not None:
                return Delivery(delivered, fault)
        return Delivery(len(records))

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _send(self, record: Record, deadline: float) -> Fault | None:
        """One request and its answer. Raises TimeoutError."""
        if record.value is None:
            return None
        if not is_event(record.value):
            return _NO_EVENT
        key = idempotency_key(self._name, self._topics, record)
        headers = {"Idempotency-Key": key, **traced(record)}
        if self._bearer is not None:
            credential = self._authorization(self._bearer)
            if credential is None:
                return _UNAUTHORIZED
            headers["Authorization"] = credential
        try:
            return await self._post(notification(record.value), headers, deadline)
        except TimeoutError:
            raise
        except (aiohttp.ClientError, OSError) as error:
            return self._fault_of(error)

    async def _post(self, body: bytes, headers: dict[str, str], deadline: float) -> Fault | None:
        if self._session is None:
            raise RuntimeError("the sink is not open")
        connection = _Connection()
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._session.post(
                    self._url,
                    data=io.BytesIO(body),
                    headers=headers,
                    allow_redirects=False,
                    trace_request_ctx=connection,
                )
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            if not connection.reused:
                raise
            # The backend closed an idle connection at this moment, which says nothing about it.
            return await self._post(body, headers, deadline)
        await _discard_body(response, deadline)
        return judge_status(response.status, response.headers.get("Retry-After"), time.time())

    def _fault_of(self, error: Exception) -> Fault:
        """What a request that got no answer says; a malformed answer is none."""
        if isinstance(error, _TLS_ERRORS) or isinstance(error.__cause__, ssl.SSLError):
            return Fault("route", "tls_failed")
        if isinstance(error.__cause__, AddressRefused):
            logger.warning(
                "sink %s: host %s resolves to an address that may not be used; see allow_private",
                self._name,
                self._url.host,
            )
        return Fault("route", "connection_failed")

    def _tls(self) -> ssl.SSLContext | bool:
        ca_file, cert_file, key_file = self._certificates
        if self._url.scheme == "http":
            return True  # never used
        context = ssl.create_default_context(cafile=ca_file)
        if cert_file is not None:
            # Without a password OpenSSL would ask the terminal for it.
            context.load_cert_chain(cert_file, key_file, password="")
        return context

    def _authorization(self, bearer: Callable[[], str]) -> str | None:
        try:
            value = authorization(bearer())
        except (OSError, LookupError, ValueError, HookbusError):
            value = None
        if value is None:
            logger.warning("sink %s: the bearer token can't be read or used", self._name)
        return value


class _Connection:
    """Which connection a request went over."""

    reused = False


async def _note_reuse(
    _: aiohttp.ClientSession, context: SimpleNamespace, __: aiohttp.TraceConnectionReuseconnParams
) -> None:
    context.trace_request_ctx.reused = True


async def _discard_body(response: aiohttp.ClientResponse, deadline: float) -> None:
    """Read a short body, so that its connection can be used again; close on any other. The status
    has decided already, and nothing of the body is kept."""
    until = min(deadline, asyncio.get_running_loop().time() + _BODY_SECONDS)
    left = _MOST_BODY
    try:
        async with asyncio.timeout_at(until):
            while left > 0 and (chunk := await response.content.read(left)):
                left -= len(chunk)
    except (aiohttp.ClientError, OSError):  # a TimeoutError is an OSError
        pass
    finally:
        response.close()  # no more than a gesture if the body was read to its end
