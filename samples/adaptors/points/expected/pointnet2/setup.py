from setuptools import setup
from torch.utils.cpp_extension import BuildExtension

setup(
    name="pointnet2",
    ext_modules=[],
    cmdclass={"build_ext": BuildExtension},
)
