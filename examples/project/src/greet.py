"""What the example program says."""

VERSION = "1.0"


def greeting(name):
    return f"Hello, {name}!"
