#include "purine/train/state.h"

#include <map>
#include <string>
#include <string_view>

#include "purine/core/error.h"
#include "purine/session/agreement.h"
#include "purine/session/rank_values.h"

namespace purine::train {
namespace {

using ByName = std::map<std::string_view, const io::HostTensor*>;

ByName by_name(std::span<const io::HostTensor> tensors) {
  ByName all;
  for (const io::HostTensor& tensor : tensors) all[tensor.name] = &tensor;
  return all;
}

// The checkpoint's own path is known to the caller.
Error state_error(std::string_view variable, std::string_view message) {
  return Error("checkpoint", std::string(variable) + " " + std::string(message),
               "the checkpoint is another network's, or another optimizer's");
}

void check(std::span<const parallel::WholeVariable> variables, std::span<const io::HostTensor> tensors,
           bool rest_is_ignored) {
  ByName rest = by_name(tensors);
  for (const parallel::WholeVariable& variable : variables) {
    const auto found = rest.find(variable.path);
    if (found == rest.end()) throw state_error(variable.path, "is not in the checkpoint");
    const io::HostTensor& tensor = *found->second;
    if (!(tensor.info == variable.info)) {
      throw state_error(variable.path, "is " + tensor.info.text() + " in the checkpoint and " +
                                           variable.info.text() + " in the network");
    }
    rest.erase(found);
  }
  if (!rest_is_ignored && !rest.empty()) {
    throw state_error(rest.begin()->first, "is in the checkpoint, but not in the network");
  }
}

}  // namespace

void set_values(Runtime& runtime, std::span<const parallel::WholeVariable> variables, Variables& values,
                std::span<const io::HostTensor> tensors, bool rest_is_ignored) {
  at_all_ranks(runtime.endpoint(), [&] {
    if (runtime.rank() == 0) check(variables, tensors, rest_is_ignored);
  });
  const ByName all = by_name(tensors);
  const ReadWhole read = [&](const parallel::WholeVariable& variable) -> std::span<const std::byte> {
    return all.at(variable.path)->data;
  };
  divide_whole_values(runtime, variables, read, values);
}

}  // namespace purine::train
