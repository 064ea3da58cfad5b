#include "purine/data/dataset.h"

namespace purine::data {

std::string_view name_of(Subset subset) {
  return subset == Subset::train ? "train" : "test";
}

Image Dataset::read(std::int64_t index) const {
  Image image;
  std::vector<std::byte> file;
  read(index, image, file);
  return image;
}

}  // namespace purine::data
