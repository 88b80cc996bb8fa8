"""docs/capture.schema.json, asked by a validator that is not ours: Debian's python3-jsonschema."""
import functools
import json
import os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "capture.schema.json")


def schema():
    with open(PATH, encoding="utf-8") as file:
        return json.load(file)


@functools.lru_cache(maxsize=None)
def validator():
    """A validator with is_valid() and iter_errors(); None: the library is missing."""
    try:
        import jsonschema  # pylint: disable=import-outside-toplevel
        return jsonschema.Draft202012Validator(schema())
    except (ImportError, AttributeError):  # or it is older than the draft
        return None


def check(data, where="capture.json"):
    """Fails with every fault of a document."""
    faults = ["%s: /%s: %s" % (where, "/".join(map(str, error.absolute_path)), error.message[:200])
              for error in validator().iter_errors(data)]
    assert not faults, "\n".join(faults[:20])


def check_below(folder):
    """Every capture.json below a folder, when PROFD_CHECK_SCHEMA asks for it: some hundredths of a second each."""
    if not os.environ.get("PROFD_CHECK_SCHEMA") or validator() is None:
        return
    for where, _, names in os.walk(folder):
        if "capture.json" in names:
            with open(os.path.join(where, "capture.json")) as file:
                check(json.load(file), where)
