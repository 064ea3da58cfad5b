#include "purine/core/version.h"

namespace purine {

std::string_view version() {
  return PURINE_VERSION;
}

}  // namespace purine
