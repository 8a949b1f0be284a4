"""Threats to the isolated runner: whatever a block's code does, its answer is a public one, the others' stand, and the time is the same."""

import ctypes
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from pyarrow import csv
from tests.messages import refuses
from tests.pace import patient, slow

from confide._helpers import QUIET
from confide.errors import PlanError
from confide.sums.blocks.isolated_process import Answers, Isolated, Room, silenced

_ANSWERS = Answers((2,), -1.0, 1.0, 0.5)
_KEY = bytes(range(32))
_ODD = 3.0  # the first value of the block that misbehaves
_BLOCKS = [np.full((5, 1), value) for value in (0.1, 0.2, _ODD, 0.3, 0.4)]


def _honest(table, generator):
    return [table[0, 0], 2.0]


def _raises(table, generator):
    raise ValueError(f"the record {table[0]}")


def _exits(table, generator):
    os._exit(3)


def _leaves(table, generator):
    sys.exit("no")


def _dies(table, generator):
    os.kill(os.getpid(), signal.SIGSEGV)


def _hangs(table, generator):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)


def _spins(table, generator):
    while True:
        pass


def _allocates(table, generator):
    return np.ones(1 << 30)[:2]


def _hoards(table, generator):
    held = []
    while True:
        held.append(np.ones(1 << 20))


def _forks(table, generator):
    for _ in range(20):
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
    time.sleep(60)


def _answers_later(table, generator):
    """Its child would answer after its own end."""
    if os.fork():
        os._exit(0)
    os.setsid()
    time.sleep(60)


def _wrong_shape(table, generator):
    return table


def _not_a_number(table, generator):
    return [0.0, np.nan]


def _infinite(table, generator):
    return [np.inf, 0.0]


def _text(table, generator):
    return ["a", "b"]


def _nothing(table, generator):
    return None


def _complex(table, generator):
    return [{}, 1]


_FAULTS = (
    _raises,
    _exits,
    _leaves,
    _dies,
    _hangs,
    _spins,
    _allocates,
    _hoards,
    _forks,
    _answers_later,
    _wrong_shape,
    _not_a_number,
    _infinite,
    _text,
    _nothing,
    _complex,
)


def _run(work, tables=_BLOCKS, room=None, **others):
    with Isolated(work, _ANSWERS, room or Room(0.6 * slow(), memory=256, jobs=5), **others) as workers:
        return workers.run(tables, _KEY)


@pytest.mark.parametrize("fault", _FAULTS, ids=lambda fault: fault.__name__.strip("_"))
@patient
def test_a_fault_is_a_public_answer_and_touches_no_other_block(fault):
    def work(table, generator):
        return (fault if table[0, 0] == _ODD else _honest)(table, generator)

    found = _run(work)
    assert found[2].tolist() == [0.5, 0.5]
    assert found[[0, 1, 3, 4]].tolist() == [[value, 1.0] for value in (0.1, 0.2, 0.3, 0.4)]


@patient
def test_nothing_that_was_started_outlives_its_wave():
    mark = f"confide-{os.getpid()}"

    def work(table, generator):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv(sys.executable, [sys.executable, "-c", f"import time; time.sleep(60)  # {mark}"])
        time.sleep(60)

    _run(work, room=Room(1.5 * slow()))
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert mark not in listed


@pytest.mark.parametrize(
    "fault", [_honest, _raises, _exits, _spins, _forks], ids=lambda fault: fault.__name__.strip("_")
)
@patient
def test_the_time_is_the_rooms(fault):
    """To a busy machine's pace: work that was waited for would take a minute, or for ever."""
    pace = slow()
    with Isolated(fault, _ANSWERS, Room(0.6 * pace, jobs=2)) as workers:
        start = time.monotonic()
        workers.run(_BLOCKS, _KEY)
        assert 0.6 * pace <= time.monotonic() - start < 3 * pace


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors are told apart on Linux alone")
@patient
def test_a_block_that_starts_many_others_takes_no_time_from_its_neighbours():
    """Thirty processes that never wait, beside blocks that need a hundredth of their time each."""

    def work(table, generator):
        if table[0, 0] == _ODD:
            for _ in range(30):
                if os.fork() == 0:
                    _spins(table, generator)
            _spins(table, generator)
        start = time.process_time()
        while time.process_time() - start < 0.02:
            pass
        return _honest(table, generator)

    found = _run(work, room=Room(3.0 * slow(), jobs=5))
    assert found[2].tolist() == [0.5, 0.5]
    assert found[[0, 1, 3, 4]].tolist() == [[value, 1.0] for value in (0.1, 0.2, 0.3, 0.4)]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors are told apart on Linux alone")
