#include "purine/io/host_tensor.h"

#include "purine/core/error.h"

namespace purine::io {

void HostTensor::check_read_as(DType dtype) const {
  if (dtype == info.dtype) return;
  throw Error("tensor", "holds " + info.text() + " but is read as " + std::string(name_of(dtype))).at(name);
}

void HostTensor::check_elements(std::string_view name, const Shape& shape, std::size_t elements) {
  if (static_cast<std::size_t>(shape.elements()) == elements) return;
  throw Error("tensor", "shape " + shape.text() + " has " + std::to_string(shape.elements()) +
                            " elements, but " + std::to_string(elements) + " values are given")
      .at(name);
}

const HostTensor* find_tensor(std::span<const HostTensor> tensors, std::string_view name) {
  for (const HostTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace purine::io
