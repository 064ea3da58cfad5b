#include "purine/session/agreement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "purine/net/in_process_endpoint.h"
#include "purine/session/gather_texts.h"
#include "tests/support/ranks.h"
#include "tests/support/watchdog.h"

namespace purine {
namespace {

using test::at_ranks;
using Texts = std::vector<std::string>;

class AgreementTest : public testing::Test {
 protected:
  Watchdog watchdog_;
  net::InProcessHub hub_{3};
};

TEST_F(AgreementTest, WhatFailsAtOneRankIsThrownAtAll) {
  const Texts errors = at_ranks(hub_, 3, [&](Endpoint& endpoint) {
    at_all_ranks(&endpoint, [] {});
    at_all_ranks(&endpoint, [&] {
      if (endpoint.rank() == 1) throw Error("data", "is not there").at("set");
    });
    ADD_FAILURE() << "goes on";
  });
  const std::string told = "[rank 1] at " + hub_.endpoint(0).host(1) + ", [data] set: is not there";
  EXPECT_EQ(errors, (Texts{told, "[data] set: is not there", told}));
}

TEST_F(AgreementTest, WhatFailsAlikeIsAgreedUponAndKeepsItsType) {
  class Special final : public Error {
   public:
    Special() : Error("job", "is wrong") {}
  };
  std::vector<int> agreed(3);
  at_ranks(hub_, 3, [&](Endpoint& endpoint) {
    try {
      at_all_ranks(&endpoint, [] { throw Special(); });
    } catch (const AgreedError& error) {
      EXPECT_STREQ(error.what(), "[job] is wrong");
      EXPECT_THROW(std::rethrow_exception(error.cause()), Special);
      agreed[static_cast<std::size_t>(endpoint.rank())] = 1;
    }
  });
  EXPECT_EQ(agreed, std::vector<int>(3, 1));
}

TEST_F(AgreementTest, OfWhatFailsDifferentlyTheFirstRanksCauseIsThrownAtAll) {
  const Texts errors = at_ranks(hub_, 3, [&](Endpoint& endpoint) {
    at_all_ranks(&endpoint, [&] {
      if (endpoint.rank() > 0) throw Error("device", std::to_string(endpoint.rank()) + " is full");
    });
  });
  const std::string told = "[rank 1] at " + hub_.endpoint(0).host(1) + ", [device] 1 is full";
  EXPECT_EQ(errors, (Texts{told, "[device] 1 is full", told}));
}

TEST_F(AgreementTest, WhatIsSaidIsComparedInWords) {
  const Texts errors = at_ranks(hub_, 3, [&](Endpoint& endpoint) {
    compare_words(endpoint, "runs purine 1.0", "every process must run the same build");
    compare_words(endpoint, endpoint.rank() == 2 ? "runs purine 1.1" : "runs purine 1.0",
                  "every process must run the same build");
  });
  EXPECT_EQ(errors,
            Texts(3,
                  "[session] rank 0 runs purine 1.0, rank 2 runs purine 1.1; hint: every process must "
                  "run the same build"));
}

TEST_F(AgreementTest, AProcessAloneJustCalls) {
  int calls = 0;
  at_all_ranks(nullptr, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(at_all_ranks(nullptr, [] { throw Error("a", "b"); }), Error);
}

TEST_F(AgreementTest, TextsOfAnyLengthAreGatheredAtRank0) {
  Texts gathered[3];
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank) * 300'000, static_cast<char>('a' + rank));
  };
  const Texts errors = at_ranks(hub_, 3, [&](Endpoint& endpoint) {
    Runtime runtime({.workers = 1, .endpoint = &endpoint});
    for (int i = 0; i < 2; ++i) gathered[endpoint.rank()] = gather_texts(runtime, text_of(endpoint.rank()));
  });
  EXPECT_EQ(errors, Texts(3));
  EXPECT_EQ(gathered[0], (Texts{text_of(0), text_of(1), text_of(2)}));
  EXPECT_EQ(gathered[1], Texts());
  Runtime alone({.workers = 1});
  EXPECT_EQ(gather_texts(alone, "text"), Texts{"text"});
}

}  // namespace
}  // namespace purine
