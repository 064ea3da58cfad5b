// Why a step takes as long as it does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "purine/trace/critical_path.h"
#include "purine/trace/message_times.h"

namespace purine::trace {

/// What the critical path spends on one kind of thing.
struct PathShare {
  std::string what;           ///< an operator type, or a Use by name
  double seconds = 0;         ///< a step
  double share = 0;           ///< of the step
  std::size_t stretches = 0;  ///< on the path, over all steps
};

/// What a rank does while the path goes on.
struct RankUse {
  std::int32_t rank = 0;
  std::string host;        ///< empty if the trace doesn't say
  std::size_t tracks = 0;  ///< workers and queues of kernels
  double busy = 0;         ///< share of their time that operators run
  double on_path = 0;      ///< share of the step in which the path is at this rank
  double computing = 0;    ///< share of the step in which any of them does
  double transfers = 0;    ///< share of the step in which a message of this rank is on its way
  double exposed = 0;      ///< of the step, while nothing computes here
};

/// One of the reasons, in words.
struct Cause {
  std::string what;  ///< the kind, as in PathShare, or `imbalance` of ranks, which is not a share of the path
  double seconds = 0;
  double share = 0;
  std::string text;
  std::string hint;
};

/// What a step would take if something were faster.
struct WhatIf {
  std::string what;
  double seconds = 0;
};

/// What training would be like if the job were another one, by simulating both.
struct SimulatedChange {
  std::string what;
  double step_seconds = 0;
  double images_per_second = 0;
};

/// The run of a trace, simulated with what the trace says that its operators take.
struct SimulatedRun {
  SimulatedChange as_it_was;
  std::vector<SimulatedChange> changes;
};

struct Explanation {
  std::int64_t steps = 0;
  double step_seconds = 0;
  std::vector<PathShare> uses;       ///< compute, data, copy, transfer, idle: they add up to the step
  std::vector<PathShare> operators;  ///< compute by type of operator, the largest first
  /// Transfers by what they consist of (see MessageTime): `rate`, `messages`, `latency`, `waiting`. Empty
  /// where the network isn't known or nothing is transferred.
  std::vector<PathShare> transfers;
  std::vector<RankUse> ranks;
  std::vector<Cause> causes;     ///< at most three, the largest first
  double replayed_seconds = 0;   ///< what replaying the trace as it is gives for a step; see replayed_step
  std::vector<WhatIf> what_ifs;  ///< only if that is near the step that was measured
  std::optional<SimulatedRun> simulated = {};  ///< by whoever can simulate it
  std::uint64_t dropped = 0;                   ///< events that are missing in the traces
  bool has_dependencies = false;               ///< if not, the path follows workers alone
};

/// The name of a use: `compute`, `data`, `copy`, `transfer`, `idle`.
std::string use_name(Use use);

struct ExplainOptions {
  NetworkSpeed network = {};  ///< what of it holds transfers up is told where it is known
  bool replay = true;         ///< what would be if something were faster is told, which takes longest
};

/// Explains the steps of a critical path. Without a whole iteration it has no steps.
Explanation explain(const Timeline& timeline, const CriticalPath& path, const ExplainOptions& options = {});

/// The explanation for people.
std::string why_text(const Explanation& explanation);

/// The end of that text: what takes the most, and what helps. Empty without causes.
std::string causes_text(const Explanation& explanation);

/// The explanation as one JSON object.
std::string why_json(const Explanation& explanation);

}  // namespace purine::trace
