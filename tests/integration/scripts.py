"""Shell scripts under the daemon, run to their end or until they said something."""
from harness import output_bytes, wait_until


def run(client, script, **params):
    """Runs a shell script to its end: its output and the ProcessExited event."""
    launched = client.call("LaunchProcess", argv=["sh", "-c", script], **params)
    end = client.wait_event("ProcessExited", build_id=launched["build_id"])
    own = [event for event in client.events if event["params"].get("build_id") == launched["build_id"]]
    return output_bytes(own), end


def start(client, script, says=b"up\n", **params):
    """Starts a shell script and waits until it said something: the launch's result."""
    launched = client.call("LaunchProcess", argv=["sh", "-c", script], **params)

    def look():
        client.read_some(0.05)
        own = [event for event in client.events if event["params"].get("build_id") == launched["build_id"]]
        return output_bytes(own).endswith(says)
    wait_until(look, 20, "the word of the program")
    return launched
