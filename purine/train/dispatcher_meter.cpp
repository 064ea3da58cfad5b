#include "purine/train/dispatcher_meter.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "purine/core/error.h"
#include "purine/runtime/dispatcher.h"
#include "purine/session/scheduling.h"

namespace purine::train {
namespace {

constexpr int rounds = 9;
constexpr std::int64_t steps_a_round = 32;

/// Operators that do nothing, in the parts of a program's.
class Nothing final : public Executor {
 public:
  explicit Nothing(const Program& program) : program_(program) {}

  int parts(std::uint32_t op) const override { return program_.parts(op); }
  void run(std::uint32_t, std::int64_t, int, int) override {}

 private:
  const Program& program_;
};

}  // namespace

std::optional<double> dispatcher_seconds(const Program& program, const Runtime& runtime) {
  std::optional<std::vector<Lane>> lanes = cpu_lanes(program, runtime);
  if (!lanes) return std::nullopt;
  Nothing nothing(program);
  Dispatcher dispatcher(program.marked_graph(), nothing, std::move(*lanes));
  std::vector<double> seconds;
  for (std::int64_t round = 0; round <= rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    dispatcher.admit((round + 1) * steps_a_round);
    PURINE_CHECK(dispatcher.drain());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (round > 0) seconds.push_back(taken.count() / steps_a_round);  // in the first all memory is new
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[rounds / 2];
}

}  // namespace purine::train
