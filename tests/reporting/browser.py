"""Drives a headless Chromium by its DevTools protocol."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-port=0",
    "--window-size=1280,3400",
)


class Page:
    """One open page; collects what goes to the console and what asks for the network."""

    def __init__(self, socket: Any, loop: asyncio.AbstractEventLoop):
        self._socket = socket
        self._loop = loop
        self._last = 0
        self.problems: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **parameters: Any) -> Any:
        return self._loop.run_until_complete(self._call(method, parameters))

    async def _call(self, method: str, parameters: Any) -> Any:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        await self._socket.write_message(json.dumps(message))
        while True:
            text = await asyncio.wait_for(self._socket.read_message(), 30)
            answer = json.loads(text)
            if answer.get("id") == self._last:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer.get("method"), answer.get("params", {}))

    def _note(self, method: str | None, found: Any) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(found["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning"):
            self.problems.append(str(found["args"]))
        elif method == "Log.entryAdded" and found["entry"]["level"] == "error":
            self.problems.append(found["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, once a promise is kept."""
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def close(self) -> None:
        self._loop.run_until_complete(self._close())

    async def _close(self) -> None:
        self._socket.close()
        while await asyncio.wait_for(self._socket.read_message(), 30) is not None:
            pass
        await asyncio.sleep(0.05)  # the connection ends after its last message

    def open(self, path: Path) -> None:
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=path.as_uri())
        self.evaluate(
            "new Promise((done) => { const look = () => "
            "window.Bokeh && Bokeh.documents.length && Bokeh.documents[0].is_idle "
            "? setTimeout(() => done(true), 300) : setTimeout(look, 50); look(); })"
        )


@contextmanager
def opened(browser: str, path: Path) -> Iterator[Page]:
    """The page of a file."""
    from tornado.websocket import websocket_connect

    # The browser's own children may write for a moment after it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        loop = asyncio.new_event_loop()
        try:
            assert process.stderr is not None
            found = None
            while not found:
                line = process.stderr.readline()
                assert line, "Chromium ended before it listened"
                found = re.search(r"ws://([\w.:]+)/", line)
            page = loop.run_until_complete(_connect(websocket_connect, found[1]))
            made = Page(page, loop)
            made.open(path)
            try:
                yield made
            finally:
                made.close()
        finally:
            process.terminate()
            process.wait(30)
            if process.stderr is not None:
                process.stderr.close()
            loop.close()


async def _connect(connect: Any, address: str) -> Any:
    from tornado.httpclient import AsyncHTTPClient

    answer = await AsyncHTTPClient().fetch(f"http://{address}/json/list")
    pages = [each for each in json.loads(answer.body) if each["type"] == "page"]
    return await connect(pages[0]["webSocketDebuggerUrl"], max_message_size=1 << 28)
