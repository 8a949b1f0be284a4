"""A studio on a port of this machine, and a browser of few words that keeps its cookie."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import uvicorn

from confide.studio import Studio


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Visitor:
    """Sends what it is told to send: every header may be another's."""

    studio: Studio
    cookie: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: dict[str, str] | None = None, *, csrf: str | None = None, **headers: str) -> Answer:
        field_ = self.studio.keys.form if csrf is None else csrf
        body = urlencode({"csrf": field_, **(form or {})})
        own = {"Origin": f"http://127.0.0.1:{self.studio.port}", "Sec-Fetch-Site": "same-origin"}
        return self._ask("POST", path, body, {"Content-Type": "application/x-www-form-urlencoded", **own, **headers})

    def send(self, name: bytes | str, content: bytes, *, csrf: str | None = None, **headers: str) -> Answer:
        """The form that carries a file, with these very bytes as the file's name."""
        named = name.encode() if isinstance(name, str) else name
        own = self.studio.keys.form if csrf is None else csrf
        parts = [
            b'Content-Disposition: form-data; name="csrf"\r\n\r\n' + own.encode(),
            b'Content-Disposition: form-data; name="file"; filename="' + named + b'"\r\n\r\n' + content,
        ]
        return self.send_parts(parts, **headers)

    def send_parts(self, parts: Sequence[bytes], **headers: str) -> Answer:
        body = b"".join(b"--edge\r\n" + part + b"\r\n" for part in parts) + b"--edge--\r\n"
        own = {"Origin": f"http://127.0.0.1:{self.studio.port}", "Sec-Fetch-Site": "same-origin"}
        kind = {"Content-Type": "multipart/form-data; boundary=edge"}
        return self._ask("POST", "/records", body, {**kind, **own, **headers})

    def open(self) -> Visitor:
        """Follow the link that was printed."""
        answer = self.get("/" + self.studio.link.split("/", 3)[3])
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].split(";")[0]
        return self

    def _ask(self, verb: str, path: str, body: str | bytes | None, headers: dict[str, str]) -> Answer:
        link = http.client.HTTPConnection("127.0.0.1", self.studio.port, timeout=600)
        sent = {**({"Cookie": self.cookie} if self.cookie else {}), **self.headers, **headers}
        link.request(verb, path, body, sent)
        got = link.getresponse()
        answer = Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read().decode())
        link.close()
        return answer


@contextmanager
def served(folder: Path, databases: Sequence[str] = ()) -> Iterator[Studio]:
    """A studio that answers."""
    listening = socket.create_server(("127.0.0.1", 0))
    studio = Studio(folder, listening.getsockname()[1], databases)
    server = uvicorn.Server(uvicorn.Config(studio.app, log_level="error", lifespan="off", proxy_headers=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield studio
    server.should_exit = True
    thread.join()
    listening.close()


def survey(folder: Path, records: int = 600) -> None:
    """A table of synthetic records."""
    g = np.random.default_rng(3)
    age = g.integers(18, 90, records)
    columns = {"age": age, "region": g.choice(list("NS"), records), "income": 300.0 * age + g.normal(0, 5_000, records)}
    frame = pd.DataFrame(columns | {"works": g.integers(0, 2, records), "visits": g.poisson(2, records)})
    frame.to_csv(folder / "survey.csv", index=False)


SCHEMA = {
    "data": "survey.csv", "dataset": "survey", "unit": "record",
    "kind0": "integer", "values0": "18-90", "from0": "adults",
    "kind1": "categorical", "values1": "N, S", "from1": "a map",
    "kind2": "numeric", "values2": "0-60000", "from2": "the tariff",
    "kind3": "integer", "values3": "0-1", "from3": "0 or 1",
    "kind4": "integer", "values4": "0-20", "from4": "the questionnaire",
}  # fmt: skip
LEDGER = {"name": "ledger", "dataset": "survey", "mu": "1", "unit": "record"}
MEANS = {
    "schema": "survey.schema.toml",
    "kind": "means",
    "formula": "income ~ region",
    "mu": "0.5",
    "inference": "population",
    "n": "600",
}


def prepared(visitor: Visitor) -> str:
    """From the file to a request of means; the request's page."""
    assert visitor.post("/schema", SCHEMA).status == 303
    assert visitor.post("/ledger", LEDGER).status == 303
    return visitor.post("/ask", MEANS | {"name": "means", "who": "Ana", "purpose": "yearbook"}).headers["location"]


def approval(visitor: Visitor, page: str) -> str:
    """The page before the charge."""
    sha256 = visitor.studio.folder.request(page.rsplit("/", 1)[1]).plan.sha256
    form = {"sha256": sha256, "data": "survey.csv", "ledger": "ledger.db/survey"}
    return visitor.post(f"{page}/approve", form).headers["location"]


def settled(visitor: Visitor, page: str) -> Answer:
    """The request's page, once its release is made or stopped."""
    for _ in range(6_000):
        answer = visitor.get(page)
        if "refresh" not in answer.headers:
            return answer
        time.sleep(0.05)
    raise AssertionError("the release does not end")
