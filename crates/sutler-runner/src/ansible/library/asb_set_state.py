#!/usr/bin/python
"""Stores values for later actions."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sutler_results import attempt, merge

DOCUMENTATION = """
module: asb_set_state
short_description: Stores values for later actions
description:
  - They are stored only if the action succeeds. Every later action gets them as C(state_KEY), and the
    lookup C(asb_state) finds them. Users never see them.
  - Plain values become text, as in Automation Broker; lists and objects are unchanged.
  - A key that is set to null is removed.
options:
  fields:
    description: The values, by key.
    type: dict
    required: true
  scope:
    description: Whether they belong to the instance, or to the current binding.
    choices: [instance, binding]
    default: instance
"""

FILES = {"instance": "state.json", "binding": "binding_state.json"}


def kept(value):
    """The stored form of a value."""
    if value is None or isinstance(value, (dict, list)):
        return value
    return value if isinstance(value, type(u"")) else str(value)


def main():
    """Adds the fields to the state."""
    spec = {
        "fields": {"type": "dict", "required": True, "no_log": True},
        "scope": {"default": "instance", "choices": sorted(FILES)},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=False)
    name = FILES[module.params["scope"]]
    fields = dict((key, kept(value)) for key, value in module.params["fields"].items())
    attempt(module, lambda: merge(name, fields))


if __name__ == "__main__":
    main()
