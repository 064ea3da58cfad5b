// Reading JSON: the parser takes seconds to compile, so it is compiled once.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace purine {

/// As nlohmann::json::parse.
nlohmann::json parse_json(std::string_view text, const nlohmann::json::parser_callback_t& callback = nullptr,
                          bool allow_exceptions = true);

}  // namespace purine
