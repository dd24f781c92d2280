"""Floods a port of this host with connections that show nothing: tests/flood.py PORT

They come from two hundred addresses at once, of two networks of IPv4 (/24) and two of IPv6 (/64),
which the loopback of a network namespace has. Half of the addresses say nothing, the others begin a
handshake of TLS and do not go on. A connection that is turned away is made again at
once. The number of connections is printed five times a second."""

from __future__ import annotations

import errno
import selectors
import socket
import ssl
import sys
import time

# At a time, from each address: more in all than an agent lets wait.
OPEN = 4
V4 = [f"127.0.{network}.{host}" for network in (0, 1) for host in range(10, 60)]
V6 = [f"fd77:0:0:{network}::{host:x}" for network in (1, 2) for host in range(0x10, 0x42)]
# Addresses of the controller; in the first network of each kind.
CONTROLLER = ["127.0.0.1", "fd77:0:0:1::1"]


def hello() -> bytes:
    """First message of a client of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    said = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), said)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return said.read()
    raise ValueError("the handshake has ended without a server")


class Flood:
    """Connections to a port."""

    def __init__(self, port: int):
        self.port, self.came, self.hello = port, 0, hello()
        self.events = selectors.DefaultSelector()
        for number, address in enumerate(V4 + V6):
            for _ in range(OPEN):
                self.open((address, number % 2 == 0))

    def open(self, who: tuple[str, bool]) -> None:
        """Opens a connection from an address."""
        address, _ = who
        is_v6 = ":" in address
        made = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET)
        made.setblocking(False)
        made.bind((address, 0))
        code = made.connect_ex((CONTROLLER[is_v6], self.port))
        if code not in (0, errno.EINPROGRESS):
            made.close()
            raise OSError(code, f"no connection from {address}")
        self.events.register(made, selectors.EVENT_WRITE, who)

    def go_on(self) -> None:
        """Answers what has happened."""
        for key, ready in self.events.select(0.1):
            made, who = key.fileobj, key.data
            try:
                if ready & selectors.EVENT_WRITE:
                    self.came += 1
                    if who[1]:
                        made.send(self.hello)
                    self.events.modify(made, selectors.EVENT_READ, who)
                    continue
                is_over = made.recv(1 << 16) == b""
            except OSError:
                is_over = True
            if is_over:
                self.events.unregister(made)
                made.close()
                self.open(who)


def main() -> None:
    """Floods until it is killed."""
    flood, told = Flood(int(sys.argv[1])), time.monotonic()
    while True:
        flood.go_on()
        if time.monotonic() - told > 0.2:
            told = time.monotonic()
            print(flood.came, flush=True)


if __name__ == "__main__":
    main()
