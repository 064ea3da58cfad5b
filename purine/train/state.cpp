#include "purine/train/state.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "purine/core/error.h"
#include "purine/session/whole_values.h"

namespace purine::train {
namespace {

// The checkpoint's own path is known to the caller.
Error state_error(std::string_view variable, std::string_view message) {
  return Error("checkpoint", std::string(variable) + " " + std::string(message),
               "the checkpoint is another network's, or another optimizer's");
}

}  // namespace

void set_values(std::span<const parallel::WholeVariable> variables, Variables& values,
                std::span<const io::HostTensor> tensors, bool rest_is_ignored) {
  std::map<std::string_view, const io::HostTensor*> by_name;
  for (const io::HostTensor& tensor : tensors) by_name[tensor.name] = &tensor;
  std::vector<std::pair<const parallel::WholeVariable*, const io::HostTensor*>> pairs;
  for (const parallel::WholeVariable& variable : variables) {
    const auto found = by_name.find(variable.path);
    if (found == by_name.end()) throw state_error(variable.path, "is not in the checkpoint");
    const io::HostTensor& tensor = *found->second;
    if (!(tensor.info == variable.info)) {
      throw state_error(variable.path, "is " + tensor.info.text() + " in the checkpoint and " +
                                           variable.info.text() + " in the network");
    }
    pairs.emplace_back(&variable, &tensor);
    by_name.erase(found);
  }
  if (!rest_is_ignored && !by_name.empty()) {
    throw state_error(by_name.begin()->first, "is in the checkpoint, but not in the network");
  }
  for (const auto& [variable, tensor] : pairs) set_whole_value(*variable, tensor->data, values);
}

}  // namespace purine::train
