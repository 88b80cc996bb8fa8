"""Methods and parameters that are not there or of the wrong type, for every method that Describe tells."""
import json

from footprint import check_as_before, settled
from harness import Daemon, ProfdError, main, profctl
from refusals import check_error


# The kind of value that is never right for a parameter of that type.
WRONG_TYPES = {"boolean": ["yes", 1, []], "integer": ["1", 1.5, True, []], "string": [1, True, {}], "id": [True, 1.5, []],
               "strings": ["a", [1], {}], "object": ["a", 1, []], "options": ["a", 1, []], "enum": ["no such choice", 1, []], "signal": ["NONE", 0, []],
               "path": [1, "relative/path", []]}

# One that is, for what is required.
RIGHT_TYPES = {"strings": ["true"], "id": "none", "string": "none", "integer": 1, "signal": "TERM"}


def test_an_unknown_parameter_or_a_wrong_type_is_named_by_every_method():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        page = client.call("Describe")
        methods = page["methods"]
        while "next_cursor" in page:
            page = client.call("Describe", cursor=page["next_cursor"])
            methods += page["methods"]
        checked = 0
        for method in methods:
            if not method["supported"]:
                continue
            error = client.fails(method["name"], surprise=1)
            check_error(error, "bad_params", "surprise", method["name"])
            assert error.number == -32602 and method["name"] in error.message, error.error
            for param in method["params"]:
                needed = {p["name"]: p["choices"][0] if p["type"] == "enum" else RIGHT_TYPES[p["type"]]
                          for p in method["params"] if p["required"]}
                for value in WRONG_TYPES[param["type"]] if param["supported"] else []:
                    error = client.fails(method["name"], **dict(needed, **{param["name"]: value}))
                    check_error(error, "bad_params", param["name"], (method["name"], param["name"], value))
                    assert error.number == -32602, error.error
                    checked += 1
            for params in (["positional"], "text", 7, True):
                client.send_raw(json.dumps({"id": "wrong", "method": method["name"], "params": params}).encode() + b"\n")
                try:
                    raise AssertionError("%s took %r: %r" % (method["name"], params, client.wait_reply("wrong")))
                except ProfdError as refused:
                    assert refused.number in (-32602, -32600) and "params" in refused.message, refused.error
        assert checked > 80, checked
        check_as_before(daemon, client, before, "a wrong type")


def test_an_unknown_method_is_told_and_leaves_nothing():
    with Daemon() as daemon:
        client = daemon.connect()
        before = settled(daemon, client)
        for name in ("GetStatsu", "ping", "", " Ping", "Ping ", "rpc.discover", "x" * 5000):
            error = client.fails(name)
            check_error(error, "unknown_method", json.dumps(name[:20])[1:-1], name)
            assert error.number == -32601, error.error
        client.send_raw(b'{"id":"nul","method":"Ping\\u0000"}\n')
        try:
            raise AssertionError("Ping with a NUL was answered: %r" % client.wait_reply("nul", 10))
        except ProfdError as refused:
            assert refused.number == -32600 and "method" in refused.message and "NUL" in refused.message, refused.error
        done = profctl(daemon, "call", "GetStatsu")
        assert done.returncode == 1 and "GetStatsu" in done.stderr and "Describe" in done.stderr, done
        check_as_before(daemon, client, before, "an unknown method")


if __name__ == "__main__":
    main(globals())
