// What an Error says, for tests that assert it.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "purine/core/error.h"

namespace purine::test {

/// The text of the Error that a function throws; throwing none fails the test.
template <typename Function>
std::string error_text(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

/// What the exception says that ended a run.
inline std::string text_of_cause(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace purine::test
