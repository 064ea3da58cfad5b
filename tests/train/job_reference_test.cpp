#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "purine/io/atomic_file.h"
#include "purine/io/file.h"
#include "purine/train/job_keys.h"

namespace purine::train {
namespace {

constexpr const char* page = "docs/job-file.md";
constexpr std::string_view keys_begin = "<!-- keys: begin -->\n";
constexpr std::string_view keys_end = "<!-- keys: end -->\n";

/// The documentation's tables are the list of keys; with PURINE_UPDATE_DOCS=1 in the environment they become
/// so.
TEST(JobReferenceTest, TheDocumentationHasEveryKey) {
  std::string text = io::read_file(page);
  const std::size_t first = text.find(keys_begin);
  const std::size_t last = text.find(keys_end);
  ASSERT_NE(first, std::string::npos);
  ASSERT_NE(last, std::string::npos);
  const std::size_t start = first + keys_begin.size();
  if (std::getenv("PURINE_UPDATE_DOCS") != nullptr) {
    text.replace(start, last - start, "\n" + job_reference() + "\n");
    io::write_file(page, text);
  }
  const std::string documented = io::read_file(page).substr(start);
  EXPECT_EQ(documented.substr(0, documented.find(keys_end)), "\n" + job_reference() + "\n")
      << "PURINE_UPDATE_DOCS=1 in this test's environment brings " << page << " up to date";
}

TEST(JobReferenceTest, ATableForEachSection) {
  const std::string reference = job_reference();
  for (const std::string& section : job_sections()) {
    EXPECT_NE(reference.find("### `[" + section + "]`\n"), std::string::npos);
  }
  EXPECT_NE(reference.find("| `batch` | integer, 1 to 1048576 | `64` | Images of a training step."),
            std::string::npos)
      << reference;
  EXPECT_NE(
      reference.find("| `name` | sgd, momentum, nesterov, adam, adamw | `\"momentum\"` | The update rule. |"),
      std::string::npos);
  EXPECT_NE(reference.find("| `folder` | text | required | The folder of the data set. |"),
            std::string::npos);
}

}  // namespace
}  // namespace purine::train
