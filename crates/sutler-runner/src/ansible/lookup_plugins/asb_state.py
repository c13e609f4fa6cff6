"""Finds values that earlier actions stored: lookup('asb_state', 'key')."""

import os

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: asb_state
short_description: Finds values that earlier actions stored
description:
  - A key that was never set gives C(default), so a playbook can tell it from one that is empty.
options:
  _terms:
    description: The keys.
  get_all:
    description: All keys and values, as one dictionary.
    type: bool
    default: false
  scope:
    description: Whether they belong to the instance, or to the current binding.
    choices: [instance, binding]
    default: instance
  default:
    description: Value of a key that was never set.
"""

PLACES = {
    "instance": "BUNDLE_STATE_LOCATION",
    "binding": "SUTLER_BINDING_STATE_LOCATION",
}


def read(folder, key):
    """The value of a key, as text."""
    with open(os.path.join(folder, key), "rb") as kept:
        return kept.read().decode("utf-8")


class LookupModule(LookupBase):
    """The lookup."""

    def run(self, terms, variables=None, **kwargs):
        """Returns one value for each key, or one dictionary."""
        scope = kwargs.get("scope", "instance")
        if scope not in PLACES:
            raise AnsibleError("asb_state: the scope is instance or binding, not %r" % scope)
        folder = os.environ.get(PLACES[scope])
        there = set(os.listdir(folder)) if folder and os.path.isdir(folder) else set()
        if kwargs.get("get_all"):
            return [dict((key, read(folder, key)) for key in sorted(there))]
        return [read(folder, key) if key in there else kwargs.get("default") for key in terms]
