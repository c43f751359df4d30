"""The TensorMagic kernel over Jupyter's protocol: everything a Python kernel does, with the extension loaded."""

import time
from pathlib import Path
from typing import ClassVar

import jupyter_kernel_test
from jupyter_client.manager import start_new_kernel

# Every sample is checked by jupyter_kernel_test in the way that its name says: test_execute_stdout, test_execute_stderr,
# test_execute_result, test_display_data, test_error, test_inspect, test_is_complete, test_clear_output, test_kernel_info, test_pager.


class TestProtocol(jupyter_kernel_test.KernelTests):
    kernel_name = "tensormagic"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('hello', file=sys.stderr)"
    completion_samples: ClassVar = [{"text": "zi", "matches": {"zip"}}]
    complete_code_samples: ClassVar = ["1", "for i in range(3):\n    print(i)\n\n", "%%tensor\nx = 1\n\n"]
    incomplete_code_samples: ClassVar = ["print('hi',", "def f():", "%%tensor\nfor i in range(3):"]
    invalid_code_samples: ClassVar = ["x = = 2", "1 1"]
    code_page_something = "zip?"
    code_generate_error = "raise ValueError('on purpose')"
    code_execute_result: ClassVar = [{"code": "6 * 7", "result": "42"}, {"code": "'a' + 'b'", "result": "'ab'"}]
    code_display_data: ClassVar = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>x</b>'))", "mime": "text/html"}
    ]
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"

    def test_history(self):  # the tail only: the suite's other checks do not hold for Python's own kernel either
        codes = [sample["code"] for sample in self.code_execute_result]
        reply = self.history_helper(codes, output=False, raw=True, hist_access_type="tail", n=len(codes))
        assert [code for _, _, code in reply["content"]["history"]] == codes

    def test_completion(self):  # on a busy machine IPython's completer answers without jedi at first
        self.flush_channels()
        deadline = time.monotonic() + 30
        found: set[str] = set()
        while not found and time.monotonic() < deadline:
            self.kc.complete("zi")
            found = set(self.get_non_kernel_info_reply()["content"]["matches"])
        super().test_completion()

    def run_code(self, code: str) -> str:
        """Run code that prints, and return what it printed."""
        self.flush_channels()
        reply, messages = self.execute_helper(code, timeout=60)
        assert reply["content"]["status"] == "ok", reply["content"]
        return "".join(message["content"]["text"] for message in messages if message["msg_type"] == "stream")

    def test_the_extension_is_loaded(self):
        assert self.run_code("print('tensormagic' in get_ipython().extension_manager.loaded)") == "True\n"
        assert self.run_code("print('tensor' in get_ipython().magics_manager.magics['cell'])") == "True\n"

    def test_a_tensor_cell_runs(self):
        self.run_code("import numpy as np\nx = np.arange(3.0)")
        self.run_code("%%tensor --show none\ny = np.sum(x * x)\n")
        assert self.run_code("print(float(y))") == "5.0\n"

    def test_it_says_who_it_is(self):
        self.flush_channels()
        self.kc.kernel_info()
        content = self.kc.get_shell_msg(timeout=15)["content"]
        assert content["implementation"] == "tensormagic"
        assert "%%tensor" in content["banner"]


def test_a_file_named_like_a_module_does_not_stop_the_kernel(tmp_path: Path):
    for name in ("traitlets.py", "IPython.py", "zmq.py"):
        (tmp_path / name).write_text("raise RuntimeError('a file of the user')")
    manager, client = start_new_kernel(kernel_name="tensormagic", cwd=str(tmp_path))
    try:
        reply = client.execute_interactive("1 + 1", timeout=60, output_hook=lambda message: None)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
