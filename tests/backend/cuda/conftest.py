"""A device for each test: the fake one; on a machine with a card the same tests run on the card, too."""

from collections.abc import Iterator

import pytest

from tensormagic.backend.cuda import device as devices
from tensormagic.backend.cuda import transfers
from tensormagic.backend.cuda.fake import FakeDevice


@pytest.fixture(params=["fake", pytest.param("card", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[devices.Device]:
    if request.param == "card" and (why := devices.missing()) is not None:
        pytest.skip(f"needs a card: {why[0]}")
    used: devices.Device = FakeDevice() if request.param == "fake" else devices.Card()
    devices.use(used)
    transfers.forget()
    try:
        yield used
    finally:
        devices.use(None)
