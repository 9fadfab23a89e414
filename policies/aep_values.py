"""Which values of a form's answer a copy of an AEP event keeps (AEP-0002 §5.3, AEP-0006)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookbus.codecs.answers import is_number
from hookbus.codecs.credentials import asks_credential
from hookbus.codecs.form import Form
from hookbus.policies.forms import Values, structural_values
from hookbus.policies.levels import Level


def gate_values(form: Form | None, values: Mapping[str, Any], level: Level) -> Values:
    """The values that may be in a copy at `level`; pass None for a request that isn't at hand.

    At `full` all of them. Below, no answer to a field that asks for a credential, and no key that
    the form doesn't have. At `redacted` the rest stays: texts are the redaction pipeline's. At
    `metadata` what is structure does: booleans, numbers, and ids of closed choices; without the
    form only booleans and numbers. `none` is like `metadata` here: there the whole data goes.
    """
    if level == "full":
        return Values(dict(values), 0)
    if level != "redacted":
        return structural_values(form, values)
    if form is None:
        return without_credentials(values)
    fields = {field.id: field for field in form.fields if field.id in values}
    kept = {key: values[key] for key, field in fields.items() if not field.asks_credential}
    return Values(kept, len(fields) - len(kept))


def without_credentials(values: Mapping[str, Any]) -> Values:
    """The values whose keys don't ask for a credential."""
    asks = {key: asks_credential(key, None, number=is_number(values[key])) for key in values}
    kept = {key: value for key, value in values.items() if not asks[key]}
    return Values(kept, len(values) - len(kept))
