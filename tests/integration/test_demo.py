"""The demo, as a newcomer runs it."""

import subprocess
import sys


def test_the_demo_shows_what_really_happened():
    """It ends by itself, and with 0 only if all that it shows is so."""
    done = subprocess.run(
        [sys.executable, "-m", "hookbus.router", "demo"], capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    assert b"FAIL" not in done.stdout
    assert b"user.elicitation" not in done.stderr
