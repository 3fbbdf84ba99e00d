import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from measuring import task

from ganlm import measure_sampled
from ganlm.corpus import Alphabet
from ganlm.generator import GeneratorError, Surroundings
from ganlm.models import command
from ganlm.models.command import Command
from ganlm.resume import Journal

ROOT = Path(__file__).parents[2]
ALPHABET = Alphabet(tuple("abcdef"))
WINDOWS = [np.array([0, 1, 2, 3], np.uint8), np.array([5, 4, 3], np.uint8)]

OBEDIENT = """
    import json, random, sys
    hello = json.loads(sys.stdin.readline())
    print(json.dumps({"ganlm": 1}), flush=True)
    size, windows = len(hello["symbols"]), []
    for line in sys.stdin:
        message = json.loads(line)
        if "windows" in message:
            windows = message["windows"]
            continue
        rng = random.Random(message["seed"])
        drawn = [
            [(windows[w][length - 1] if length else 0) if rng.random() < 0.5 else rng.randrange(size)
             for _ in range(n)]
            for w, length, n in message["draw"]
        ]
        print(json.dumps({"id": message["id"], "drawn": drawn}), flush=True)
"""

BROKEN = """
    import json, os, sys, time
    hello = json.loads(sys.stdin.readline())
    print('{"ganlm": 1}', flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "windows" in message:
            continue
        number, drawn = message["id"], [[0] * n for _, _, n in message["draw"]]
        %s
        print(json.dumps({"id": number, "drawn": drawn}), flush=True)
"""


@pytest.fixture
def start(tmp_path):
    """Start a program; in the end none may be left."""
    started = []

    def start(source, workers=1, reply_seconds=10.0):
        program = tmp_path / f"generator{len(started)}.py"
        program.write_text(textwrap.dedent(source))
        surroundings = Surroundings(ALPHABET, 1, workers)
        started.append(None)
        started[-1] = Command([sys.executable, str(program)], reply_seconds, surroundings)
        return started[-1]

    yield start
    for generator in filter(None, started):
        generator.close()
    assert running(tmp_path) == []


def running(folder):
    """Programs of that folder that still run, and our children that ended but were not waited for."""
    listing = subprocess.run(["ps", "-eo", "ppid,stat,args"], stdout=subprocess.PIPE, text=True, check=True)
    processes = [line.split(maxsplit=2) for line in listing.stdout.splitlines()[1:]]
    zombies = [p for p in processes if p[0] == str(os.getpid()) and p[1].startswith("Z")]
    return [p for p in processes if str(folder) in p[2]] + zombies


def broken(action):
    return BROKEN % action


def test_draws_come_in_the_order_of_the_requests(start):
    generator = start(OBEDIENT)
    requests = [(1, 3, 500), (0, 0, 3), (0, 2, 500), (1, 1, 0)]
    drawn = generator.draw_in_windows(WINDOWS, requests, seed=5)
    assert [len(ids) for ids in drawn] == [500, 3, 500, 0]
    for ids, last in [(drawn[0], 3), (drawn[2], 1)]:
        assert (ids == last).mean() == pytest.approx(0.5 + 0.5 / 6, abs=0.1)
        assert set(ids.tolist()) == set(range(6))
    again = generator.draw_in_windows(WINDOWS, requests, seed=5)
    other = generator.draw_in_windows(WINDOWS, requests, seed=6)
    assert np.array_equal(np.concatenate(again), np.concatenate(drawn))
    assert not np.array_equal(np.concatenate(other), np.concatenate(drawn))


def test_the_handshake_says_all_there_is_to_know(start, tmp_path):
    start(f"""
        import os, sys
        open(r"{tmp_path}/" + str(os.getpid()) + ".hello", "w").write(sys.stdin.readline())
        print('{{"ganlm": 1, "name": "more keys do no harm"}}', flush=True)
        sys.stdin.read()
    """, workers=2)  # fmt: skip
    hello = [json.loads(path.read_text()) for path in tmp_path.glob("*.hello")]
    assert sorted(message.pop("worker") for message in hello) == [0, 1]
    assert hello == [{"ganlm": 1, "symbols": list("abcdef"), "unit": "character", "seed": 1}] * 2


