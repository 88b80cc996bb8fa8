"""Busy for as many seconds as it is told: pure Python, C of the interpreter, of the C library and of the system's extension modules."""
import hashlib
import json
import re
import sys
import time


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def work(turn):
    records = [{"name": "record %d" % ((i * 7919 + turn) % 1000), "values": [i, i / 3, None]} for i in range(300)]
    text = json.dumps(sorted(records, key=lambda record: record["name"]))
    found = re.findall(r'"name": "record (\d+)"', text)
    return hashlib.sha256(text.encode()).hexdigest(), len(found), fibonacci(12), json.loads(text)[0]["name"]


END = time.monotonic() + float(sys.argv[1])
TURN = 0
while time.monotonic() < END:
    TURN += 1
    work(TURN)
