#include "purine/core/json_helpers.h"

namespace purine {

nlohmann::json parse_json(std::string_view text, const nlohmann::json::parser_callback_t& callback,
                          bool allow_exceptions) {
  return nlohmann::json::parse(text, callback, allow_exceptions);
}

}  // namespace purine
