"""The words: the right cipher, fresh keys, nothing shared by threads, processes or copies, nothing kept."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from tests.messages import refuses

from confide.errors import PrivacyError
from confide.noise import SecureNoise, standard
from confide.noise.standard import SecureWords, SimulatedWords

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
SECRET = bytes(range(40)) + b"\x00" * 3 + b"\xff" * 5  # the last counter bytes overflow at once


def aes_blocks(count: int) -> bytes:
    """The key stream block by block: AES of the counter, which runs over 128 bits, high byte first."""
    encryptor = Cipher(algorithms.AES(SECRET[:32]), modes.ECB()).encryptor()
    start = int.from_bytes(SECRET[32:], "big")
    return b"".join(encryptor.update(((start + i) % 2**128).to_bytes(16, "big")) for i in range(count))


def test_the_words_are_the_key_stream_of_aes_256_in_counter_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def urandom(size: int) -> bytes:
        asked.append(size)
        return SECRET

    monkeypatch.setattr(os, "urandom", urandom)
    source = SecureWords()
    taken = np.concatenate([source.take(count) for count in (1, 2, 0, 5, 1, 300)])
    assert asked == [48]
    assert taken.dtype == np.uint64
    assert taken.tobytes() == aes_blocks(200)[: 8 * 309]


def test_no_word_comes_twice_and_none_is_kept() -> None:
    source = SecureWords()
    taken = np.concatenate([source.take(count) for count in (1, 7, 3_000, 16_000)])
    assert len(np.unique(taken)) == len(taken)  # a chance repetition: 1e-11
    state = {**vars(source), **vars(source._keystream)}
    assert not any(isinstance(part, np.ndarray | bytes | bytearray | list | dict) for part in state.values())


def test_a_new_key_after_so_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert standard.WORDS_PER_KEY == 2**30
    keys: list[int] = []
    urandom = os.urandom
    monkeypatch.setattr(standard, "WORDS_PER_KEY", 1_000)
    monkeypatch.setattr(os, "urandom", lambda size: keys.append(size) or urandom(size))
    source = SecureWords()
    for _ in range(10):
        source.take(100)
    assert keys == [48]
    source.take(1)
    assert keys == [48, 48]
    source.take(999)
    assert keys == [48, 48]
    source.take(2)
    assert keys == [48, 48, 48]


def test_rekey_asks_the_system_for_a_new_key_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[int] = []
    noise = SecureNoise()
    before = noise._words._keystream
    urandom = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: keys.append(size) or urandom(size))
    noise.rekey()
    assert keys == [48]
    assert noise._words._keystream is not before
    noise.grid_gaussian(4, 100)
    assert keys == [48]


def test_two_sources_differ() -> None:
    assert (SecureWords().take(4) != SecureWords().take(4)).all()


@pytest.mark.parametrize("make", [SecureWords, SecureNoise])
@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, pickle.dumps, lambda s: pickle.dumps([s], 0), lambda s: copy.deepcopy({"a": s})],
)
def test_secure_sources_cannot_be_pickled_or_copied(
    make: Callable[[], object], duplicate: Callable[[object], object]
) -> None:
    with refuses(PrivacyError):
        duplicate(make())


def _in_fork(work: Callable[[], bytes]) -> bytes:
    """What `work` gives in a forked child; the test fails when the child takes over two minutes."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(send, work())
        finally:
            os._exit(0)
    os.close(send)
    deadline = time.monotonic() + 120
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the forked child did not end")
        time.sleep(0.005)
    with os.fdopen(receive, "rb") as pipe:
        return pipe.read()


DRAWING: dict[str, Callable[[SecureNoise], np.ndarray]] = {
    "grid_gaussian": lambda noise: noise.grid_gaussian(10**24, 100),
    "grid_laplace": lambda noise: noise.grid_laplace(10**12, 100),
    "discrete_gaussian": lambda noise: noise.discrete_gaussian(10**24, 100),
    "discrete_laplace": lambda noise: noise.discrete_laplace(10**12, 100),
    "array of scales": lambda noise: noise.grid_gaussian([10**24 + j for j in range(100)], 100),
    "uniform_integers": lambda noise: noise.uniform_integers(10**12, 100),
    "bernoulli": lambda noise: np.packbits(noise.bernoulli(0.5, 6_400)).view(np.int64),
}


