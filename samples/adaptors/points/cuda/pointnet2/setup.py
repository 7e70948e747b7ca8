from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="pointnet2",
    ext_modules=[
        CUDAExtension("pointnet2._ext", ["src/bindings.cpp", "src/points_gpu.cu"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
