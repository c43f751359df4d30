"""A kernel and its clients, as notebooks drive them: run cells, interrupt, restart, and see what came back."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

LONGEST = 120.0  # seconds that a cell may take


@dataclass
class Ran:
    """What came back for a cell: the reply, and the messages that it published."""

    reply: dict[str, Any]
    messages: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def status(self) -> str:
        """``"ok"``, or the name of the error."""
        return "ok" if self.reply["status"] == "ok" else str(self.reply.get("ename", self.reply["status"]))

    @property
    def text(self) -> str:
        """What it printed."""
        return "".join(m["content"]["text"] for m in self.messages if m["msg_type"] == "stream")

    @property
    def displays(self) -> list[dict[str, Any]]:
        """The data of each display and result."""
        kinds = {"display_data", "execute_result"}
        return [m["content"]["data"] for m in self.messages if m["msg_type"] in kinds]


class Running:
    """A kernel with one client, or with several."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def begin(self, cell: str, client: BlockingKernelClient | None = None) -> str:
        """Send a cell, and return what tells its replies."""
        return (client or self.client).execute(cell)

    def wait(
        self,
        sent: str,
        client: BlockingKernelClient | None = None,
        timeout: float = LONGEST,
        seen: list[dict[str, Any]] | None = None,
    ) -> Ran:
        """What came back for a cell that was sent, with what was seen of that before; queue.Empty after so many seconds."""
        client = client or self.client
        begin, messages = time.monotonic(), [] if seen is None else seen
        while True:
            message = client.get_iopub_msg(timeout=max(begin + timeout - time.monotonic(), 0.0))
            if message["parent_header"].get("msg_id") != sent:
                continue
            messages.append(message)
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        while (reply := client.get_shell_msg(timeout=timeout))["parent_header"].get("msg_id") != sent:
            pass
        return Ran(reply["content"], messages, time.monotonic() - begin)

    def run(self, cell: str, client: BlockingKernelClient | None = None, timeout: float = LONGEST) -> Ran:
        """Run a cell."""
        return self.wait(self.begin(cell, client), client, timeout)

    def interrupted(self, cell: str, after: float, patience: float = LONGEST) -> tuple[Ran, float, int]:
        """Run a cell and interrupt it some seconds after it has begun: what came back, how long it took to stop, and how
        many interrupts that needed. Python itself loses one that arrives in a finaliser; a user presses the key again.
        """
        sent = self.begin(cell)
        begun = list[dict[str, Any]]()
        while not begun or begun[-1]["msg_type"] != "execute_input":
            begun.append(self.client.get_iopub_msg(timeout=LONGEST))
        time.sleep(after)
        asked = time.monotonic()
        for count in range(1, 4):
            self.manager.interrupt_kernel()
            try:
                ran = self.wait(sent, timeout=patience, seen=begun)
            except queue.Empty:
                continue
            return ran, time.monotonic() - asked, count
        raise TimeoutError(f"three interrupts did not stop {cell!r}")

    def restart(self) -> None:
        """Restart, as the menu does."""
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(timeout=LONGEST)

    @contextmanager
    def second_client(self) -> Iterator[BlockingKernelClient]:
        """One more frontend on the same kernel, with a session of its own."""
        client = BlockingKernelClient(connection_file=self.manager.connection_file)
        client.load_connection_file()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=LONGEST)
            yield client
        finally:
            client.stop_channels()

    def drain(self) -> list[dict[str, Any]]:
        """The messages that nobody has waited for."""
        found: list[dict[str, Any]] = []
        while True:
            try:
                found.append(self.client.get_iopub_msg(timeout=0.3))
            except queue.Empty:
                return found

    def number(self, expression: str) -> float:
        """The value of an expression that prints as a number."""
        ran = self.run(f"print({expression})")
        return float(ran.text)


MEMORY = "__import__('resource').getrusage(__import__('resource').RUSAGE_SELF).ru_maxrss / 1024"
RESIDENT = "int(open('/proc/self/statm').read().split()[1]) * __import__('os').sysconf('SC_PAGE_SIZE') / 2**20"


@contextmanager
def running(name: str = "tensormagic", **options: Any) -> Iterator[Running]:
    """Start a kernel, and end it."""
    manager, client = start_new_kernel(kernel_name=name, **options)
    try:
        yield Running(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
