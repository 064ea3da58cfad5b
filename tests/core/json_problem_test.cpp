#include "purine/core/json_problem.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace purine {
namespace {

template <typename Function>
std::string problem_of(const std::string& text, Function&& function) {
  try {
    function(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return json_problem(text, error);
  }
  return "none";
}

std::string problem_of(const std::string& text) {
  return problem_of(text, [](const nlohmann::json&) {});
}

TEST(JsonProblemTest, NamesTheLineThatIsNotJson) {
  EXPECT_EQ(problem_of("x"), "is not JSON (line 1, column 1)");
  EXPECT_EQ(problem_of("{\"a\": 1,\n \"b\": 2,\n \"c\" 3}"), "is not JSON (line 3, column 6)");
  EXPECT_EQ(problem_of("[1,\n\n 2"), "is not JSON (line 3, column 2)") << "it ends too early";
  EXPECT_EQ(problem_of("[1]\n[2]\n"), "is not JSON (line 2, column 1)");
  EXPECT_EQ(problem_of("[1\n"), "is not JSON (line 1, column 3)");
  EXPECT_EQ(problem_of(""), "is empty, and so is not JSON");
  EXPECT_EQ(problem_of("\"\xff\""), "is not JSON (line 1, column 2)");
}

TEST(JsonProblemTest, SaysWhatWellFormedJsonLacks) {
  EXPECT_EQ(problem_of("{}", [](const nlohmann::json& json) { json.at("ts"); }),
            "cannot be read: key 'ts' not found");
  EXPECT_EQ(problem_of("[]", [](const nlohmann::json& json) { json.get<int>(); }),
            "cannot be read: type must be number, but is array");
}

}  // namespace
}  // namespace purine
