// Which release this is.
#pragma once

#include <string_view>

namespace purine {

/// The library's version, `0.1.0`.
std::string_view version();

}  // namespace purine
