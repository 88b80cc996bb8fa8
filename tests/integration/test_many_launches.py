"""10,000 launches leave no zombie, descriptor, file or memory behind. Only with PROFD_LONG=1 (tools/verify)."""
import os

from harness import Daemon, main, skip
from launches import launch_many


def test_ten_thousand_launches_leave_nothing():
    if os.environ.get("PROFD_LONG") != "1":
        skip("10,000 launches are for tools/verify: PROFD_LONG=1 runs them")
    with Daemon() as daemon:
        launch_many(daemon, 10000)


if __name__ == "__main__":
    main(globals())
