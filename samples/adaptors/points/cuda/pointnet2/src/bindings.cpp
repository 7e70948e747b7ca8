#include <torch/extension.h>

at::Tensor gather_points(at::Tensor points, at::Tensor idx);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("gather_points", &gather_points);
}
