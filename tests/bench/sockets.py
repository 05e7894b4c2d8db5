# SPDX-License-Identifier: Apache-2.0
"""Holds sockets until its input ends: connections of TCP, bound UDP and listening unix sockets. Usage: sockets.py N"""

import resource
import socket
import sys


def connections(count):
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    held = [listener]
    for _ in range(count // 2):
        held += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    return held


def bound(count):
    held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    return held


def listening(count):
    held = [socket.socket(socket.AF_UNIX) for _ in range(count)]
    for one in held:
        one.bind("")  # the kernel gives it an abstract name
        one.listen()
    return held


def main():
    count = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 64, count + 64))
    third = count // 3
    held = connections(count - 2 * third) + bound(third) + listening(third)
    print("ready", flush=True)
    sys.stdin.read()
    del held


main()
