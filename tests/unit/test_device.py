import pytest
import torch

from ganlm.device import choose_device


def test_the_cpu_can_be_asked_for():
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_the_choice_is_the_cpu_and_asking_for_one_gets_a_sentence():
    assert choose_device("auto") == torch.device("cpu")
    with pytest.raises(ValueError, match="asks for `device: cuda`, but this job sees no GPU"):
        choose_device("cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no GPU")
def test_a_gpu_is_taken():
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda")
