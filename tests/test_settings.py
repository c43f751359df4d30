"""Blocks of other settings, also where such on several threads overlap."""

import random
import threading
import time
from dataclasses import asdict

import pytest

from tensormagic.config import Config


def test_blocks_that_overlap_on_several_threads_leave_the_settings_as_they_were():
    settings = Config()
    before, entered, left = asdict(settings), threading.Event(), threading.Event()

    def beside() -> None:
        with settings.using(device="gpu"):
            entered.set()
            left.wait(5)

    thread = threading.Thread(target=beside)
    with settings.using(device="auto"):
        thread.start()
        assert entered.wait(5)
    assert settings.device == "gpu"  # that block goes on
    left.set()
    thread.join()
    assert asdict(settings) == before


def test_drawn_blocks_leave_the_settings_as_they_were():
    settings = Config()
    before = asdict(settings)

    def work(seed: int) -> None:
        draw = random.Random(seed)
        for _ in range(100):
            with settings.using(device=draw.choice(["gpu", "auto"]), tier="numba"):
                time.sleep(draw.random() * 1e-4)
                with settings.using(math="real"):
                    pass

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asdict(settings) == before


def test_what_code_sets_in_a_block_ends_with_it():
    settings = Config()
    with settings.using(math="exact"):
        settings.math = "real"
        with settings.using(tier="numpy"):
            assert settings.math == "real"
        assert settings.math == "real"
    assert settings.math == "stable"


def test_a_setting_that_is_not_there_is_refused():
    """It was taken without a word, and set nothing."""
    with pytest.raises(AttributeError, match="config has no setting teir; did you mean tier"):
        Config().teir = "numpy"  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]


def test_the_number_of_threads_is_a_variable_of_the_environment(monkeypatch):
    monkeypatch.setenv("TENSORMAGIC_THREADS", "2")
    assert Config().threads == 2
