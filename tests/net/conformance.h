// What every endpoint must do, as programs that all ranks run at the same time.
#pragma once

#include <string>
#include <vector>

#include "purine/runtime/endpoint.h"

namespace purine::test {

/// A check that all ranks run together; it throws std::runtime_error where the endpoint is wrong.
struct EndpointCheck {
  std::string name;
  void (*run)(Endpoint& endpoint);
};

/// For any endpoint of at least two ranks. Each leaves it as it was, but for the last one, `fail`.
const std::vector<EndpointCheck>& endpoint_checks();

}  // namespace purine::test