@needs_fork
@pytest.mark.parametrize("law", DRAWING)
def test_a_forked_child_never_repeats_its_parent(law: str) -> None:
    noise, draw = SecureNoise(), DRAWING[law]
    draw(noise)
    child = _in_fork(lambda: draw(noise).tobytes())
    second_child = _in_fork(lambda: draw(noise).tobytes())
    parent = draw(noise).tobytes()
    assert len(child) == len(second_child) == len(parent) == 800
    # A chance repetition among 300 of 10^12: 5e-8.
    assert len(np.unique(np.frombuffer(child + second_child + parent, dtype=np.int64))) == 300


@needs_fork
def test_the_fork_hook_alone_suffices(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a descendant that is given the pid of its dead ancestor."""
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    source = SecureWords()
    child = _in_fork(lambda: source.take(8).tobytes())
    assert len(child) == 64
    assert child != source.take(8).tobytes()


@needs_fork
def test_the_pid_test_alone_suffices(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a fork made outside Python, which no hook sees."""
    monkeypatch.setattr(standard, "_LIVE", set())
    source = SecureWords()
    standard._LIVE.clear()
    child = _in_fork(lambda: source.take(8).tobytes())
    assert len(child) == 64
    assert child != source.take(8).tobytes()


@needs_fork
def test_without_both_a_child_would_repeat_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two tests above can fail: this is what they would see."""
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    monkeypatch.setattr(standard, "_LIVE", set())
    source = SecureWords()
    standard._LIVE.clear()
    child = _in_fork(lambda: source.take(8).tobytes())
    assert child == source.take(8).tobytes()


@needs_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("same_pid", [False, True])
def test_a_child_forked_while_another_thread_holds_the_lock_does_not_wait_for_it(
    same_pid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if same_pid:
        monkeypatch.setattr(os, "getpid", lambda: 4242)
    source = SecureWords()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with source._keystream._lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    try:
        assert len(_in_fork(lambda: source.take(8).tobytes())) == 64
    finally:
        done.set()
        thread.join()


@needs_fork
def test_the_workers_of_a_forked_pool_draw_different_noise() -> None:
    global _shared
    _shared = SecureNoise()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        drawn = pool.map(_draw_shared, range(6), chunksize=1)
    assert len({bytes(part) for part in drawn}) == 6


_shared: SecureNoise | None = None


def _draw_shared(_: int) -> bytes:
    assert _shared is not None
    return _shared.grid_gaussian(10**12, 20).tobytes()


def test_threads_that_draw_at_once_never_share_words() -> None:
    source = SecureWords()
    start = threading.Barrier(4)
    taken: list[np.ndarray] = []

    def work() -> None:
        start.wait()
        taken.append(np.concatenate([source.take(count) for count in [3, 1_000, 17] * 40]))

    _run([threading.Thread(target=work) for _ in range(4)])
    together = np.concatenate(taken)
    assert len(together) == 4 * 40 * 1_020
    assert len(np.unique(together)) == len(together)  # a chance repetition: 1e-9


def test_only_one_thread_at_a_time_reads_a_key_stream() -> None:
    """With a cipher that is slow enough for any second reader to be seen inside it."""
    source = SecureWords()
    inside, most = [0], [0]

    def slow(zeros: bytes) -> bytes:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1
        return zeros

    source._keystream._encrypt = slow
    _run([threading.Thread(target=lambda: [source.take(2) for _ in range(5)]) for _ in range(4)])
    assert most == [1]


def _run(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_simulated_words_are_the_same_everywhere_and_always() -> None:
    """Frozen: PCG64DXSM keyed by SHA-256, by an independent reading of the definition."""
    import hashlib

    digest = hashlib.sha256(b"confide/simulated/7/(1, 2)").digest()
    bits = np.random.PCG64DXSM(np.random.SeedSequence(int.from_bytes(digest, "big")))
    assert SimulatedWords(7, (1, 2)).take(5).tolist() == bits.random_raw(5).tolist()
    assert SimulatedWords(7).take(2).tolist() == FROZEN


FROZEN = [587521458952924076, 1762252732245748219]
