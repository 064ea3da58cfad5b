#include "purine/train/notes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "purine/core/json_helpers.h"
#include "purine/session/gather_texts.h"

namespace purine::train {

void Notes::add(std::string text) {
  const std::lock_guard lock(mutex_);
  texts_.push_back(std::move(text));
}

std::vector<std::string> Notes::take_all() {
  const std::lock_guard lock(mutex_);
  return std::exchange(texts_, {});
}

std::vector<std::string> Notes::take(const Runtime& runtime) {
  return runtime.rank() == 0 ? take_all() : std::vector<std::string>{};
}

std::vector<std::string> Notes::gather(Runtime& runtime) {
  using Json = nlohmann::json;
  const Json own = runtime.rank() == 0 ? Json::array() : Json(take_all());
  const std::vector<std::string> all =
      gather_texts(runtime, own.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::vector<std::string> notes;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (const Json& note : parse_json(all[rank])) {
      notes.push_back(fmt::format("rank {}: {}", rank, note.get<std::string>()));
    }
  }
  return notes;
}

}  // namespace purine::train