def test_a_prefix_of_any_text_can_be_drawn_from(start):
    drawn = start(OBEDIENT).draw([np.array([4]), np.array([], int)], [400, 2], np.random.default_rng(1))
    assert (drawn[0] == 4).mean() > 0.4
    assert len(drawn[1]) == 2


def test_megabytes_both_ways_do_not_dead_lock(start):
    """Windows and requests of 3 MB, answers of 12 MB, all sent before the first answer is read."""
    generator = start("""
        import json, sys
        sys.stdin.readline()
        print('{"ganlm": 1}', flush=True)
        for line in sys.stdin:
            message = json.loads(line)
            if "draw" in message:
                drawn = [[5] * n for _, _, n in message["draw"]]
                print(json.dumps({"id": message["id"], "drawn": drawn}), flush=True)
    """, reply_seconds=60)  # fmt: skip
    windows = [np.full(1000, 3)] * 1000
    requests = [(w, length, 40) for w in range(1000) for length in range(0, 1000, 10)]
    drawn = generator.draw_in_windows(windows, requests, seed=1)
    assert len(drawn) == 100_000
    assert {len(ids) for ids in drawn} == {40}
    assert {int(ids.max()) for ids in drawn} == {5}


def test_one_request_may_be_larger_than_a_message(start):
    drawn = start(OBEDIENT).draw_in_windows(WINDOWS, [(0, 1, 3), (0, 1, 70_000), (0, 1, 2)], seed=1)
    assert [len(ids) for ids in drawn] == [3, 70_000, 2]


def test_messages_have_seeds_of_their_own(start):
    """Neighbouring seeds would give neighbouring numbers in many a language."""
    seeds = start("""
        import json, sys
        sys.stdin.readline()
        print('{"ganlm": 1}', flush=True)
        for line in sys.stdin:
            message = json.loads(line)
            if "draw" in message:
                bits = [message["seed"] >> i & 1 for i in range(40000)]
                print(json.dumps({"id": message["id"], "drawn": [bits]}), flush=True)
    """).draw_in_windows(WINDOWS, [(0, 0, 40_000)] * 3, seed=2**100)  # fmt: skip
    values = [int("".join(map(str, bits[::-1])), 2) for bits in seeds]
    assert all(value < 2**53 for value in values)
    assert min(abs(a - b) for a, b in [(values[0], values[1]), (values[1], values[2])]) > 2**30


def measured(generator, path, workers, **changes):
    tokens = np.random.default_rng(1).integers(0, 6, 200).astype(np.uint8)
    wanted = task(tokens, 30, block=20, draws=30, estimators=("harmonic", "ibs"), **changes)
    return measure_sampled.measure(generator, wanted, Journal(path, "key"), workers)


def test_the_number_of_workers_changes_no_digit(start, tmp_path):
    alone = measured(start(OBEDIENT), tmp_path / "1", 1, mixture=0.1)
    together = measured(start(OBEDIENT, workers=3), tmp_path / "3", 3, mixture=0.1)
    assert alone == together


def test_the_perl_example_speaks_the_protocol():
    text = ROOT / "examples/training.txt"
    symbols = tuple(sorted(set(text.read_text())))
    surroundings = Surroundings(Alphabet(symbols), 1, 2)
    parameters = {"command": ["perl", str(ROOT / "examples/bigram.pl"), str(text)], "reply_seconds": 30}
    generator = command.load(parameters, [], surroundings)
    after_q = [np.array([symbols.index("q")])]
    (drawn,) = generator.draw_in_windows(after_q, [(0, 1, 2000)], seed=3)
    followers = [b for a, b in zip(text.read_text(), text.read_text()[1:], strict=False) if a == "q"]
    share = followers.count("u") / len(followers)
    assert (drawn == symbols.index("u")).mean() == pytest.approx(share, abs=4 * (0.25 / 2000) ** 0.5)
    (start,) = generator.draw_in_windows([np.array([])], [(0, 0, 2000)], seed=4)
    share = text.read_text().count(" ") / 150_000
    assert (start == symbols.index(" ")).mean() == pytest.approx(share, abs=4 * (0.25 / 2000) ** 0.5)
    generator.close()


