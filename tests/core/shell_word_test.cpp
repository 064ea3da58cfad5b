#include "purine/core/shell_word.h"

#include <gtest/gtest.h>

namespace purine {
namespace {

TEST(ShellWordTest, QuotesWhatTheShellWouldTakeApart) {
  EXPECT_EQ(shell_word("runs/job-2_a.b"), "runs/job-2_a.b");
  EXPECT_EQ(shell_word("läufe/日本"), "läufe/日本");
  EXPECT_EQ(shell_word("two words"), "'two words'");
  EXPECT_EQ(shell_word("$HOME/`x`"), "'$HOME/`x`'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word("-x"), "./-x");
  EXPECT_EQ(shell_word("- x"), "'./- x'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("back\\slash"), "'back\\slash'");
  EXPECT_EQ(shell_word("line\nfeed"), "$'line\\nfeed'");
  EXPECT_EQ(shell_word("it's\t\x1b[1m \\"), "$'it\\'s\\t\\x1b[1m \\\\'");
  EXPECT_EQ(shell_word("-\n"), "$'./-\\n'");
}

}  // namespace
}  // namespace purine
