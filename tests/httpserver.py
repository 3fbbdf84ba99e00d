"""A real HTTP server on 127.0.0.1 that misbehaves on demand."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE_BYTES = 1 << 14


@dataclass
class Route:
    """What is served at one path, and how; lists are consumed, one entry per request."""

    body: bytes = b""
    content_type: str = "application/octet-stream"
    statuses: list[int] = field(default_factory=list)  # errors to answer first
    cuts: list[int] = field(default_factory=list)  # close the connection after so many bytes
    stalls: list[int] = field(default_factory=list)  # fall silent after so many bytes
    honours_range: bool = True
    wrong_range: bool = False  # answer 206 with the beginning of the file
    announces_length: bool = True
    chunked: bool = False
    redirect: str = ""
    seconds_per_piece: float = 0.0


@dataclass
class Exchange:
    """One request and how much was sent in answer."""

    path: str
    range: str | None
    status: int
    sent: int = 0


class Server(ThreadingHTTPServer):
    """Serves `routes` by path and records every exchange."""

    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.routes: dict[str, Route] = {}
        self.exchanges: list[Exchange] = []
        self.closing = threading.Event()

    def add(self, path: str, **behaviour) -> str:
        self.routes[path] = Route(**behaviour)
        return f"http://127.0.0.1:{self.server_port}{path}"

    def handle_error(self, request, client_address):
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.close_connection = True
        route = self.server.routes.get(self.path)
        exchange = Exchange(self.path, self.headers["Range"], 404)
        self.server.exchanges.append(exchange)
        if route is None:
            self._answer(exchange, 404, {"Content-Length": 0})
        elif route.statuses:
            self._answer(exchange, route.statuses.pop(0), {"Content-Length": 0})
        elif route.redirect:
            self._answer(exchange, 302, {"Location": route.redirect, "Content-Length": 0})
        else:
            self._serve(route, exchange)

    def _serve(self, route, exchange):
        total = len(route.body)
        asked = re.fullmatch(r"bytes=(\d+)-", exchange.range or "")
        start = int(asked[1]) if asked and route.honours_range else 0
        if start >= total > 0:
            self._answer(exchange, 416, {"Content-Range": f"bytes */{total}", "Content-Length": 0})
            return
        start = 0 if route.wrong_range else start
        headers = {"Content-Type": route.content_type}
        if route.chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif route.announces_length:
            headers["Content-Length"] = total - start
        partial = asked and route.honours_range
        if partial:
            headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
        self._answer(exchange, 206 if partial else 200, headers)
        self._send(route, exchange, start)

    def _answer(self, exchange, status, headers):
        exchange.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def _send(self, route, exchange, start):
        cut = route.cuts.pop(0) if route.cuts else None
        stall = route.stalls.pop(0) if route.stalls else None
        stop = next((n for n in (cut, stall) if n is not None), len(route.body))
        body = route.body[start : start + stop]
        for at in range(0, len(body), PIECE_BYTES):
            piece = body[at : at + PIECE_BYTES]
            framed = b"%x\r\n%b\r\n" % (len(piece), piece) if route.chunked else piece
            exchange.sent += len(piece)  # before the client can have it, and look
            self.wfile.write(framed)
            time.sleep(route.seconds_per_piece)
        if stall is not None:
            self.server.closing.wait(60)
        elif route.chunked and cut is None:
            self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        """Stay silent."""


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server in a thread of its own."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