@patient
def test_blocks_side_by_side_have_processors_of_their_own():
    def work(table, generator):
        first, *_, last = sorted(os.sched_getaffinity(0)) * 2
        return [first / 1_000, last / 1_000]

    here = sorted(os.sched_getaffinity(0))
    found = _run(work, room=Room(1.0 * slow(), jobs=100)) * 1_000
    for place, own in enumerate(found.round().astype(int).tolist()):
        assert own == [here[place % len(here)]] * 2
    assert Room(1.0, jobs=100).here == Room(1.0, jobs=len(here))


@pytest.mark.skipif(sys.platform != "linux", reason="accounts of children are kept otherwise elsewhere")
@patient
def test_the_caller_is_not_told_what_blocks_took():
    """Neither processor time nor memory of a block is added to the caller's account."""

    def works(table, generator):
        held = np.ones(40_000_000)
        while time.process_time() < 0.5:
            pass
        return [held[0], 0.0]

    def took():
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime, own.ru_maxrss

    before, largest = took()
    assert _run(works, tables=_BLOCKS[:1], room=Room(1.2 * slow())).tolist() == [[1.0, 0.0]]
    seconds, grown = took()
    assert seconds - before < 0.25 and grown - largest < 250_000


@patient
def test_a_block_that_takes_long_to_end_takes_no_time_from_the_next_ones(monkeypatch):
    ask, ends = Isolated._ask, []

    def slowly(self, what, *files):
        ask(self, what, *files)
        if what == b"e" and not ends:
            ends.append(time.sleep(0.5 * slow()))  # five times a block's share

    monkeypatch.setattr(Isolated, "_ask", slowly)
    found = _run(_honest, room=Room(0.5 * slow()))
    assert found.tolist() == [[table[0, 0] if table[0, 0] != _ODD else 1.0, 1.0] for table in _BLOCKS] and ends == [
        None
    ]


@patient
def test_a_block_sees_itself_alone_and_its_own_generator():
    seen = _run(lambda table, generator: [table.sum() / 100, generator.random()])
    again = _run(lambda table, generator: [table.sum() / 100, generator.random()])
    assert (seen == again).all() and len(set(seen[:, 1])) == 5
    legacy = _run(lambda table, generator: [0.0, np.random.random()])  # noqa: NPY002
    assert len(set(legacy[:, 1])) == 5


@patient
def test_blocks_and_what_they_start_run_where_a_library_has_a_pipe_that_it_closes_in_forked_processes(tmp_path):
    """Arrow has one once it has read a CSV file, and ends a process in which it cannot close it."""

    def work(table, generator):
        started = os.fork()
        if not started:
            os._exit(7)
        return [table[0, 0], os.waitstatus_to_exitcode(os.waitpid(started, 0)[1]) / 14]

    (tmp_path / "read.csv").write_text("x\n1\n")
    assert csv.read_csv(tmp_path / "read.csv").num_rows == 1
    assert _run(work).tolist() == [[value[0, 0] if value[0, 0] < 1 else 1.0, 0.5] for value in _BLOCKS]


@patient
def test_what_a_block_writes_goes_nowhere(capfd):
    def work(table, generator):
        sys.stdout.write(f"a record: {table[0, 0]}")
        sys.stdout.flush()
        os.write(1, b"a record")
        os.write(2, b"a record")
        led = []
        for file in list(Path("/proc/self/fd").iterdir()):
            with suppress(FileNotFoundError):  # the listing itself
                led.append(str(file.readlink()))
        return [not open_here & {*led}, sys.stdin.read() == ""]

    with socket.socket() as line, Path(__file__).open() as text:  # files that the caller holds open
        pipe = os.pipe()
        open_here = {os.readlink(f"/proc/self/fd/{file}") for file in (line.fileno(), text.fileno(), *pipe)}  # noqa: PTH115
        found = _run(work)
        for end in pipe:
            os.close(end)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    assert (found == 1.0).all()


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
@patient
def test_a_block_that_crashes_leaves_no_image_of_its_memory():
    def work(table, generator):
        kept = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)  # PR_GET_DUMPABLE
        return [kept, resource.getrlimit(resource.RLIMIT_CORE)[0]]

    assert (_run(work) == 0.0).all()


