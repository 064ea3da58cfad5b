#include "purine/core/version.h"

namespace purine {

std::string_view version() {
  return PURINE_VERSION;
}

std::string_view build_id() {
  return PURINE_BUILD_ID;
}

}  // namespace purine
