#!/usr/bin/python
"""Returns credentials to the broker."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sutler_results import attempt, merge

DOCUMENTATION = """
module: asb_encode_binding
short_description: Returns credentials to the broker
description:
  - In a bind they are the credentials of the binding. In a provision or an update they are kept for the
    bundle's own later actions, and nobody else sees them, unless the manifest shares them.
  - A second call adds to the first.
options:
  fields:
    description: The credentials, by name.
    type: dict
    required: true
"""


def main():
    """Adds the fields to the credentials."""
    spec = {"fields": {"type": "dict", "required": True, "no_log": True}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=False)
    attempt(module, lambda: merge("credentials.json", module.params["fields"]))


if __name__ == "__main__":
    main()
