// Which release this is.
#pragma once

#include <string_view>

namespace purine {

/// The library's version, `0.1.0`.
std::string_view version();

/// The version and, where the sources were a Git checkout when they were configured, its commit:
/// `0.1.0+1b3ef2d04c5a`.
std::string_view build_id();

}  // namespace purine
