#!/usr/bin/python
"""Reports the progress of the action."""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sutler_results import append, attempt

DOCUMENTATION = """
module: asb_last_operation
short_description: Reports the progress of the action
options:
  description:
    description: A sentence for the user.
    type: str
    required: true
  percent:
    description: From 0 to 100, if known.
    type: int
"""


def main():
    """Adds a line of progress."""
    spec = {"description": {"type": "str", "required": True}, "percent": {"type": "int"}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=False)

    def work():
        line = {"text": module.params["description"]}
        if module.params["percent"] is not None:
            line["percent"] = min(max(module.params["percent"], 0), 100)
        append("progress", json.dumps(line))
        return True

    attempt(module, work)


if __name__ == "__main__":
    main()
