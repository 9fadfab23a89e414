"""Credentials that are told by their own shape: keys in PEM, tokens of vendors, JWTs.

Every pattern is linear in the text: what is repeated without bound is possessive, and either
reaches its end for sure or can start only once in a run of its characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from hookbus.policies.redaction.spans import Span

VENDORS: Final = {
    "AKIA": r"AKIA[A-Z0-9]{16,}+",  # cloud access key ids
    "ASIA": r"ASIA[A-Z0-9]{16,}+",
    "ABIA": r"ABIA[A-Z0-9]{16,}+",
    "ACCA": r"ACCA[A-Z0-9]{16,}+",
    "ghp_": r"ghp_[A-Za-z0-9]{16,}+",  # code hosts
    "gho_": r"gho_[A-Za-z0-9]{16,}+",
    "ghu_": r"ghu_[A-Za-z0-9]{16,}+",
    "ghs_": r"ghs_[A-Za-z0-9]{16,}+",
    "ghr_": r"ghr_[A-Za-z0-9]{16,}+",
    "github_pat_": r"github_pat_\w{16,}+",
    "glpat-": r"glpat-[\w.-]{16,}+",
    "gldt-": r"gldt-[\w.-]{16,}+",
    "glrt-": r"glrt-[\w.-]{16,}+",
    "glptt-": r"glptt-[\w.-]{16,}+",
    "ATATT": r"ATATT3[\w=-]{20,}+",
    "ATBB": r"ATBB[A-Za-z0-9]{24,}+",
    "xox": r"xox[a-z]-[A-Za-z0-9-]{10,}+",  # chat platforms
    "xapp-": r"xapp-[A-Za-z0-9-]{10,}+",
    "sk-": r"sk-(?=[\w-]{0,64}[0-9A-Z])[\w-]{16,}+",  # LLM providers
    "gsk_": r"gsk_[A-Za-z0-9]{20,}+",
    "xai-": r"xai-[A-Za-z0-9]{20,}+",
    "hf_": r"hf_[A-Za-z0-9]{20,}+",
    "r8_": r"r8_[A-Za-z0-9]{20,}+",
    "pplx-": r"pplx-[A-Za-z0-9]{20,}+",
    "nvapi-": r"nvapi-[\w-]{20,}+",
    "AIza": r"AIza[\w-]{20,}+",  # cloud API keys
    "ya29.": r"ya29\.[\w-]{16,}+",
    "GOCSPX-": r"GOCSPX-[\w-]{16,}+",
    "dop_v1_": r"do[op]_v1_[a-f0-9]{32,}+",
    "sk_": r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+",  # payment
    "rk_": r"rk_(?:live|test)_[A-Za-z0-9]{10,}+",
    "whsec_": r"whsec_[\w+/=]{16,}+",
    "sq0": r"sq0[a-z]{3}-[\w-]{20,}+",
    "shp": r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}+",
    "npm_": r"npm_[A-Za-z0-9]{20,}+",  # package registries
    "pypi-": r"pypi-(?=[\w-]{0,64}[0-9])(?=[\w-]{0,64}[A-Z])[\w-]{20,}+",
    "rubygems_": r"rubygems_[A-Fa-f0-9]{20,}+",
    "dckr_": r"dckr_(?:pat|oat)_[\w-]{20,}+",
    "cio": r"cio[A-Za-z0-9]{32,}+",
    "SG.": r"SG\.[\w-]{16,}+\.[\w-]{16,}+",  # mail and telephony
    "SK": r"SK[a-f0-9]{32,}+",
    "AGE-": r"AGE-SECRET-KEY-1[0-9A-Z]{20,}+",
    "eyJ": r"eyJ[\w-]{6,}+(?:\.[\w-]{4,}+)(?:\.[\w-]*+){0,3}",  # JWT, JWE
}
"""A text that a pattern needs -> the pattern."""

_EDGE: Final = {"eyJ": r"(?<![\w-])"}
"""A JWT needs a dot after an endless run: it may start only where a run starts."""

_COMPILED: Final = {
    needed: re.compile(_EDGE.get(needed, r"(?<![A-Za-z0-9])") + pattern)
    for needed, pattern in VENDORS.items()
}

_PEM: Final = re.compile(
    r"-{4,5} ?BEGIN [A-Z0-9 ]{0,48}?(?:KEY|CERTIFICATE|MESSAGE|BLOCK|REQUEST|CRL|PARAMETERS|PKCS7"
    r"|CMS|SIGNATURE|DATA)[A-Z0-9 ]{0,24}-{4,5}"
)
_PEM_END: Final = re.compile(r"-{4,5} ?END [A-Z0-9 ]{1,64}-{4,5}")
_MENTION: Final = re.compile(r"\\{0,4}[\"'`)]")

_SCHEME: Final = re.compile(
    r"(?<![\w-])(?:(bearer)|(basic|token|api-?key|negotiate)|(digest))[ \t]{1,8}",
    re.IGNORECASE,
)
SCHEMES: Final = ("bearer", "basic", "token", "api-key", "apikey", "negotiate", "digest")
_CREDENTIAL: Final = re.compile(r"[\w.~+/=:-]++")
_PLAIN: Final = re.compile(r"[A-Za-z]?[a-z]*+(?:[-/][a-z]++)*+[.:,-]*+")
_DIGEST: Final = re.compile(
    r"(?=[A-Za-z][\w-]{0,32}=)(?:[A-Za-z][\w-]{0,32}=(?:\"[^\"\n]*+\"|[^\s,\"']*+)(?:,[ \t]*+)?)++"
)


def tokens(text: str, vendors: Iterable[str]) -> Iterator[Span]:
    """Tokens of these `VENDORS`, and JWTs."""
    for needed in vendors:
        if needed in text:
            for found in _COMPILED[needed].finditer(text):
                yield Span(found.start(), found.end(), "secret")


def pem(text: str) -> Iterator[Span]:
    """PEM blocks with what is in them; one that doesn't end goes on to the end of the text.

    A header alone that a quotation mark or a bracket follows is a mention, in code or in prose.
    """
    if "BEGIN " not in text:
        return
    at = 0
    while (begin := _PEM.search(text, at)) is not None:
        end = _PEM_END.search(text, begin.end())
        at = end.end() if end is not None else len(text)
        if end is None and _MENTION.match(text, begin.end()):
            return
        yield Span(begin.start(), at, "secret")


def schemes(text: str, places: Iterable[int]) -> Iterator[Span]:
    """Credentials after the name of an HTTP authentication scheme, wherever they are. A plain word
    after it is prose ("basic usage"), if it isn't long. `places` is where one of the `SCHEMES` may
    start."""
    for place in places:
        found = _SCHEME.match(text, place)
        if found is None:
            continue
        bearer, _, digest = found.groups()
        if digest is not None:
            credential = _DIGEST.match(text, found.end())
        else:
            credential = _CREDENTIAL.match(text, found.end())
            if credential is None or not _is_credential(credential[0], bearer is not None):
                continue
        if credential is not None:
            yield Span(found.start(), credential.end(), "secret")


def _is_credential(word: str, bearer: bool) -> bool:
    if _PLAIN.fullmatch(word):
        return bearer and len(word) >= 20
    if bearer:
        return len(word) >= 6
    letters = any(map(str.isalpha, word))
    return len(word) >= 8 and letters and any(not char.islower() for char in word.strip(".:,-"))
