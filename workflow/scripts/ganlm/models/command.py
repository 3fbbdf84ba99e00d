"""Any generator that is a program: JSON lines on its standard input and output, version 1.

    > {"ganlm": 1, "symbols": [" ", "e", ...], "unit": "character", "seed": 1, "worker": 0}
    < {"ganlm": 1}
    > {"windows": [[5, 0, 3, ...], ...]}
    > {"id": 7, "seed": 123, "draw": [[window, prefix_length, n], ...]}
    < {"id": 7, "drawn": [[4, 4, 0, ...], ...]}

`windows` replaces the windows sent before and is not answered. `draw` asks, for each triple, for n
independent draws of the token that follows the first prefix_length tokens of that window (windows are
counted from 0); it is answered by the ids in the same order. Requests may arrive before earlier ones
are answered, and are answered in order. The end of the input means good-bye. Standard error is for
messages to people.
"""

import atexit
import json
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ganlm.generator import GeneratorError, Sampled, Surroundings, checked_draws
from ganlm.randomness import keyed_seed

VERSION = 1
DRAWS_PER_MESSAGE = 1 << 13
SHOWN_CHARACTERS = 200


class Worker:
    """One running copy of the program."""

    def __init__(self, command: Sequence[str], reply_seconds: float) -> None:
        self._command, self._reply_seconds = command, reply_seconds
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise GeneratorError(f"cannot start {' '.join(command)!r}: {error.strerror}") from None
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._complaints: deque[bytes] = deque(maxlen=5)
        self._windows = b""
        self._failure: GeneratorError | None = None
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        for target in (self._write, self._read):
            threading.Thread(target=target, daemon=True).start()

    def send(self, message: dict) -> None:
        """Queue a line; it is written while answers are awaited, so the pipe cannot dead-lock."""
        self._outbox.put(_line(message))

    def show(self, windows: Sequence[np.ndarray]) -> None:
        """Send the windows unless the program has them: it may have computed a lot from them."""
        line = _line({"windows": [np.asarray(window).tolist() for window in windows]})
        if line != self._windows:
            self._outbox.put(line)
            self._windows = line

    def receive(self) -> tuple[dict, str]:
        """The next line, parsed and as it was, within the time limit; once broken, the same error again."""
        if self._failure:
            raise self._failure
        try:
            line = self._inbox.get(timeout=self._reply_seconds)
        except queue.Empty:
            raise self.error(f"did not answer within reply_seconds = {self._reply_seconds:g}") from None
        if not line:
            raise self.error("ended before it answered")
        shown = line[:SHOWN_CHARACTERS].decode(errors="replace").rstrip()
        try:
            message = json.loads(line, parse_constant=self._refuse_constant)
        except (ValueError, RecursionError):
            raise self.error(f"printed a line that is not JSON: {shown!r}") from None
        if not isinstance(message, dict):
            raise self.error(f"printed {shown!r} instead of an object")
        return message, shown

    def close(self) -> None:
        """Say good-bye; a program that does not leave, or that broke the contract, is ended."""
        self._outbox.put(None)
        try:
            self._process.wait(timeout=0 if self._failure else 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def error(self, what: str) -> GeneratorError:
        """One sentence about this program, with the last thing it said on standard error."""
        status = self._process.poll()
        if status is not None:
            self._listener.join(timeout=1)
        ending = f"; exit status {status}" if status is not None else ""
        complaint = " ".join(b" ".join(self._complaints).decode(errors="replace").split())
        said = f"; it said: {complaint[-SHOWN_CHARACTERS:]}" if complaint else ""
        self._failure = GeneratorError(f"the generator {' '.join(self._command)!r} {what}{ending}{said}")
        return self._failure

    def _refuse_constant(self, constant: str) -> None:
        raise ValueError(constant)

    def _write(self) -> None:
        try:
            while (line := self._outbox.get()) is not None:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            self._process.stdin.close()
        except OSError:
            pass  # the reader notices that the program has gone

    def _read(self) -> None:
        for line in self._process.stdout:
            self._inbox.put(line)
        self._process.wait()
        self._inbox.put(b"")

    def _listen(self) -> None:
        self._complaints.extend(self._process.stderr)


class Command(Sampled):
    """A pool of copies of one program, each thread of the caller using its own."""

    def __init__(self, command: Sequence[str], reply_seconds: float, surroundings: Surroundings) -> None:
        self.vocabulary, self.workers = surroundings.vocabulary, surroundings.workers
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._workers = [Worker(command, reply_seconds) for _ in range(surroundings.workers)]
        try:
            self._greet(surroundings)
        except GeneratorError:
            self.close()
            raise

    def _greet(self, surroundings: Surroundings) -> None:
        """Start all copies at once; they may take their time to load."""
        for number, worker in enumerate(self._workers):
            worker.send(
                {
                    "ganlm": VERSION,
                    "symbols": surroundings.alphabet.symbols,
                    "unit": surroundings.alphabet.unit,
                    "seed": surroundings.seed,
                    "worker": number,
                }
            )
        for worker in self._workers:
            greeting, shown = worker.receive()
            if greeting.get("ganlm") != VERSION:
                raise worker.error(f'greeted with {shown!r} instead of {{"ganlm": {VERSION}}}')
            self._idle.put(worker)

    def draw(
        self, prefixes: Sequence[np.ndarray], counts: Sequence[int], rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Each prefix is a window of its own."""
        requests = [
            (i, len(prefix), count) for i, (prefix, count) in enumerate(zip(prefixes, counts, strict=True))
        ]
        return self.draw_in_windows(prefixes, requests, int(rng.integers(2**63)))

    def draw_in_windows(
        self, windows: Sequence[np.ndarray], requests: Sequence[tuple[int, int, int]], seed: int
    ) -> list[np.ndarray]:
        """Send the windows once and all requests in messages of bounded size, then collect the answers."""
        messages = list(_messages(requests))
        worker = self._idle.get()
        try:
            worker.show(windows)
            for number, message in enumerate(messages):
                worker.send({"id": number, "seed": keyed_seed(seed, number) % 2**53, "draw": message})
            return [
                ids
                for number, message in enumerate(messages)
                for ids in self._answer(worker, number, message)
            ]
        finally:
            self._idle.put(worker)

    def _answer(self, worker: Worker, number: int, message: list) -> list[np.ndarray]:
        answer, shown = worker.receive()
        if answer.get("id") != number or "drawn" not in answer:
            raise worker.error(f"answered {shown!r} to request {number}")
        try:
            return checked_draws(answer["drawn"], [count for _, _, count in message], self.vocabulary)
        except GeneratorError as error:
            raise worker.error(f"broke the contract in {shown!r}: {error}") from None

    def close(self) -> None:
        """End all copies of the program."""
        for worker in self._workers:
            worker.close()


def load(parameters: dict, files: list[str], surroundings: Surroundings) -> Command:  # noqa: ARG001
    """Start the program; its command is a list of arguments and never passes through a shell."""
    generator = Command(parameters["command"], parameters["reply_seconds"], surroundings)
    atexit.register(generator.close)
    return generator


def _line(message: dict) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _messages(requests: Iterable[tuple[int, int, int]]) -> Iterator[list]:
    """Requests in runs of at most DRAWS_PER_MESSAGE draws, or of one request that is larger."""
    message, size = [], 0
    for request in requests:
        if message and size + request[2] > DRAWS_PER_MESSAGE:
            yield message
            message, size = [], 0
        message.append(request)
        size += request[2]
    if message:
        yield message
