// How long a step would take if something were faster, by running a trace again in virtual time.
#pragma once

#include "purine/trace/message_times.h"
#include "purine/trace/timeline.h"

namespace purine::trace {

/// Factors on how long things take: 0.5 is twice as fast.
struct ReplayOptions {
  double compute = 1;
  double data = 1;
  double copy = 1;
  double transfer = 1;  ///< all that messages take
  // And of that what is due to the rate of links, each message's cost, and latency, as far as it is known.
  double rate = 1;
  double messages = 1;
  double latency = 1;
};

/// Nanoseconds that a step takes when the traced iterations run again: each execution waits for what the
/// trace says that it waits for, parts go to the first free worker of their location in the order in which
/// they began, queues work one after the other, a message moves once both ends are ready, and all takes as
/// long as it did, times its factor. As many iterations are in progress as were. What it leaves out is the
/// way from one operator to the next, so that with all factors 1 it gives somewhat less than was measured;
/// and that messages which share a link slow each other, beyond what they did. 0 without a whole iteration or
/// without dependencies. `messages` are of the same timeline.
double replayed_step(const Timeline& timeline, const MessageTimes& messages, const ReplayOptions& options);

}  // namespace purine::trace
