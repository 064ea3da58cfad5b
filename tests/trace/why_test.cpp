#include "purine/trace/why.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "purine/core/json_helpers.h"
#include "purine/trace/chrome_trace.h"
#include "purine/trace/read_traces.h"
#include "purine/trace/replay.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tests/trace/units.h"

namespace purine::trace {
namespace {

using Json = nlohmann::json;

/// Two ranks that exchange a gradient: of each step of 100 ms, 5 are reading, 60 a matmul at rank 1, 4 the
/// way to its send, 30 the message to rank 0, and 1 its update. Rank 0 computes 20 ms on its own.
std::vector<Trace> two_ranks() {
  std::vector<Trace> ranks(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ranks[rank].rank = static_cast<std::int32_t>(rank);
    ranks[rank].tracks = {"worker 0", "receives", "sends 0"};
    ranks[rank].about = {{"host", rank == 0 ? "left" : "right"}};
  }
  OperatorLabel read{"data", "source", "1/cpu:0", "-> f32[1]"};
  read.brings_data = true;
  OperatorLabel matmul{"net/fc/matmul", "matmul", "1/cpu:0", "f32[1] -> f32[1]"};
  matmul.operations = 6e9;
  matmul.bytes = 1e6;
  matmul.after = {{0, 0, true}};
  OperatorLabel send{"exchange/send", "send", "1/cpu:0", "f32[1] ->"};
  send.exchange = {true, 0, 3, 30'000'000};
  send.after = {{1, 0, true}};
  ranks[1].operators = {read, matmul, send};
  OperatorLabel receive{"exchange", "receive", "0/cpu:0", "-> f32[1]"};
  receive.exchange = {false, 1, 3, 30'000'000};
  OperatorLabel update{"optimizer/update", "momentum_update", "0/cpu:0", "f32[1] -> f32[1]"};
  update.bytes = 1e6;
  update.after = {{0, 0, true}};
  OperatorLabel own{"net/own", "relu", "0/cpu:0", "f32[1] -> f32[1]"};
  ranks[0].operators = {receive, update, own};
  for (std::int64_t t = 0; t < 3; ++t) {
    const std::int64_t at = 100 * t * ms;
    ranks[1].events.push_back({0, 0, 0, t, at, at + 5 * ms});
    ranks[1].events.push_back({1, 0, 0, t, at + 5 * ms, at + 65 * ms});
    ranks[1].events.push_back({2, 0, 2, t, at + 69 * ms, at + 98 * ms});
    ranks[0].events.push_back({0, 0, 1, t, at, at + 99 * ms});
    ranks[0].events.push_back({1, 0, 0, t, at + 99 * ms, at + 100 * ms});
    ranks[0].events.push_back({2, 0, 0, t, at, at + 20 * ms});
  }
  for (Trace& trace : ranks) trace.sort();
  return ranks;
}

Explanation explanation_of(const std::vector<Trace>& ranks, const NetworkSpeed& network = {}) {
  const Timeline timeline(ranks);
  return explain(timeline, critical_path(timeline), {.network = network});
}

double replayed(const std::vector<Trace>& ranks, const ReplayOptions& options) {
  const Timeline timeline(ranks);
  return replayed_step(timeline, MessageTimes(timeline, {}), options);
}

TEST(WhyTest, EachPartOfAStepIsInOneShare) {
  const Explanation explanation = explanation_of(two_ranks());
  EXPECT_EQ(explanation.steps, 2);
  EXPECT_DOUBLE_EQ(explanation.step_seconds, 0.1);
  const std::vector<std::pair<std::string, double>> expected = {
      {"compute", 0.061}, {"data", 0.005}, {"copy", 0}, {"transfer", 0.030}, {"idle", 0.004}};
  ASSERT_EQ(explanation.uses.size(), expected.size());
  double whole = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(explanation.uses[i].what, expected[i].first);
    EXPECT_NEAR(explanation.uses[i].seconds, expected[i].second, 1e-12);
    EXPECT_NEAR(explanation.uses[i].share, 10 * expected[i].second, 1e-12);
    whole += explanation.uses[i].share;
  }
  EXPECT_NEAR(whole, 1, 1e-12);
  ASSERT_EQ(explanation.operators.size(), 2U);
  EXPECT_EQ(explanation.operators[0].what, "matmul");
  EXPECT_NEAR(explanation.operators[0].seconds, 0.060, 1e-12);
}

TEST(WhyTest, RanksAreBusyWaitingAndExchanging) {
  const Explanation explanation = explanation_of(two_ranks());
  ASSERT_EQ(explanation.ranks.size(), 2U);
  EXPECT_EQ(explanation.ranks[0].host, "left");
  EXPECT_EQ(explanation.ranks[0].tracks, 1U);
  EXPECT_NEAR(explanation.ranks[0].busy, 0.21, 1e-12);
  EXPECT_NEAR(explanation.ranks[1].busy, 0.65, 1e-12);
  EXPECT_NEAR(explanation.ranks[0].transfers, 0.30, 1e-12);
  EXPECT_NEAR(explanation.ranks[0].exposed, 0.30, 1e-12);
  EXPECT_NEAR(explanation.ranks[0].on_path + explanation.ranks[1].on_path, 1, 1e-12);
}

TEST(WhyTest, TheLargestCausesAreToldInWords) {
  std::vector<Trace> ranks = two_ranks();
  for (OperatorEvent& event : ranks[0].events) {
    if (event.op == 2) event.end = event.begin + 62 * ms;  // as busy as the other rank
  }
  const Explanation explanation = explanation_of(ranks);
  ASSERT_EQ(explanation.causes.size(), 3U);
  const auto expect_cause = [&](std::size_t index, const std::string& what, const std::string& text,
                                const std::string& hint) {
    EXPECT_EQ(explanation.causes[index].what, what);
    EXPECT_EQ(explanation.causes[index].text, text);
    EXPECT_EQ(explanation.causes[index].hint.find(hint), 0U) << explanation.causes[index].hint;
  };
  expect_cause(0, "matmul",
               "60.0% of a step, 60.0 ms: computing matmul at 100.0 Gflop/s a worker; "
               "most in net/fc/matmul, 60.0 ms",
               "workers and devices are busy 64% of the time, so the chain of operators is what counts");
  expect_cause(1, "transfer",
               "30.0% of a step, 30.0 ms: moving data between ranks; 30.0 MB a step over all; "
               "messages are on their way 30% of the time, and 30% of the time nothing computes meanwhile; "
               "most in exchange, 30.0 ms",
               "a larger batch gives each byte more to hide under");
  expect_cause(2, "data", "5.0% of a step, 5.0 ms: reading and preparing images; most in data, 5.0 ms",
               "more workers prepare more images at a time");
}

TEST(WhyTest, ARankThatTheOthersWaitForIsACause) {
  const Explanation explanation = explanation_of(two_ranks());
  ASSERT_EQ(explanation.causes.size(), 3U);
  EXPECT_EQ(explanation.causes[1].what, "imbalance");
  EXPECT_EQ(explanation.causes[1].text,
            "44.0% of a step, 44.0 ms: rank 1 at right computes for 65% of the time and the others for 21%, "
            "waiting for it");
  EXPECT_NEAR(explanation.causes[1].share, 0.44, 1e-12);
}

// Of a step, 5 ms are reading, 61 computing, 30 the message; 4 are on the way to the send, which a replay
// leaves out.
TEST(WhyTest, AReplayTellsWhatWouldBe) {
  const std::vector<Trace> ranks = two_ranks();
  EXPECT_DOUBLE_EQ(replayed(ranks, {}), 96 * ms);
  EXPECT_DOUBLE_EQ(replayed(ranks, {.transfer = 0.5}), 81 * ms);
  EXPECT_DOUBLE_EQ(replayed(ranks, {.compute = 2, .data = 0}), 152 * ms);
  const Explanation explanation = explanation_of(ranks);
  EXPECT_DOUBLE_EQ(explanation.replayed_seconds, 0.096);
  ASSERT_EQ(explanation.what_ifs.size(), 4U);
  EXPECT_EQ(explanation.what_ifs[0].what, "devices twice as fast");
  EXPECT_NEAR(explanation.what_ifs[0].seconds, 0.1 * 65.5 / 96, 1e-12);
  EXPECT_EQ(explanation.what_ifs[2].what, "network infinitely fast");
  EXPECT_NEAR(explanation.what_ifs[2].seconds, 0.1 * 66 / 96, 1e-12);
  EXPECT_EQ(explanation.what_ifs[3].what, "images brought in twice as fast");
}

// Of the message's 30 ms its 30 MB take 24 at 10 Gbit/s, its 115 chunks 3.45 of their own, and 1 passes until
// the last byte has come; nothing is known of the rest.
TEST(WhyTest, OfAKnownNetworkItTellsWhatHoldsTransfersUp) {
  const std::vector<Trace> ranks = two_ranks();
  const NetworkSpeed network{{{1.25e9, 30e-6, 1e-3}, {1.25e9, 30e-6, 1e-3}}};
  const Explanation explanation = explanation_of(ranks, network);
  const std::vector<std::pair<std::string, double>> expected = {
      {"rate", 0.024}, {"messages", 0.00345}, {"latency", 0.001}, {"waiting", 0.00155}};
  ASSERT_EQ(explanation.transfers.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(explanation.transfers[i].what, expected[i].first);
    EXPECT_NEAR(explanation.transfers[i].seconds, expected[i].second, 1e-9);
  }
  const auto cause = std::ranges::find(explanation.causes, "transfer", &Cause::what);
  EXPECT_EQ(cause->text.find("30.0% of a step, 30.0 ms: moving data between ranks, 80% of it at the rate of "
                             "the links, 10 Gbit/s; 30.0 MB a step over all; "),
            0U)
      << cause->text;
  ASSERT_EQ(explanation.what_ifs.size(), 6U);
  const auto expect_what_if = [&](std::size_t index, const std::string& what, double less) {
    EXPECT_EQ(explanation.what_ifs[index].what, what);
    EXPECT_NEAR(explanation.what_ifs[index].seconds, 0.1 * (0.096 - less) / 0.096, 1e-9) << what;
  };
  expect_what_if(1, "links of twice the rate", 0.012);
  expect_what_if(2, "messages at half the cost", 0.001725);
  expect_what_if(3, "links of half the latency", 0.0005);
  expect_what_if(4, "network infinitely fast", 0.030);
  const std::string text = why_text(explanation);
  EXPECT_NE(text.find("transfer                                     30.000    30.0%\n"
                      "  at the rate of the links                   24.000    24.0%\n"
                      "  for each message's own cost                 3.450     3.5%\n"
                      "  latency                                     1.000     1.0%\n"
                      "  waiting                                     1.550     1.6%\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(parse_json(why_json(explanation)).at("transfers").at(1).at("what"), "messages");
}

TEST(WhyTest, WhatAReplayCannotRepeatIsNotTold) {
  std::vector<Trace> ranks = two_ranks();
  for (OperatorEvent& event : ranks[1].events) {
    if (event.op != 0) continue;  // the host hands iterations out late
    event.begin += 4 * ms;
    event.end = event.begin + 1 * ms;
  }
  for (OperatorEvent& event : ranks[1].events) {
    if (event.op == 1) event.begin += 20 * ms;
  }
  const Explanation explanation = explanation_of(ranks);
  EXPECT_LT(explanation.replayed_seconds, 0.09);
  EXPECT_TRUE(explanation.what_ifs.empty());
  EXPECT_EQ(replayed({}, {}), 0);
}

TEST(ReplayTest, IterationsOverlapAsTheyDid) {
  // Two operators on a worker each, 30 and 50 ms, two iterations in progress: the longer one is the step.
  Trace trace;
  trace.tracks = {"worker 0", "worker 1"};
  trace.operators = {{"a", "linear", "0/cpu:0", ""}, {"b", "linear", "0/cpu:0", ""}};
  trace.operators[0].after = {{0, 1, false}};
  trace.operators[1].after = {{0, 0, true}, {1, 1, false}};
  for (std::int64_t t = 0; t < 6; ++t) {
    trace.events.push_back({0, 0, 0, t, 50 * t, 50 * t + 30});
    trace.events.push_back({1, 0, 1, t, 50 * t + 30, 50 * t + 80});
  }
  trace.sort();
  const std::vector<Trace> ranks = {trace};
  EXPECT_DOUBLE_EQ(replayed(ranks, {}), 50);
  EXPECT_DOUBLE_EQ(replayed(ranks, {.compute = 0.5}), 25);
}

TEST(ReplayTest, PartsAreSharedAmongWorkers) {
  Trace trace;
  trace.tracks = {"worker 0", "worker 1"};
  trace.operators = {{"a", "linear", "0/cpu:0", ""}, {"b", "linear", "0/cpu:0", ""}};
  trace.operators[0].after = {{1, 1, true}};
  trace.operators[1].after = {{0, 0, true}};
  for (std::int64_t t = 0; t < 3; ++t) {  // worker 1 came late to two of four parts
    for (std::int32_t part = 0; part < 4; ++part) {
      const std::int64_t begin = 55 * t + (part < 3 ? 10 * part : 20);
      trace.events.push_back({0, part, part < 3 ? 0 : 1, t, begin, begin + 10});
    }
    trace.events.push_back({1, 0, 0, t, 55 * t + 30, 55 * t + 55});
  }
  trace.sort();
  const std::vector<Trace> ranks = {trace};
  EXPECT_DOUBLE_EQ(replayed(ranks, {}), 45) << "two rounds of two parts, and 25";
}

TEST(WhyTest, AnOperatorThatTheOtherWorkersWaitForIsToldAsSuch) {
  Trace trace;
  trace.tracks = {"worker 0", "worker 1"};
  trace.operators = {{"update", "momentum_update", "0/cpu:0", ""}, {"conv", "conv2d", "0/cpu:0", ""}};
  trace.operators[0].after = {{1, 0, true}};
  trace.operators[1].after = {{0, 1, true}};
  for (std::int64_t t = 0; t < 3; ++t) {  // both workers share the convolution, and one waits for the update
    trace.events.push_back({1, 0, 0, t, 100 * t, 100 * t + 40});
    trace.events.push_back({1, 1, 1, t, 100 * t, 100 * t + 40});
    trace.events.push_back({0, 0, 0, t, 100 * t + 40, 100 * t + 100});
  }
  trace.sort();
  const Explanation explanation = explanation_of({trace});
  ASSERT_EQ(explanation.causes.size(), 2U);
  EXPECT_EQ(explanation.causes[0].what, "momentum_update");
  EXPECT_NE(explanation.causes[0].text.find("; the other workers are busy 0% of this time"),
            std::string::npos)
      << explanation.causes[0].text;
  EXPECT_EQ(explanation.causes[0].hint.find("such an operator has too few parts to share"), 0U);
  EXPECT_EQ(explanation.causes[1].hint.find("workers and devices are busy 70% of the time"), 0U)
      << explanation.causes[1].hint;
}

TEST(WhyTest, TheTextHasATableAndTheCauses) {
  const std::string text = why_text(explanation_of(two_ranks()));
  EXPECT_EQ(text.find("A step takes 100.000 ms, over 2 steps of the trace.\n"), 0U) << text;
  EXPECT_NE(text.find("compute                                      61.000    61.0%\n"
                      "  matmul                                     60.000    60.0%\n"
                      "  momentum_update                             1.000     1.0%\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1 at right                                    65.0%"), std::string::npos) << text;
  EXPECT_NE(text.find("\nWhat takes the most:\n1. 60.0% of a step"), std::string::npos) << text;
}

TEST(WhyTest, TheJsonHoldsTheSame) {
  const Json json = parse_json(why_json(explanation_of(two_ranks())));
  EXPECT_EQ(json.at("steps"), 2);
  EXPECT_NEAR(json.at("step_seconds").get<double>(), 0.1, 1e-12);
  EXPECT_TRUE(json.at("has_dependencies").get<bool>());
  EXPECT_EQ(json.at("path").at(3).at("what"), "transfer");
  EXPECT_EQ(json.at("causes").size(), 3U);
  EXPECT_EQ(json.at("ranks").at(1).at("host"), "right");
}

TEST(WhyTest, ATraceWithoutDependenciesSaysSo) {
  std::vector<Trace> ranks = two_ranks();
  ranks.pop_back();
  for (OperatorLabel& label : ranks[0].operators) label.after.clear();
  const std::string text = why_text(explanation_of(ranks));
  EXPECT_NE(text.find("The trace doesn't say what waits for what"), std::string::npos) << text;
  EXPECT_EQ(why_text(explanation_of({})), "The trace holds no whole iteration.\n");
}

TEST(ReadTracesTest, RankZeroBringsInTheOthersThatLieBesideIt) {
  const test::TemporaryFolder folder;
  const std::vector<Trace> ranks = two_ranks();
  const std::filesystem::path first = folder / "trace.json";
  for (int rank = 0; rank < 2; ++rank) {
    write_chrome_trace(rank_file(first, rank), ranks[static_cast<std::size_t>(rank)], {.origin = 0});
  }
  EXPECT_EQ(rank_file(first, 1), folder / "trace.rank1.json");
  EXPECT_EQ(read_traces(std::vector{first}), ranks);
  EXPECT_EQ(read_traces(std::vector<std::filesystem::path>{folder / "."}), ranks) << "as a run folder";
  EXPECT_EQ(read_traces(std::vector{rank_file(first, 1), first}), ranks);
  EXPECT_EQ(read_traces(std::vector{rank_file(first, 1)}).size(), 1U);
  EXPECT_NE(
      test::error_text([&] {
        read_traces(std::vector{first, first});
      }).find("is of rank 0, and so is another file; hint: name the files of one run, one for each rank"),
      std::string::npos);
}

TEST(ReadTracesTest, AFolderWithoutATraceIsAnError) {
  const test::TemporaryFolder folder;
  EXPECT_NE(test::error_text([&] {
              read_traces(std::vector<std::filesystem::path>{folder / "."});
            }).find("holds no trace; hint: a run writes one if its job has trace.steps above 0"),
            std::string::npos);
}

}  // namespace
}  // namespace purine::trace