@pytest.mark.skipif(sys.platform != "linux", reason="Linux says which process goes first")
@patient
def test_where_memory_runs_out_a_block_goes_before_the_caller():
    def work(table, generator):
        return [int(Path("/proc/self/oom_score_adj").read_text()) / 1_000, 0.0]

    assert (_run(work) == [1.0, 0.0]).all()


@patient
def test_temporary_files_are_a_blocks_own_and_do_not_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def work(table, generator):
        empty = not any(Path(tempfile.gettempdir()).iterdir())
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(table.tobytes())
        plain = Path(tempfile.gettempdir(), "records")
        plain.write_bytes(table.tobytes())
        modes = [one.stat().st_mode & 0o077 for one in (plain, plain.parent, Path(file.name))]
        named = {os.environ[name] for name in ("TMPDIR", "JOBLIB_TEMP_FOLDER")}
        return [empty and named == {str(plain.parent)}, modes == [0, 0, 0]]

    assert (_run(work) == 1.0).all()
    latest = time.monotonic() + 10 * slow()
    while any(tmp_path.iterdir()) and time.monotonic() < latest:
        time.sleep(0.01)
    assert not any(tmp_path.iterdir())


def _warns(table, generator):
    warnings.warn("of a library", stacklevel=1)
    return [0.25, 0.25]


@patient
def test_a_warning_ends_no_block_where_the_caller_makes_errors_of_them():
    with warnings.catch_warnings(action="error"):
        assert _run(_warns).tolist() == [[0.25, 0.25]] * 5


@patient
def test_large_answers_and_empty_blocks_come_back():
    answers = Answers((50_000,), 0, 9, 0)
    with Isolated(lambda table, generator: np.full(50_000, len(table)), answers, Room(0.5 * slow())) as workers:
        found = workers.run([np.zeros((0, 3)), np.zeros((7, 3))], _KEY)
    assert found.shape == (2, 50_000) and (found[0] == 0).all() and (found[1] == 7).all()


@patient
def test_progress_is_told_by_waves():
    told = []
    _run(_honest, room=Room(0.3 * slow(), jobs=2), progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_an_interrupt_ends_all():
    def tick(done, of):
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        Isolated(_forks, _ANSWERS, Room(1.0, jobs=2), progress=tick) as workers,
    ):
        workers.run(_BLOCKS, _KEY)
    with pytest.raises(ChildProcessError):
        os.waitpid(workers._server, os.WNOHANG)


@patient
def test_blocks_without_a_process_give_the_public_answer(monkeypatch):
    """A block that starts processes without end may leave none for others: no error may tell of it."""
    fork, caller = os.fork, os.getpid()

    def none_left():
        if os.getpid() != caller:
            raise BlockingIOError("Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", none_left)
    assert (_run(_honest) == 0.5).all()


@pytest.mark.parametrize(
    "given", [{"seconds": 0}, {"seconds": float("nan")}, {"seconds": 1, "memory": 0}, {"seconds": 1, "jobs": 1.5}]
)
def test_a_room_is_public_and_positive(given):
    with refuses(PlanError):
        Room(**given)


@patient
def test_whoever_is_told_of_progress_loses_no_release():
    def falls(done: int, of: int) -> None:
        raise ZeroDivisionError

    told = _run(_honest, room=Room(0.3 * slow(), jobs=2), progress=falls)
    assert np.array_equal(told, _run(_honest, room=Room(0.3 * slow(), jobs=2)))


def test_two_threads_that_are_silenced_leave_output_as_it_was():
    """The one that began last ends last: without a lock it would put the other's nowhere back in place of the output."""
    before, began = sys.stdout, threading.Event()

    def first() -> None:
        with silenced():
            began.set()
            time.sleep(0.1)

    def second() -> None:
        began.wait()
        with silenced():
            time.sleep(0.2)

    threads = [threading.Thread(target=one) for one in (first, second)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sys.stdout is before


def test_a_release_stays_silent_when_silenced_code_ends_beside_it():
    """Both change the filters of the whole process: the last to leave puts them back, whoever began."""
    before, code = list(warnings.filters), silenced()
    code.__enter__()
    with QUIET:  # a release of another thread begins, and the code ends
        code.__exit__(None, None, None)
        with warnings.catch_warnings(record=True) as heard:
            warnings.warn("the cell 0.123", UserWarning, stacklevel=1)
        assert not heard
    assert list(warnings.filters) == before
