"""Attacks on the studio: other origins, other users of this machine, hostile names and files. None charges, reads or runs anything.

They are listed, with those of `test_uploads.py` and `test_studio.py`, in evidence/studio.md.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from tests.studio.served import MEANS, Visitor, approval, prepared, served, survey

from confide.core.exact import digest
from confide.errors import PlanError
from confide.ledger import Ledger
from confide.studio import guard
from confide.studio.folder import Folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("desk")
    survey(place)
    (place.parent / "secret.csv").write_text("a\n1\n")
    (place / "link.csv").symlink_to(place.parent / "secret.csv")
    (place / "<img src=x onerror=alert(1)>.csv").write_text("<script>alert(1)</script>,b\n1,2\n")
    return place


@pytest.fixture(scope="module")
def visitor(folder):
    with served(folder) as studio:
        opened = Visitor(studio).open()
        opened.page = prepared(opened)
        yield opened


@pytest.fixture(autouse=True)
def nothing_was_charged(folder, visitor):
    yield
    assert sum(row.kind == "charge" for row in Ledger.open(folder / "ledger.db").show().rows) == 0


def _stranger(visitor: Visitor, **headers: str) -> Visitor:
    return Visitor(visitor.studio, headers=headers)


def test_nobody_without_the_link_sees_anything(visitor):
    for path in ("/", "/style.css", "/schema?data=survey.csv", "/?token=guessed", "/nothing"):
        answer = _stranger(visitor).get(path)
        assert answer.status == 403 and "survey" not in answer.text
    assert _stranger(visitor).post("/ledger", {"name": "x", "dataset": "y", "mu": "1"}).status == 403
    assert _stranger(visitor, Cookie=visitor.cookie[:-1]).get("/").status == 403


def test_the_link_opens_once(folder):
    with served(folder) as studio:
        link = "/" + studio.link.split("/", 3)[3]
        Visitor(studio).open()
        assert Visitor(studio).get(link).status == 403 and studio.keys.link == ""


def test_cookies_are_kept_from_scripts_and_foreign_pages(folder):
    with served(folder) as studio:
        said = Visitor(studio).get("/" + studio.link.split("/", 3)[3]).headers["set-cookie"]
        assert "HttpOnly" in said and "SameSite=strict" in said and str(studio.port) in said


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1]:{port}"]
)
def test_other_hosts_are_refused(visitor, host):
    assert visitor.get("/", Host=host.format(port=visitor.studio.port)).status == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json"},
        {"Content-Length": "400000"},
    ],
)
def test_forms_of_other_pages_are_refused(visitor, headers):
    price = approval(visitor, visitor.page)
    if "Content-Length" in headers:
        assert visitor.post(price, {"x": "y" * 300_000}).status == 403
    else:
        assert visitor.post(price, **headers).status == 403


@pytest.mark.parametrize("csrf", ["", "guessed"])
def test_forms_without_the_field_do_nothing(visitor, csrf):
    answer = visitor.post(approval(visitor, visitor.page), csrf=csrf)
    assert answer.status == 403 and "Nothing was done" in answer.text


def test_no_get_spends(visitor):
    assert visitor.get(approval(visitor, visitor.page)).status == 200


def test_a_guessed_approval_is_none(visitor):
    assert visitor.post("/approve/" + "a" * 22).status == 422


@pytest.mark.parametrize(
    "name",
    ["../secret.csv", "..%2Fsecret.csv", "/etc/passwd", "link.csv", ".hidden.csv", "a\\b.csv", "", "a\nb.csv", ".."],
)
def test_no_file_outside_the_folder(folder, visitor, name):
    with pytest.raises(PlanError):
        Folder.at(folder).path(name)
    answer = visitor.get(f"/schema?data={quote(name)}")
    assert answer.status in (404, 422) and "root:" not in answer.text
    assert visitor.get(f"/release/{quote(name, safe='')}").status in (404, 422)
    assert visitor.get(f"/ledger/{quote(name, safe='')}").status in (303, 307, 404, 422)


def test_a_linked_file_is_not_listed(visitor):
    assert "link.csv" not in visitor.get("/").text


def test_hostile_names_run_nothing(visitor):
    for page in ("/", "/schema?data=" + quote("<img src=x onerror=alert(1)>.csv")):
        text = visitor.get(page).text
        assert "<img" not in text and "<script>alert" not in text and "&lt;" in text
    asked = MEANS | {"name": "<b>x</b>", "who": "<script>alert(1)</script>", "purpose": '"><img src=x>'}
    text = visitor.get(visitor.post("/ask", asked).headers["location"]).text
    assert "<script>" not in text and "<img" not in text


def test_hostile_files_are_messages(folder, visitor):
    files = {
        "bad.request.json": "{",
        "list.request.json": "[1]",
        "deep.request.json": "[" * 100_000,
        "plan.request.json": json.dumps({"plan": {"method": {"name": "os.system"}}}),
        "bad.release.json": json.dumps({"body": {}, "sha256": "0" * 64}),
        "bad.toml": "columns = 3",
        "bad.db": "no ledger",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    assert visitor.get("/").status == 200
    for path in (
        "/request/bad",
        "/request/list",
        "/request/deep",
        "/request/plan",
        "/release/bad",
        "/schema/bad.toml",
        "/ledger/bad.db",
    ):
        assert visitor.get(path).status == 422, path
    for name in files:
        (folder / name).unlink()


def test_what_a_browser_may_do_with_a_page(visitor):
    for path in ("/", "/ask?schema=survey.schema.toml"):
        headers = visitor.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"


def test_no_record_is_on_any_page_before_the_release(folder, visitor):
    (folder / "survey.csv").write_text((folder / "survey.csv").read_text() + "77,CANARY,123.45\n")
    for path in ("/", "/schema?data=survey.csv", visitor.page, "/ledger/ledger.db", approval(visitor, visitor.page)):
        assert "CANARY" not in visitor.get(path).text


def test_names_of_files_are_quoted_in_steps(folder, visitor):
    name = "$(touch pwned) `x` '\"; import os #.csv"
    (folder / name).write_bytes((folder / "survey.csv").read_bytes())
    own = {"decision": "approved", "plan_sha256": "0" * 64, "data": name, "ledger": "ledger.db", "dataset": "survey"}
    asked = visitor.post("/ask", MEANS | {"name": "quoted"}).headers["location"]
    assert visitor.studio.folder.decide("quoted", own)
    lines = [shlex.split(one) for one in visitor.get(f"{asked}/steps.sh").text.splitlines() if "release" in one]
    assert lines[0][:4] == ["confide", "release", "quoted.plan.json", name]
    calls = [one for one in ast.walk(ast.parse(visitor.get(f"{asked}/steps.py").text)) if isinstance(one, ast.Constant)]
    assert name in [one.value for one in calls]
    assert "touch" in visitor.get("/").text and not (folder / "pwned").exists()


def _altered(folder, name, alter):
    """The request of means under another name, changed and with a digest that fits."""
    said = json.loads((folder / "means.request.json").read_text())
    alter(said)
    said["plan"]["sha256"] = digest(said["plan"]["body"])
    (folder / f"{name}.request.json").write_text(json.dumps(said))


def _cheap(said):
    """Means at mu = .5 that say to cost .01."""
    for one in said["plan"]["body"]["guarantees"]:
        one.update({"mu": (0.01).hex()} if one["type"] == "GDP" else {"rho": (0.01**2 / 2).hex()})


def _of_another_target(said):
    said["plan"]["body"]["target"] = "an estimate that costs 0.01 alone"


def _of_another_note(said):
    said["plan"]["body"]["warnings"] = ["this release costs 0.01 alone"]


@pytest.mark.parametrize("alter", [_cheap, _of_another_target, _of_another_note])
def test_what_a_request_states_of_its_price_is_shown_nowhere(folder, visitor, alter):
    """Its digest was made to fit. Pages show the plan as it is made anew, or the refusal: no price, no way on to one."""
    _altered(folder, "cheap", alter)
    answer = visitor.get("/request/cheap")
    assert answer.status == 200 and "cannot be made again" in answer.text
    assert "0.01" not in answer.text and "Approve: see the charge" not in answer.text and "Rehearse" not in answer.text
    form = {
        "sha256": visitor.studio.folder.request("cheap").plan.sha256,
        "data": "survey.csv",
        "ledger": "ledger.db/survey",
    }
    refused = visitor.post("/request/cheap/approve", form)
    assert refused.status == 422 and "cannot be made again" in refused.text and "0.01" not in refused.text
    assert visitor.post("/request/cheap/simulate").status == 422
    assert visitor.post("/request/cheap/refuse", {"reason": "altered"}).status == 303
    assert "Refused: altered" in visitor.get("/request/cheap").text
    for ending in ("request", "decision"):
        (folder / f"cheap.{ending}.json").unlink()


def test_a_request_that_is_put_in_place_of_an_approved_one_names_nothing(folder, visitor):
    """The page before the charge says what was made anew when it was asked for, not what a file says since."""
    price = approval(visitor, visitor.page)
    kept = (folder / "means.request.json").read_text()
    _altered(folder, "means", _of_another_target)
    text = visitor.get(price).text
    assert "0.01 alone" not in text and "<h1>Release: Mean income by region" in text
    assert visitor.post(price).status == 422
    (folder / "means.request.json").write_text(kept)


@pytest.mark.parametrize("ending", ["py", "sh", "ipynb"])
def test_no_name_of_a_parameter_becomes_code(folder, visitor, ending):
    code = "**dict(x=__import__('os').system('touch pwned')), y"
    _altered(folder, "code", lambda said: said["plan"]["body"]["method"]["parameters"].update({code: 1}))
    answer = visitor.get(f"/request/code/steps.{ending}")
    assert answer.status == 422 and "__import__" not in answer.text
    (folder / "code.request.json").unlink()


def test_practice_of_many_records_is_refused(folder, visitor):
    _altered(folder, "many", lambda said: said["plan"]["body"].update({"n": 10**12}))
    answer = visitor.post("/request/many/simulate")
    assert answer.status == 422 and "at most 1,000,000" in answer.text
    assert "at most 1,000,000" in visitor.get("/practise?" + urlencode(MEANS | {"n": str(10**12)})).text
    (folder / "many.request.json").unlink()


def test_a_form_of_another_question_hides_no_result(folder, visitor):
    rows = {"kind": "publication", "kind0": "means", "formula0": "income ~ region"}
    _altered(folder, "other", lambda said: said["form"].update(rows))
    assert visitor.post("/request/other/simulate").status == 200
    (folder / "other.request.json").unlink()


_THIEF = """
import socket, sys
port, cookie, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]
kind, host = (socket.AF_INET, "127.0.0.1") if kind == "4" else (socket.AF_INET6, "::ffff:127.0.0.1")
link = socket.socket(kind, socket.SOCK_STREAM)
link.connect((host, port))
link.sendall(f"GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nCookie: {cookie}\\r\\nConnection: close\\r\\n\\r\\n".encode())
print(link.makefile().readline())
"""


@pytest.mark.skipif(os.getuid() != 0 or not Path("/proc/net/tcp").exists(), reason="takes another account, on Linux")
@pytest.mark.parametrize("kind", ["4", "6"])
def test_a_stolen_cookie_opens_nothing_for_another_account(visitor, kind):
    """A browser sends the cookie to every port of this machine, and another account may run a server on one."""
    call = [sys.executable, "-S", "-c", _THIEF, str(visitor.studio.port), visitor.cookie, kind]
    assert " 200 " in subprocess.run(call, check=True, capture_output=True, text=True).stdout
    call[0] = "/usr/bin/python3"
    if not Path(call[0]).exists():
        pytest.skip("another account may run no Python here")
    assert " 403 " in subprocess.run(call, check=True, capture_output=True, text=True, user=65534).stdout


def _row(local: int, remote: int, state: str, user: int) -> str:
    here = f"{int.from_bytes(bytes([127, 0, 0, 1]), sys.byteorder):08X}"
    return f"0: {here}:{local:04X} {here}:{remote:04X} {state} 0:0 00:0 0 {user} 0 17\n"


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        ([(9, 80, "01", os.getuid()), (80, 9, "01", os.getuid())], False),
        ([(9, 80, "01", os.getuid() + 1), (80, 9, "01", os.getuid())], True),
        ([(9, 80, "05", 0), (80, 9, "08", os.getuid())], True),
        ([(9, 81, "01", os.getuid() + 1), (80, 9, "01", os.getuid())], False),
        ([(80, 9, "08", os.getuid())], True),
        ([], True),
    ],
)
def test_whose_connection_it_is(monkeypatch, tmp_path, rows, refused):
    table = tmp_path / "tcp"
    table.write_text("names\n" + "".join(_row(*row) for row in rows))
    monkeypatch.setattr(guard, "_TABLES", (table, tmp_path / "none"))
    assert guard.stranger(("127.0.0.1", 9), ("127.0.0.1", 80)) == refused
    monkeypatch.setattr(guard, "_TABLES", (tmp_path / "none",))
    assert not guard.stranger(("127.0.0.1", 9), ("127.0.0.1", 80))


def test_cookies_of_other_servers_lock_nobody_out(visitor):
    for other in ('a={"b":1}', 'a="b', "a b", visitor.cookie.split("=")[0] + "=other"):
        assert visitor.get("/", Cookie=f"{other}; {visitor.cookie}").status == 200
        assert visitor.get("/", Cookie=other).status == 403


def test_a_body_in_chunks_is_no_form(visitor):
    assert visitor.post("/ledger", **{"Transfer-Encoding": "chunked", "Content-Length": "10"}).status == 403


def test_commands_stop_where_the_plan_is_another(folder, visitor):
    text = visitor.get(f"{visitor.page}/steps.sh").text
    (check,) = [line for line in text.splitlines() if line.startswith("grep")]
    plan = folder / "means.plan.json"
    asked = visitor.studio.folder.request("means").plan
    for written, status in ((asked, 0), (replace(asked, n=7), 1)):
        plan.write_text(written.to_json())
        assert subprocess.run(["sh", "-ec", check], cwd=folder, check=False).returncode == status
    plan.unlink()
