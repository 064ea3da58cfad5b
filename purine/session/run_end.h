// Where a run ends, which all ranks must agree on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "purine/runtime/endpoint.h"

namespace purine {

/// The end of a run: the iterations before it are run, at all ranks. A rank that wants to end earlier says
/// how many it has admitted, and admits no more. The others hear of it sooner or later, admit no more than
/// the most that was said, and say what they have admitted then. Once all have spoken, the largest is the
/// end, and all admit up to it: what one has admitted may wait for the others. Nobody is waited for by a
/// barrier, and a run that isn't ended early ends the same way.
class RunEnd {
 public:
  /// Without an endpoint this process decides alone.
  explicit RunEnd(Endpoint* endpoint) : endpoint_(endpoint) {}

  /// Begins a run that is to end at `end`; all ranks begin it with the same numbers.
  void begin(std::int64_t run, std::int64_t end) {
    run_ = run;
    end_ = end;
    said_ = false;
    agreed_ = endpoint_ == nullptr;
  }
  /// The run is to end with the iterations that this rank has admitted, or more if others have admitted more.
  void stop(std::int64_t admitted) {
    if (endpoint_ == nullptr) end_ = std::min(end_, admitted);
    if (endpoint_ == nullptr || said_) return;
    said_ = true;
    endpoint_->announce_end(run_, admitted);
  }
  /// Up to where this rank, which has admitted so many, may admit iterations as far as it knows. Throws
  /// RemoteError if the run has failed.
  std::int64_t limit(std::int64_t admitted) {
    if (agreed_) return end_;
    const std::vector<std::int64_t> ends = endpoint_->announced_ends(run_);
    const std::int64_t most = std::ranges::max(ends);
    const auto undecided = std::ranges::find_if(ends, [](std::int64_t end) { return end < 0; });
    undecided_ = static_cast<int>(undecided - ends.begin());
    if (undecided == ends.end()) {
      agreed_ = true;
      end_ = most;
      return end_;
    }
    const std::int64_t limit = most < 0 ? end_ : std::max(most, admitted);
    if (admitted >= limit) stop(admitted);
    return limit;
  }
  /// The run has failed here.
  void abandon(std::int64_t at) {
    end_ = at;
    agreed_ = true;
  }

  /// The rank, if any, whose word is all that this one waits for: it has said where it ends itself.
  std::optional<int> waits_for() const {
    return said_ && !agreed_ ? std::optional(undecided_) : std::nullopt;
  }
  /// True once the end is certain.
  bool agreed() const { return agreed_; }
  std::int64_t end() const { return end_; }

 private:
  Endpoint* endpoint_;
  std::int64_t run_ = 0;
  std::int64_t end_ = 0;
  int undecided_ = 0;  // the first rank that hadn't said where it ends when it was last asked
  bool said_ = false;
  bool agreed_ = true;
};

}  // namespace purine
