#include "purine/program/kernel.h"

namespace purine {

void KernelRegistry::add(std::string_view type, BindFunction bind) {
  const bool inserted = functions_.emplace(std::string(type), std::move(bind)).second;
  PURINE_CHECK(inserted);
}

void KernelRegistry::set(std::string_view type, BindFunction bind) {
  functions_.insert_or_assign(std::string(type), std::move(bind));
}

bool KernelRegistry::has(std::string_view type) const {
  return functions_.find(type) != functions_.end();
}

std::unique_ptr<Kernel> KernelRegistry::bind(const BindContext& context) const {
  const auto found = functions_.find(context.contract.type());
  if (found == functions_.end()) {
    throw Error(context.contract.type(), "has no kernel on this device").at(context.path);
  }
  try {
    return found->second(context);
  } catch (const Error& error) {
    throw error.at(context.path);
  }
}

std::vector<std::string> KernelRegistry::types() const {
  std::vector<std::string> types;
  for (const auto& [type, bind] : functions_) types.push_back(type);
  return types;
}

}  // namespace purine