MISBEHAVIOUR = {
    "id too large": ("drawn[0][1] = 6", "drew 6; token ids are whole numbers from 0 to 5"),
    "negative id": ("drawn[0][0] = -1", "drew -1"),
    "float": ("drawn[0][0] = 0.5", "drew 0.5"),
    "whole float": ("drawn[0][0] = 1.0", "drew 1.0"),
    "text": ("drawn[0][0] = 'x'", "drew 'x'"),
    "null": ("drawn[0][0] = None", "drew None"),
    "list": ("drawn[0][0] = [1]", "not lists of token ids"),
    "true": ("drawn[0] = [True] * 7", "drew True"),
    "huge id": ("drawn[0][0] = 10 ** 30", "drew 1000000000000000000000000000000"),
    "NaN": ("drawn[0][0] = float('nan')", 'not JSON: \'{"id": 0, "drawn": [[NaN, 0'),
    "too few draws": ("drawn[1].pop()", "4 draws where 5 were asked for"),
    "too many draws": ("drawn[1].append(0)", "6 draws where 5 were asked for"),
    "too few lists": ("drawn.pop()", "1 prefixes instead of 2"),
    "too many lists": ("drawn.append([])", "3 prefixes instead of 2"),
    "a number for lists": ("drawn = 7", "answered 7"),
    "text for lists": ("drawn = 'abc'", "prefixes instead of 2"),
    "wrong id": ("number += 1", 'answered \'{"id": 1, "drawn": '),
    "no id": ("print('{}', flush=True)", "answered '{}' to request 0"),
    "debugging output": ("print('loading model ...')", "not JSON: 'loading model ...'"),
    "an empty line": ("print()", "not JSON: ''"),
    "a list": ("print('[1, 2]')", "printed '[1, 2]' instead of an object"),
    "binary": ("sys.stdout.buffer.write(bytes(range(128, 140)) + bytes([10]))", "not JSON: '\ufffd"),
    "deep nesting": ("print('[' * 100000)", "not JSON: '[[["),
    "an exit": ("sys.exit(3)", "ended before it answered; exit status 3"),
    "a crash": ("raise RuntimeError('out of memory')", "it said:"),
    "a signal": ("os.kill(os.getpid(), 9)", "ended before it answered; exit status -9"),
    "half a line": ("print('{\"id\": 0', end='', flush=True); os._exit(0)", "not JSON: '{\"id\": 0'"),
}


@pytest.mark.parametrize(("action", "said"), MISBEHAVIOUR.values(), ids=MISBEHAVIOUR)
def test_misbehaviour_gets_one_sentence(start, action, said):
    generator = start(broken(action))
    with pytest.raises(GeneratorError) as caught:
        generator.draw_in_windows(WINDOWS, [(0, 1, 7), (1, 2, 5)], seed=1)
    sentence = str(caught.value)
    assert said in sentence
    assert sentence.startswith(f"the generator '{sys.executable} ")
    assert "\n" not in sentence
    assert len(sentence) < 800


def test_the_last_words_of_a_program_that_dies_are_repeated(start):
    generator = start(broken("sys.stderr.write('one\\ntwo\\ncannot open\\n  weights.bin\\n'); sys.exit(1)"))
    with pytest.raises(GeneratorError, match=r"exit status 1; it said: one two cannot open weights\.bin$"):
        generator.draw_in_windows(WINDOWS, [(0, 1, 7)], seed=1)


def test_much_talk_on_standard_error_neither_blocks_nor_fills_the_sentence(start):
    generator = start(broken("sys.stderr.write('progress\\n' * 200_000); drawn = drawn"))
    (drawn,) = generator.draw_in_windows(WINDOWS, [(0, 1, 7)], seed=1)
    assert drawn.tolist() == [0] * 7
    generator = start(broken("sys.stderr.write('progress ' * 200_000); sys.stderr.flush(); print('x')"))
    with pytest.raises(GeneratorError) as caught:
        generator.draw_in_windows(WINDOWS, [(0, 1, 7)], seed=1)
    assert len(str(caught.value)) < 800


