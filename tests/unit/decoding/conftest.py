import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    """Tiny tensors on several threads are slow where other programs run beside the tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
