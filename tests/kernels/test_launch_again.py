"""A Triton launch that was made before takes what Triton compiled then, with the same arguments."""

import torch

from mxkernels.quantize.plan import Launch, compile_options


class Compiled:
    """Stands for triton.compiler.CompiledKernel."""

    def __init__(self, calls):
        self.calls = calls

    def __getitem__(self, grid):
        return lambda *arguments: self.calls.append((grid, arguments))


class Jitted:
    """Stands for a function of triton.jit; counts the searches for a compiled kernel."""

    def __init__(self):
        self.found, self.calls = 0, []

    def __getitem__(self, grid):
        def run(*arguments, **options):
            assert options == {"num_warps": 4, "maxnreg": 168}
            self.found += 1
            self.calls.append(((*grid, 1, 1), arguments))
            return Compiled(self.calls)

        return run


def addresses(arguments):
    return [each.data_ptr() if isinstance(each, torch.Tensor) else each for each in arguments]


def test_the_second_launch_passes_the_new_tensors_and_the_same_arguments():
    kernel = Jitted()
    options = compile_options(4, 168)
    launch = Launch(kernel, (7,), (64, "rceil"), options, torch.device("cpu"))
    for _ in range(3):
        x = torch.ones(64, dtype=torch.bfloat16)
        buffers = torch.empty(64, dtype=torch.float8_e4m3fn), torch.empty(2, dtype=torch.uint8)
        launch.start(x, buffers)
        grid, arguments = kernel.calls[-1]
        assert grid == (7, 1, 1)
        wanted = [x.data_ptr(), *(buffer.data_ptr() for buffer in buffers), 64, "rceil"]
        assert addresses(arguments) == wanted
        assert [each.dtype for each in arguments[:3]] == [torch.int16, torch.uint8, torch.uint8]
    assert kernel.found == 1