def test_a_long_line_is_shown_shortened(start):
    generator = start(broken("print('x' * 10_000_000)"))
    with pytest.raises(GeneratorError, match="x" * 100) as caught:
        generator.draw_in_windows(WINDOWS, [(0, 1, 7)], seed=1)
    assert len(str(caught.value)) < 800


def test_a_program_that_hangs_is_given_up_after_its_time_limit(start):
    generator = start(broken("time.sleep(60)"), reply_seconds=2)
    begin = time.monotonic()
    with pytest.raises(GeneratorError, match="did not answer within reply_seconds = 2"):
        generator.draw_in_windows(WINDOWS, [(0, 1, 7)], seed=1)
    generator.close()
    assert time.monotonic() - begin < 30


def test_a_program_that_closes_its_output_and_stays_is_given_up_too(start):
    generator = start(broken("os.close(1); time.sleep(60)"), reply_seconds=2)
    with pytest.raises(GeneratorError, match="did not answer within"):
        generator.draw_in_windows(WINDOWS, [(0, 1, 7)], seed=1)


def test_a_slow_program_is_within_its_limit_if_each_answer_is(start):
    generator = start(broken("time.sleep(0.3)"), reply_seconds=10)
    drawn = generator.draw_in_windows(WINDOWS, [(0, 1, 30_000)] * 4, seed=1)
    assert len(drawn) == 4


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import sys; sys.exit('no such model')", "exit status 1; it said: no such model"),
        ("import time; time.sleep(60)", "did not answer within reply_seconds = 3"),
        ("print('{\"ganlm\": 2}', flush=True); input(); input()", "greeted with '{\"ganlm\": 2}' instead of"),
        ("print('{}', flush=True); input(); input()", "greeted with '{}' instead of {\"ganlm\": 1}"),
        ("print('hello', flush=True); input(); input()", "not JSON: 'hello'"),
        ("print(3, flush=True); input(); input()", "instead of an object"),
    ],
    ids=["dies", "hangs", "other version", "no version", "text", "a number"],
)  # fmt: skip
@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_start_gets_one_sentence_and_leaves_no_process(start, tmp_path, source, said, workers):
    with pytest.raises(GeneratorError) as caught:
        start(source, workers=workers, reply_seconds=3)
    assert said in str(caught.value)
    assert running(tmp_path) == []


@pytest.mark.parametrize("program", ["/nonexistent/generator", "."])
def test_what_cannot_be_started_gets_one_sentence(program):
    with pytest.raises(GeneratorError, match=f"cannot start '{program} 1': "):
        Command([program, "1"], 10, Surroundings(ALPHABET))


@pytest.mark.parametrize("workers", [1, 3])
def test_after_misbehaviour_everybody_stops_and_finished_blocks_are_kept(start, tmp_path, workers):
    """The third request that any copy sees is answered wrongly: no block may wait for that copy forever."""
    generator = start(
        broken("count = globals().get('count', 0) + 1; drawn[0][0] = 99 * (count > 2)"), workers
    )
    path = tmp_path / "journal"
    with pytest.raises(GeneratorError, match="drew 99"):
        measured(generator, path, workers, cap=2)
    assert 1 + 2 <= len(path.read_text().splitlines()) <= 1 + 2 * workers
    with pytest.raises(GeneratorError, match="drew 99"):
        for _ in range(workers):
            generator.draw_in_windows(WINDOWS, [(0, 1, 7)], seed=1)


def test_a_program_that_does_not_leave_is_ended(tmp_path, start):
    generator = start("""
        import signal, sys, time
        print('{"ganlm": 1}', flush=True)
        sys.stdin.read()
        time.sleep(60)
    """)  # fmt: skip
    begin = time.monotonic()
    generator.close()
    assert time.monotonic() - begin < 10
    assert running(tmp_path) == []
