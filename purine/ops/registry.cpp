#include "purine/ops/registry.h"

#include <utility>

namespace purine::ops {

void register_operators(Registry& registry);  // made by the build

void Registry::add(std::string type, std::vector<Sample> samples) {
  PURINE_CHECK(find(type) == nullptr);
  PURINE_CHECK(!samples.empty());
  types_.push_back({std::move(type), std::move(samples)});
}

const OperatorType* Registry::find(std::string_view type) const {
  for (const OperatorType& entry : types_) {
    if (entry.type == type) return &entry;
  }
  return nullptr;
}

Registry all_operators() {
  Registry registry;
  register_operators(registry);
  return registry;
}

}  // namespace purine::ops
