#!/usr/bin/python
"""Reports the dashboard of the instance."""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.sutler_results import attempt, put

DOCUMENTATION = """
module: asb_dashboard_url
short_description: Says where users can manage the instance
options:
  dashboard_url:
    description: The address of the page.
    type: str
    required: true
"""


def main():
    """Writes the address."""
    spec = {"dashboard_url": {"type": "str", "required": True}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=False)

    def work():
        put("dashboard_url", module.params["dashboard_url"].strip() + "\n")
        return True

    attempt(module, work)


if __name__ == "__main__":
    main()
