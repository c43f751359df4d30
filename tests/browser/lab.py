"""JupyterLab and Notebook 7 on this machine and a notebook open in them, for tests that look at what a user sees.

Knows nothing of tensormagic. Settings, data and kernels are in folders of their own; nothing asks the network.
"""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

CHROMIUM_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # a name that leaves this machine is not found
]
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
}
FRONTENDS = {"lab": "doc/tree", "notebook": "notebooks"}  # one server has both
# what Notebook 7 complains of by itself: its settings name plugins that only JupyterLab has, and now and then its server
# refuses it the fonts of its formulas
OWN_COMPLAINTS = re.compile(
    r"page error: Cannot read properties of undefined \(reading 'schema'\)|"
    r"page error: Command 'filebrowser:open-path' not registered|"
    r"Failed to load resource: .* 403 .*/static/notebook/\w+\.woff"
)
START_SECONDS = 90

# Run All before the session is ready opens a dialog that asks for a kernel.
KERNEL_READY = """async () => {
    const context = jupyterapp.shell.currentWidget.context;
    await context.ready;
    await context.sessionContext.ready;
    await context.sessionContext.session.kernel.info;
}"""
OUTPUTS = """() => Array.from(jupyterapp.shell.currentWidget.content.model.cells)
    .flatMap(cell => cell.type === 'code' ? cell.outputs.toJSON() : [])"""


@dataclass
class Lab:
    """A running JupyterLab, and the folder that it serves."""

    folder: Path
    port: int
    token: str
    log: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, name: str, notebook: Path | list[str], frontend: str = "lab") -> str:
        """Put a notebook, or cells of code, into the served folder, and return its address in JupyterLab or Notebook 7."""
        import nbformat

        if isinstance(notebook, Path):
            shutil.copy(notebook, self.folder / name)
        else:
            kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            cells = [nbformat.v4.new_code_cell(cell) for cell in notebook]
            made = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec})
            nbformat.write(made, self.folder / name)
        return f"{self.address}/{FRONTENDS[frontend]}/{name}?token={self.token}&reset"


@contextmanager
def running_lab(home: Path) -> Iterator[Lab]:
    """Start JupyterLab in a process group of its own, and end that group by its id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lab = Lab(folder=home / "notebooks", port=port, token=secrets.token_hex(16), log=home / "lab.log")
    lab.folder.mkdir(parents=True)
    variables = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    for plugin, setting in SETTINGS.items():
        path = home / "settings/@jupyterlab" / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(setting))
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"),
        *("--ServerApp.port_retries=0", f"--IdentityProvider.token={lab.token}", f"--ServerApp.root_dir={lab.folder}"),
        *("--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.extension_manager=readonly"),
        *("--ServerApp.terminals_enabled=False", "--LabApp.expose_app_in_browser=True"),
        *("--ServerApp.jpserver_extensions=notebook=True", "--JupyterNotebookApp.expose_app_in_browser=True"),
    ]
    environment = os.environ | {name: str(home / folder) for name, folder in variables.items()}
    with lab.log.open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _wait(lab, process)
        yield lab
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(lab: Lab, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{lab.address}/api/status?token={lab.token}", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start:\n{lab.log.read_text()}")


@dataclass
class OpenNotebook:
    """A notebook in a page of the browser, and everything that went wrong there."""

    page: Page
    screenshots: Path
    console_errors: list[str] = field(default_factory=list)
    offsite_requests: list[str] = field(default_factory=list)

    def run_all(self) -> list[dict[str, Any]]:
        """Run all cells, wait for the last, and return the outputs of all."""
        self.page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")
        return self.page.evaluate(OUTPUTS)

    def use_theme(self, name: str) -> None:
        """Switch JupyterLab to 'light' or 'dark'."""
        theme = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}[name]
        self.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", theme)
        light = str(name == "light").lower()
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")  # it covers the page while styles load

    def screenshot(self, name: str) -> Path:
        """Save what the page shows, for a person to look at."""
        path = self.screenshots / f"{name}.png"
        self.page.screenshot(path=path)
        return path


def open_notebook(browser: BrowserContext, lab: Lab, address: str, screenshots: Path) -> OpenNotebook:
    """Open a notebook and wait until its kernel answers. Requests that leave this machine are noted; the browser finds no names.

    They are listened to and not routed: where a page has routes, the browser keeps nothing, and JupyterLab's scripts are read anew.
    """
    opened = OpenNotebook(browser.new_page(), screenshots)
    own = (lab.address, "data:", "blob:")

    def note_request(request: Request) -> None:
        if not request.url.startswith(own):
            opened.offsite_requests.append(request.url)

    def complain(text: str) -> None:
        if "/notebooks/" not in address or OWN_COMPLAINTS.match(text) is None:
            opened.console_errors.append(text)

    def note(message: ConsoleMessage) -> None:
        if message.type == "error":
            complain(f"{message.text} ({message.location.get('url', '')})")

    opened.page.on("request", note_request)
    opened.page.on("console", note)
    opened.page.on("pageerror", lambda error: complain(f"page error: {error}"))
    opened.page.goto(address)
    opened.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=START_SECONDS * 1000)
    opened.page.evaluate(KERNEL_READY)
    return opened
