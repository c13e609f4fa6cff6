"""A broker on openbrokerapi whose owner forbids two things: changes of a plan, and deletes by boris.

It keeps what each request looked like, for the test: GET /requests. Updates and deletes of a user wait between
POST /hold/USER and POST /release/USER. Its first argument is the port.
"""

import base64
import json
import logging
import sys
import threading

from flask import Flask, jsonify, request
from openbrokerapi import api, errors
from openbrokerapi.catalog import ServicePlan
from openbrokerapi.service_broker import (
    Binding,
    BindState,
    DeprovisionServiceSpec,
    GetInstanceDetailsSpec,
    LastOperation,
    OperationState,
    ProvisionedServiceSpec,
    ProvisionState,
    Service,
    ServiceBroker,
    UnbindSpec,
    UpdateServiceSpec,
)


class DatabaseBroker(ServiceBroker):
    """Keeps instances and bindings in memory."""

    def __init__(self):
        self.lock = threading.Lock()
        self.instances = {}
        self.bindings = {}

    def catalog(self):
        plans = [
            ServicePlan(id="pg-small", name="small", description="a small one"),
            ServicePlan(id="pg-large", name="large", description="a large one"),
        ]
        return Service(
            id="pg",
            name="postgresql",
            description="databases",
            bindable=True,
            plans=plans,
            plan_updateable=True,
            instances_retrievable=True,
        )

    def provision(self, instance_id, details, async_allowed, **_):
        wanted = {"plan": details.plan_id, "parameters": details.parameters}
        with self.lock:
            found = self.instances.setdefault(instance_id, wanted)
        if found is wanted:
            return ProvisionedServiceSpec(ProvisionState.SUCCESSFUL_CREATED)
        if found == wanted:
            return ProvisionedServiceSpec(ProvisionState.IDENTICAL_ALREADY_EXISTS)
        raise errors.ErrInstanceAlreadyExists()

    def update(self, instance_id, details, async_allowed, **_):
        with self.lock:
            instance = self.instances.get(instance_id)
            if instance is None:
                raise errors.ErrInstanceDoesNotExist()
            instance["parameters"] = {**(instance["parameters"] or {}), **(details.parameters or {})}
        return UpdateServiceSpec(is_async=False)

    def deprovision(self, instance_id, details, async_allowed, **_):
        with self.lock:
            if self.instances.pop(instance_id, None) is None:
                raise errors.ErrInstanceDoesNotExist()
        return DeprovisionServiceSpec(is_async=False)

    def get_instance(self, instance_id, **_):
        instance = self.instances.get(instance_id)
        if instance is None:
            raise errors.ErrInstanceDoesNotExist()
        return GetInstanceDetailsSpec("pg", instance["plan"], parameters=instance["parameters"])

    def bind(self, instance_id, binding_id, details, async_allowed, **_):
        if instance_id not in self.instances:
            raise errors.ErrInstanceDoesNotExist()
        self.bindings[binding_id] = instance_id
        credentials = {"user": binding_id, "password": "of-" + binding_id}
        return Binding(state=BindState.SUCCESSFUL_BOUND, credentials=credentials)

    def unbind(self, instance_id, binding_id, details, async_allowed, **_):
        if self.bindings.pop(binding_id, None) is None:
            raise errors.ErrBindingDoesNotExist()
        return UnbindSpec(is_async=False)

    def last_operation(self, instance_id, operation_data, **_):
        return LastOperation(OperationState.SUCCEEDED)


broker = DatabaseBroker()
received = []
held = {}
app = Flask(__name__)
logging.getLogger("werkzeug").setLevel(logging.ERROR)


def user_of(header):
    """The user of an originating identity, as a broker reads it."""
    if not header:
        return None
    _, encoded = header.split(" ", 1)
    return json.loads(base64.b64decode(encoded)).get("username")


@app.before_request
def keep_and_refuse():
    if not request.path.startswith("/v2/service_instances"):
        return None
    user = user_of(request.headers.get("X-Broker-API-Originating-Identity"))
    body = request.get_json(silent=True)
    received.append({"method": request.method, "path": request.path, "user": user, "body": body})
    if request.method in ("PATCH", "DELETE") and user in held:
        held[user].wait(60)
    if request.method == "PATCH" and (body or {}).get("plan_id"):
        return jsonify(description="plans are changed by the owner only"), 403
    if request.method == "DELETE" and user == "boris":
        return jsonify(description="boris may not delete this"), 403
    return None


@app.get("/requests")
def requests():
    return jsonify(received)


@app.post("/hold/<user>")
def hold(user):
    held[user] = threading.Event()
    return jsonify({})


@app.post("/release/<user>")
def release(user):
    held[user].set()
    return jsonify({})


credentials = api.BrokerCredentials("platform", "s3cret")
app.register_blueprint(api.get_blueprint(broker, credentials, logging.getLogger("broker")))

if __name__ == "__main__":
    app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
