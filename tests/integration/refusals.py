"""What a refusal must look like, over the socket and from profctl."""
import re


def check_error(error, code, word, what):
    """A clear error: its code, a message that names the thing, a hint, none of it empty or broken."""
    assert error.code == code, (what, error.error)
    assert word in error.message, (what, error.error)
    assert error.hint and "\n" not in error.message and not re.search(r"[^.]\.$", error.message), (what, error.error)
    assert isinstance(error.error["data"]["retryable"], bool), (what, error.error)


def check_told(done, status, word, what):
    assert done.returncode == status, (what, done)
    assert word in done.stderr and done.stdout == "", (what, done)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, (what, done)
