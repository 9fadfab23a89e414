"""Where the operator server listens."""

import pytest

from hookbus.router.configuration.listen import Listen


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9464", "127.0.0.1", 9464),
        ("10.0.0.1:0", "10.0.0.1", 0),
        ("localhost:65535", "localhost", 65535),
        ("metrics_1.internal.example:80", "metrics_1.internal.example", 80),
        ("[::1]:9464", "::1", 9464),
        ("[::]:9464", "::", 9464),
        ("[fe80::1%eth0]:9464", "fe80::1%eth0", 9464),
    ],
)
def test_a_host_and_a_port_are_told_apart(text, host, port):
    """And are written as they were read."""
    assert Listen.parse(text) == (host, port)
    assert str(Listen.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "9464", ":9464", "localhost", "localhost:", "localhost:http", "localhost:9464x",
        "localhost:-1", "localhost:65536", "localhost:123456", "localhost:\u0661",
        "localhost:80\n", " localhost:80", "local host:80", "a..b:80", f"{'x' * 64}:80", "*:9464",
        "::1:9464", "[]:9464", "[::1]", "[::1]9464", "[::1:9464", "[localhost]:9464",
        "[127.0.0.1]:9464", "http://localhost:9464", "user@host:80",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_what_is_expected(text):
    """Above all a port without a host, which would be all addresses of a server without a login."""
    with pytest.raises(ValueError, match=r"^expected host:port or "):
        Listen.parse(text)
