#include "purine/train/state.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "purine/core/error.h"

namespace purine::train {
namespace {

Error state_error(std::string_view path, std::string_view message) {
  return Error("checkpoint", message, "the checkpoint is another network's, or another optimizer's").at(path);
}

}  // namespace

void set_values(Graph& graph, Variables& variables, std::span<const io::HostTensor> tensors,
                bool rest_is_ignored) {
  std::map<std::string_view, const io::HostTensor*> by_name;
  for (const io::HostTensor& tensor : tensors) by_name[tensor.name] = &tensor;
  std::vector<std::pair<const io::HostTensor*, std::span<std::byte>>> copies;
  for (const Variable& variable : graph.variables()) {
    const std::string path = variable.path();
    const auto found = by_name.find(path);
    if (found == by_name.end()) throw state_error(path, "is not in the checkpoint");
    const io::HostTensor& tensor = *found->second;
    if (!(tensor.info == variable.info())) {
      throw state_error(path, "is " + tensor.info.text() + " in the checkpoint and " +
                                  variable.info().text() + " in the network");
    }
    copies.emplace_back(&tensor, variables.at(path).bytes());
    by_name.erase(found);
  }
  if (!rest_is_ignored && !by_name.empty()) {
    throw state_error(by_name.begin()->first, "is in the checkpoint, but not in the network");
  }
  for (const auto& [tensor, bytes] : copies)
    std::copy(tensor->data.begin(), tensor->data.end(), bytes.begin());
}

}  // namespace purine::train
